"""The triplets that a text names: lines "instrument verb target", or sentences that say the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from surgeval.qa.mentions._lexicon import OUTSIDE, Lexicon, Word, lexicon
from surgeval.qa.mentions._mentions import Mentions
from surgeval.qa.mentions._negation import clauses, denied
from surgeval.records import Triplet
from surgeval.vocab import LabelSpace

__all__ = ["triplet_mentions"]

_JOINED = re.compile(r"\s{0,2}(?:,|and|&|,\s?and)\s{0,2}(?:(?:an?|the)\s)?", re.I)
_BY = re.compile(r"\b(?:by|with|using|via)\s(?:(?:an?|the)\s)?$", re.I)
_LABELLED = re.compile(r"\n(?=[\s*\-•]{0,6}(?:verb|action|target|tissue|organ)\b)", re.I)
_LINE_OF_THREE = re.compile(r"[\s*•\-–>]*(?:\d{1,2}[.):]\s*)?([A-Za-z_]+[ ,\-]+[A-Za-z_]+[ ,\-]+[A-Za-z_]+)\s*$")

_LONGEST_PIECE = 60  # characters of an unparsed piece


@dataclass(frozen=True, slots=True)
class _Words:
    instruments: Lexicon
    verbs: Lexicon
    targets: Lexicon


def triplet_mentions(text: str, label_space: LabelSpace) -> Mentions[Triplet]:
    r"""The triplets that a text names and does not deny, in the order of their first mention.

    A triplet whose verb or target the space does not hold has −1 there and its words are among the unparsed; so has a
    triplet line without a known instrument. Combinations that are no class of the space are given as they are said.

    >>> from surgeval.vocab import load_labels
    >>> space = load_labels("cholect50")
    >>> said = triplet_mentions("grasper retract gallbladder\nhook manipulate liver", space)
    >>> said.classes == (Triplet(0, 1, 0), Triplet(2, -1, 8)), said.unparsed
    (True, ('hook manipulate liver',))
    """
    words = _Words(*(lexicon(label_space, component) for component in ("instrument", "verb", "target")))
    first: dict[Triplet, tuple[int, int]] = {}
    unparsed: dict[str, None] = {}
    joined = _LABELLED.sub(" ", text)  # one character for one: spans stay
    for start, end, asks in clauses(joined):
        said = [] if asks else list(_clause(joined, start, end, words))
        for triplet, span in said:
            if triplet.instrument != OUTSIDE:
                first.setdefault(triplet, span)
            if OUTSIDE in (triplet.instrument, triplet.verb, triplet.target):
                unparsed.setdefault(" ".join(joined[span[0] : span[1]].split()))
        line = _LINE_OF_THREE.fullmatch(joined[start:end]) if not (said or asks) else None
        if line and words.instruments.first(joined, start, end) is None:
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
        verb = words.verbs.first(text, subject.end, limit)
        target = words.targets.first(text, verb.end if verb else subject.end, limit)
        if verb is None and target is None and _BY.search(text[behind : subject.start]):  # "dissected by the hook"
            verb, target = _before(text, behind, subject.start, words)
        parts = [word for word in (subject, verb, target) if word]
        last = max(word.end for word in parts)
        if verb is None or target is None:  # the words in between are what could not be parsed
            last = max(last, min(limit, subject.end + _LONGEST_PIECE))
            last = subject.end + len(text[subject.end : last].rstrip(" ,;.\t-*"))
        if not off[number]:
            for actor in (*waiting.values(), subject):
                triplet = Triplet(actor.number, verb.number if verb else OUTSIDE, target.number if target else OUTSIDE)
                yield triplet, (min(actor.start, *(word.start for word in parts)), last)
        waiting, behind = {}, max(last, subject.end)


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


def _before(text: str, start: int, end: int, words: _Words) -> tuple[Word | None, Word | None]:
    """The last verb and the last target before an instrument that is named after "by" or "with"."""
    verbs, targets = list(words.verbs.words(text, start, end)), list(words.targets.words(text, start, end))
    return (verbs[-1] if verbs else None), (targets[-1] if targets else None)
