"""The triplets that a text names: lines "instrument verb target", or sentences that say the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from surgeval.qa.mentions.lexicon import OUTSIDE, Lexicon, Word, lexicon
from surgeval.qa.mentions.mentions import Mentions
from surgeval.qa.mentions.negation import clauses, denied
from surgeval.records import Triplet
from surgeval.vocab import LabelSpace

__all__ = ["triplet_mentions"]

_JOINED = re.compile(r"\s{0,2}(?:,|and|&|,\s?and)\s{0,2}(?:(?:an?|the)\s)?", re.I)
_BY = re.compile(r"\b(?:by|with|using|via)\s(?:(?:an?|the)\s)?$", re.I)
_LABELLED = re.compile(r"\n(?=[\s*\-•]{0,6}(?:verb|action|target|tissue|organ)\b)", re.I)
_LINE_OF_THREE = re.compile(r"[\s*•\-–>]*(?:\d{1,2}[.):]\s*)?([A-Za-z_]+[ ,\-]+[A-Za-z_]+[ ,\-]+[A-Za-z_]+)\s*$")

_LONGEST_LIST = 4  # verbs or targets of one instrument
_LONGEST_PIECE = 60  # characters of an unparsed piece


@dataclass(frozen=True, slots=True)
class _Words:
    instruments: Lexicon
    verbs: Lexicon
    targets: Lexicon


def triplet_mentions(text: str, space: LabelSpace) -> Mentions[Triplet]:
    r"""The triplets that a text names and does not deny, in the order of their first mention.

    A triplet whose verb or target the space does not hold has −1 there and its words are among the unparsed; so has a
    triplet line without a known instrument. Combinations that are no class of the space are given as they are said.

    >>> from surgeval.vocab import load_labels
    >>> space = load_labels("cholect50")
    >>> said = triplet_mentions("grasper retract gallbladder\nhook manipulate liver", space)
    >>> said.classes == (Triplet(0, 1, 0), Triplet(2, -1, 8)), said.unparsed
    (True, ('hook manipulate liver',))
    """
    words = _Words(*(lexicon(space, component) for component in ("instrument", "verb", "target")))
    first: dict[Triplet, tuple[int, int]] = {}
    unparsed: dict[str, None] = {}
    unlabelled = _LABELLED.sub(" ", text)  # one character for one: spans stay
    for start, end, asks in clauses(unlabelled):
        mentions = [] if asks else list(_clause(unlabelled, start, end, words))
        for triplet, span in mentions:
            if triplet.instrument != OUTSIDE:
                first.setdefault(triplet, span)
            if OUTSIDE in (triplet.instrument, triplet.verb, triplet.target):
                unparsed.setdefault(" ".join(unlabelled[span[0] : span[1]].split()))
        line = _LINE_OF_THREE.fullmatch(unlabelled[start:end]) if not (mentions or asks) else None
        if line and words.instruments.first(unlabelled, start, end) is None:
            unparsed.setdefault(" ".join(line[1].split()))
    return Mentions(tuple(first), tuple(first.values()), tuple(unparsed))


def _clause(text: str, start: int, end: int, words: _Words) -> Iterator[tuple[Triplet, tuple[int, int]]]:
    """What one clause says of each of its instruments."""
    subjects = _subjects(text, start, end, words)
    off = denied(text, subjects, start, end)
    waiting: dict[int, Word] = {}  # instruments that share the next verb: "the grasper and the hook dissect …"
    behind = start
    for number, subject in enumerate(subjects):
        following = subjects[number + 1] if number + 1 < len(subjects) else None
        limit = following.start if following else end
        if following and _JOINED.fullmatch(text, subject.end, limit):
            waiting.setdefault(subject.number, subject)
            continue
        verbs = _list(words.verbs, text, subject.end, limit)
        targets = _list(words.targets, text, verbs[-1].end if verbs else subject.end, limit)
        if not verbs and not targets and _BY.search(text[behind : subject.start]):  # "dissected by the hook"
            verbs, targets = (
                list(kind.words(text, behind, subject.start))[-1:] for kind in (words.verbs, words.targets)
            )
        parts = [subject, *verbs, *targets]
        last = max(word.end for word in parts)
        if not verbs or not targets:  # the words in between are what could not be parsed
            last = max(last, min(limit, subject.end + _LONGEST_PIECE))
            last = subject.end + len(text[subject.end : last].rstrip(" ,;.\t-*"))
        opening = min(word.start for word in parts)
        for actor in (*waiting.values(), subject) if not off[number] else ():
            for verb, target in product(_numbers(verbs), _numbers(targets)):
                yield Triplet(actor.number, verb, target), (min(actor.start, opening), last)
        waiting, behind = {}, max(last, subject.end)


def _list(lexicon: Lexicon, text: str, start: int, end: int) -> list[Word]:
    """The first word in a part of the text, with those that are joined to it: "grasping and retracting"."""
    listed: list[Word] = []
    for word in lexicon.words(text, start, end):
        if listed and (len(listed) == _LONGEST_LIST or not _JOINED.fullmatch(text, listed[-1].end, word.start)):
            break
        listed.append(word)
    return listed


def _numbers(words: list[Word]) -> list[int]:
    return [word.number for word in words] or [OUTSIDE]


def _subjects(text: str, start: int, end: int, words: _Words) -> list[Word]:
    """The instruments of a clause that act; one that is the target of the verb before it is none."""
    subjects: list[Word] = []
    for word in words.instruments.words(text, start, end):
        if subjects:
            verb = words.verbs.first(text, subjects[-1].end, word.end)
            if verb and verb.start == word.start:  # ProstaTD's "bag" is a verb after "grasper"
                continue
            target = words.targets.first(text, subjects[-1].end, word.end)
            if verb and target and target.start == word.start and target.end == word.end:
                continue
        subjects.append(word)
    return subjects
