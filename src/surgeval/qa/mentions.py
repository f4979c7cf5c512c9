"""Which classes of a label space a free text names, and where.

Spellings and synonyms come from `vocab`. Spans count characters of the text as it was passed, because the tokens of a
model are found by them; so nothing is rewritten before it is searched. A class counts once, at its first mention.

A denied mention does not count: "I do not see a hook", "no grasper", "neither a hook nor scissors", "Hook: no". A
negation reaches to the end of its clause; "but", "only", "except" and similar words end it. A negation after a list
denies the whole list ("The hook and the scissors are not visible"). Mentions in questions do not count either.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Generic, TypeVar

from surgeval.records import Triplet
from surgeval.vocab import LabelSpace, other_instruments, spellings

__all__ = ["OUTSIDE", "Mentions", "Word", "find_denied", "instrument_mentions", "split_clauses", "triplet_mentions"]

OUTSIDE = -1  # the class of a tool, verb or target that the label space does not have
T = TypeVar("T")


@dataclass(frozen=True)
class Mentions(Generic[T]):
    """Classes of a label space that a text names.

    `spans` holds the first mention of each class, `text[start:end]`; `unparsed` the pieces of the text that name
    something outside the label space.

    >>> Mentions((0, 2), ((0, 7), (9, 13)), ("trocar",)).unparsed_rate
    0.3333333333333333
    """

    classes: tuple[T, ...]
    spans: tuple[tuple[int, int], ...]
    unparsed: tuple[str, ...]

    @property
    def unparsed_rate(self) -> float:
        """Share of the named things that are outside the label space; 0 if nothing is named."""
        named = len(self.classes) + len(self.unparsed)
        return len(self.unparsed) / named if named else 0.0


_ITEM = re.compile(r"[^,;/\n|]+")
_BULLET = re.compile(r"^[\s*•\-–>#\"'\[({]*(?:\d{1,2}[.):]\s*)?(?:and |or )?(?:an? |the )?", re.I)
_FILLER = frozenset(
    "none no yes nothing etc others unknown n/a and or tools instruments image surgical".split()  # noqa: SIM905
)
_LONGEST_ITEM = 4  # words; a longer piece is prose


def instrument_mentions(text: str, space: LabelSpace) -> Mentions[int]:
    """The instruments that a text names and does not deny, in the order of their first mention.

    Tools outside the label space are unparsed. If the whole text is a list, so are its items without a known tool.

    >>> from surgeval.vocab import load_labels
    >>> space = load_labels("cholec80")
    >>> mentions = instrument_mentions("A grasper and a clip applier, but no hook. A trocar is seen too.", space)
    >>> [space.instruments[k] for k in mentions.classes], mentions.spans, mentions.unparsed
    (['Grasper', 'Clipper'], ((2, 9), (16, 28)), ('trocar',))
    """
    known = _open_lexicon(space, "instrument")
    first: dict[int, tuple[int, int]] = {}
    unparsed: dict[str, None] = {}
    covered: list[tuple[int, int]] = []
    for start, end, is_question in split_clauses(text):
        words = list(known.words(text, start, end))
        covered += [(word.start, word.end) for word in words]
        for word, is_denied in zip(words, find_denied(text, words, start, end), strict=True):
            if is_denied or is_question:
                continue
            if word.number == OUTSIDE:
                unparsed.setdefault(text[word.start : word.end].casefold())
            else:
                first.setdefault(word.number, (word.start, word.end))
    for item in _unknown_items(text, covered):
        unparsed.setdefault(item)
    return Mentions(tuple(first), tuple(first.values()), tuple(unparsed))


def _unknown_items(text: str, covered: list[tuple[int, int]]) -> list[str]:
    """Items of a list such as "grasper, stapling gun" that have no known word; none if the text is prose."""
    items = [(item.start(), item.end(), _BULLET.sub("", item[0]).strip(" .*\"')]}")) for item in _ITEM.finditer(text)]
    items = [item for item in items if item[2]]
    if any(
        len(words.split()) > _LONGEST_ITEM or re.search(r"[.:?]\s|\b(?:is|are|see)\b", words) for _, _, words in items
    ):
        return []
    starts = {start for start, _ in covered}
    return [
        words.casefold()
        for start, end, words in items
        if words.casefold() not in _FILLER and not any(position in starts for position in range(start, end))
    ]


_JOINED = re.compile(r"\s{0,2}(?:,|and|&|,\s?and)\s{0,2}(?:(?:an?|the)\s)?", re.I)
_BY = re.compile(r"\b(?:by|with|using|via)\s(?:(?:an?|the)\s)?$", re.I)
_LABELLED = re.compile(r"\n(?=[\s*\-•]{0,6}(?:verb|action|target|tissue|organ)\b)", re.I)
_LINE_OF_THREE = re.compile(r"[\s*•\-–>]*(?:\d{1,2}[.):]\s*)?([A-Za-z_]+[ ,\-]+[A-Za-z_]+[ ,\-]+[A-Za-z_]+)\s*$")

_LONGEST_LIST = 4  # verbs or targets of one instrument
_LONGEST_PIECE = 60  # characters of an unparsed piece


@dataclass(frozen=True, slots=True)
class _Words:
    instruments: _Lexicon
    verbs: _Lexicon
    targets: _Lexicon


def triplet_mentions(text: str, space: LabelSpace) -> Mentions[Triplet]:
    r"""The triplets that a text names and does not deny, in the order of their first mention.

    The text has lines "instrument verb target", or sentences that say the same. A verb or target outside the label
    space becomes −1, and its words are unparsed; so is a line of three words without a known instrument. Combinations
    that are not a class of the space are returned too.

    >>> from surgeval.vocab import load_labels
    >>> space = load_labels("cholect50")
    >>> mentions = triplet_mentions("grasper retract gallbladder\nhook manipulate liver", space)
    >>> mentions.classes == (Triplet(0, 1, 0), Triplet(2, -1, 8)), mentions.unparsed
    (True, ('hook manipulate liver',))
    """
    words = _Words(*(_open_lexicon(space, component) for component in ("instrument", "verb", "target")))
    first: dict[Triplet, tuple[int, int]] = {}
    unparsed: dict[str, None] = {}
    unlabelled = _LABELLED.sub(" ", text)  # same length, so spans remain valid
    for start, end, is_question in split_clauses(unlabelled):
        mentions = [] if is_question else list(_read_clause(unlabelled, start, end, words))
        for triplet, span in mentions:
            if triplet.instrument != OUTSIDE:
                first.setdefault(triplet, span)
            if OUTSIDE in (triplet.instrument, triplet.verb, triplet.target):
                unparsed.setdefault(" ".join(unlabelled[span[0] : span[1]].split()))
        line = _LINE_OF_THREE.fullmatch(unlabelled[start:end]) if not (mentions or is_question) else None
        if line and words.instruments.first(unlabelled, start, end) is None:
            unparsed.setdefault(" ".join(line[1].split()))
    return Mentions(tuple(first), tuple(first.values()), tuple(unparsed))


def _read_clause(text: str, start: int, end: int, words: _Words) -> Iterator[tuple[Triplet, tuple[int, int]]]:
    """The triplets of one clause, each with its span."""
    subjects = _find_subjects(text, start, end, words)
    are_denied = find_denied(text, subjects, start, end)
    waiting: dict[int, Word] = {}  # instruments that share the next verb: "the grasper and the hook dissect …"
    behind = start
    for number, subject in enumerate(subjects):
        following = subjects[number + 1] if number + 1 < len(subjects) else None
        limit = following.start if following else end
        if following and _JOINED.fullmatch(text, subject.end, limit):
            waiting.setdefault(subject.number, subject)
            continue
        verbs = _read_list(words.verbs, text, subject.end, limit)
        targets = _read_list(words.targets, text, verbs[-1].end if verbs else subject.end, limit)
        if not verbs and not targets and _BY.search(text[behind : subject.start]):  # "dissected by the hook"
            verbs, targets = (
                list(kind.words(text, behind, subject.start))[-1:] for kind in (words.verbs, words.targets)
            )
        parts = [subject, *verbs, *targets]
        last = max(word.end for word in parts)
        if not verbs or not targets:  # the words in between could not be parsed
            last = max(last, min(limit, subject.end + _LONGEST_PIECE))
            last = subject.end + len(text[subject.end : last].rstrip(" ,;.\t-*"))
        opening = min(word.start for word in parts)
        for actor in (*waiting.values(), subject) if not are_denied[number] else ():
            for verb, target in product(_numbers(verbs), _numbers(targets)):
                yield Triplet(actor.number, verb, target), (min(actor.start, opening), last)
        waiting, behind = {}, max(last, subject.end)


def _read_list(lexicon: _Lexicon, text: str, start: int, end: int) -> list[Word]:
    """The first known word in a part of the text and those joined to it, as in "grasping and retracting"."""
    listed: list[Word] = []
    for word in lexicon.words(text, start, end):
        if listed and (len(listed) == _LONGEST_LIST or not _JOINED.fullmatch(text, listed[-1].end, word.start)):
            break
        listed.append(word)
    return listed


def _numbers(words: list[Word]) -> list[int]:
    return [word.number for word in words] or [OUTSIDE]


def _find_subjects(text: str, start: int, end: int, words: _Words) -> list[Word]:
    """The instruments of a clause that act, without those that are the target of the verb before them."""
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


_GAP = r"[ \t_-]{0,2}"


@dataclass(frozen=True, slots=True)
class Word:
    """A class (or OUTSIDE) named at `text[start:end]`."""

    number: int
    start: int
    end: int


class _Lexicon:
    """The spellings of one component as a pattern, the longest first.

    The words of a spelling may be separated by spaces, "-", "_" or nothing ("gallbladder").
    """

    def __init__(self, known: dict[str, int]) -> None:
        self._ids = {_key(spelling): number for spelling, number in known.items()}
        longest = sorted(known, key=lambda spelling: (-len(spelling), spelling))
        patterns = (_GAP.join(re.escape(word) for word in spelling.split(" ")) for spelling in longest)
        self._pattern = re.compile(rf"(?<![^\W_])(?:{'|'.join(patterns) or '(?!)'})(?![^\W_])", re.I)

    def words(self, text: str, start: int = 0, end: int | None = None) -> Iterator[Word]:
        """Every spelling in a part of the text, from left to right, without overlaps."""
        for match in self._pattern.finditer(text, start, len(text) if end is None else end):
            yield Word(self._ids.get(_key(match[0]), OUTSIDE), match.start(), match.end())

    def first(self, text: str, start: int, end: int) -> Word | None:
        """The first spelling in a part of the text."""
        return next(self.words(text, start, end), None)


def _key(text: str) -> str:
    return re.sub(r"[\s_-]", "", text.casefold())


def _open_lexicon(space: LabelSpace, component: str) -> _Lexicon:
    """The lexicon of a component; for instruments it includes tools outside the space."""
    return _compile_lexicon(component, tuple(spellings(space, component).items()))


@lru_cache(maxsize=64)
def _compile_lexicon(component: str, known: tuple[tuple[str, int], ...]) -> _Lexicon:
    others = dict.fromkeys(other_instruments(), OUTSIDE) if component == "instrument" else {}
    return _Lexicon({**others, **dict(known)})


_CLAUSE = re.compile(r"[;!?\n]|\.(?=\s|$)")
_NEGATION = re.compile(
    r"\b(?:not(?! only| just| sure)|no(?! doubt|[.,])|neither|nor|never|without|cannot|none of|lacks?|lacking|"
    r"absence of|absent|whether|unclear if|rather than|instead of|unable to see|fail(?:s|ed)? to show)\b"
    r"|n['’]t\b(?! only| just)",
    re.I,
)
_TURN = re.compile(
    r"\b(?:but|however|only|just|except|besides|although|though|whereas|while|other than|apart from|aside from|yet|"
    r"instead(?! of)|there (?:is|are)(?! no)|I (?:can )?see|it shows|is visible|are visible)\b",
    re.I,
)
_NEW_PHRASE = re.compile(r"(?:,| and|,? and) (?:an?|the|one|two|three|another|some)\s?$", re.I)
_AFTER = re.compile(
    r"[\s)*_\"'`]{0,4}(?:[:(=–—-]{1,2}[\s*_]{0,3}|(?:is|are|was|were|does|do|can|could|has|have|seems?|appears?)"
    r"(?: (?:clearly|also|currently|definitely|both|all|to be|be)){0,2})? ?"
    r"(?:not\b|no\b|none\b|n['’]t|cannot\b|(?:isn|aren|wasn|weren|doesn|can|don)['’]t\b|"
    r"absent\b|missing\b|out of view\b|false\b|✗|❌|✘)",
    re.I,
)
_ARTICLE = re.compile(r"\s?(?:(?:an?|the|any)\s)?", re.I)
_LISTED = re.compile(r"\s{0,2}(?:,|and|or|nor|,\s?and|,\s?or|/)\s{0,2}(?:(?:an?|the|any)\s)?", re.I)


def split_clauses(text: str) -> list[tuple[int, int, bool]]:
    """Start and end of every clause of a text, and whether it is a question."""
    parts = []
    start = 0
    for mark in _CLAUSE.finditer(text):
        parts.append((start, mark.start(), mark[0] == "?"))
        start = mark.end()
    return [*parts, (start, len(text), False)]


def find_denied(text: str, words: Sequence[Word], start: int, end: int) -> list[bool]:
    """For each word of the clause from `start` to `end`, whether the clause denies it."""
    flags = []
    cover: str | None = None  # the negation in force at the last word
    behind = start
    for word in words:
        cover = _update_negation(text[behind : word.start], cover)
        flags.append(cover is not None)
        behind = word.end
    later = False
    for number in range(len(words) - 1, -1, -1):
        limit = words[number + 1].start if number + 1 < len(words) else end
        listed = number + 1 < len(words) and bool(_LISTED.fullmatch(text, words[number].end, limit))
        later = _is_denied_after(text, words[number].end, limit, last=number + 1 == len(words)) or (later and listed)
        flags[number] = flags[number] or later
    return flags


def _is_denied_after(text: str, start: int, limit: int, *, last: bool) -> bool:
    """Whether a negation after a word denies it; in "a grasper (not a hook)" it denies the next word."""
    match = _AFTER.match(text, start, limit)
    return match is not None and (last or not _ARTICLE.fullmatch(text, match.end(), limit))


def _update_negation(between: str, cover: str | None) -> str | None:
    """The negation in force after a stretch of text, given the one in force before it."""
    events = [(match.end(), match[0].casefold()) for match in _NEGATION.finditer(between)]
    turns = [match.end() for match in _TURN.finditer(between)]
    last_turn = turns[-1] if turns else -1
    if events and events[-1][0] >= last_turn:
        return events[-1][1]
    if turns or (cover == "no" and _NEW_PHRASE.search(between)):
        return None
    return cover
