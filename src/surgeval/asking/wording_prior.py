"""Answer from the wording of a question alone: counts of answers, and naive Bayes over the options of an item.

Nothing is learnt from the video that is asked about: its own answers are subtracted from every count. A model that does
not beat this baseline gives no evidence of using the images.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from surgeval.datasets import clock
from surgeval.qa import Option, find_options, load_answer_formats
from surgeval.records import IntentQuestion, VqaQuestion
from surgeval.vocab import foreign_objects

__all__ = ["ChoicePrior", "WordingPrior"]

_CLOCK = re.compile(r"\d{1,2}:\d\d(?::\d\d)?")
_NUMBER = re.compile(r"\d+")
_START = 3  # words
_WORD = re.compile(r"[^\W_]+")
_UNSEEN = 0.3  # added to the counts of options, so that options never offered have odds
_OBJECTS = re.compile(
    r"\b(?:" + "|".join(re.escape(foreign.name.casefold()) for foreign in foreign_objects()) + r")(?:e?s)?\b"
)


class WordingPrior:
    """Counts of answers by wording, from fine to coarse: text, text without object names, first words, format.

    >>> known = [VqaQuestion(f"q{v}", v, 0, 9, "", "Is a clip visible?", "object_identification", "binary", a)
    ...          for v, a in (("v1", "Yes"), ("v2", "No"), ("v3", "No"))]
    >>> prior = WordingPrior(known)
    >>> [prior.answer(question) for question in known]  # v2's own "No" does not count for v2
    ['No', 'No', 'No']
    """

    def __init__(self, train: Iterable[VqaQuestion]) -> None:
        self._all: defaultdict[Hashable, Counter[str]] = defaultdict(Counter)
        self._own: defaultdict[Hashable, Counter[str]] = defaultdict(Counter)
        for question in train:
            for key in _wording_keys(question):
                self._all[key][_countable_answer(question)] += 1
                self._own[question.video, key][_countable_answer(question)] += 1

    def answer(self, question: VqaQuestion) -> str:
        """Return the most frequent answer of other videos at the finest wording that has one, or the default."""
        offered = find_options(question.text) if question.format == "multiple_choice" else ()
        for key in _wording_keys(question):
            counts = self._all[key] - self._own[question.video, key] if key in self._all else Counter[str]()
            answer = _choose_answer(question, counts, offered)
            if answer is not None:
                return answer
        format = load_answer_formats().get(question.format)
        return "unknown" if format is None else format.default_answer(question)


def _choose_answer(question: VqaQuestion, counts: Mapping[str, int], offered: tuple[Option, ...]) -> str | None:
    if offered:
        best = max(offered, key=lambda option: counts.get(option.text.casefold(), 0))
        return best.whole if counts.get(best.text.casefold(), 0) else None
    if not counts:
        return None
    if question.format == "time":
        share = _median({int(text): count for text, count in counts.items() if text.isdigit()})
        return None if share is None else clock(question.start + (question.end - question.start) * share / 100)
    return min(counts, key=lambda text: (-counts[text], text))


def _countable_answer(question: VqaQuestion) -> str:
    """Return what is counted: the answer, an option's text without its letter, or a time as percent of the window."""
    if question.format == "multiple_choice":
        offered = {option.whole: option.text.casefold() for option in find_options(question.text)}
        return offered.get(question.answer.strip(), question.answer.strip())
    if question.format == "time":
        return _percent_of_window(question)
    return question.answer.strip()


def _percent_of_window(question: VqaQuestion) -> str:
    match = re.match(r"\s*(\d\d):(\d\d):(\d\d)", question.answer)
    if match is None or question.end <= question.start:
        return ""
    seconds = int(match[1]) * 3600 + int(match[2]) * 60 + int(match[3])
    share = (seconds - question.start) / (question.end - question.start)
    return str(round(100 * min(max(share, 0.0), 1.0)))


def _median(counts: Mapping[int, int]) -> int | None:
    half, seen = sum(counts.values()) / 2, 0
    for value in sorted(counts):
        seen += counts[value]
        if seen >= half:
            return value
    return None


def _wording_keys(question: VqaQuestion) -> tuple[Hashable, ...]:
    style = (question.format, str(question.format_options.get("pattern", "")))
    offered = find_options(question.text)
    text = question.text[: question.text.find(offered[0].whole)] if offered else question.text
    text = " ".join(_NUMBER.sub("#", _CLOCK.sub("@", text.casefold())).split())
    return (
        (*style, "text", text),
        (*style, "kind", _OBJECTS.sub("<object>", text)),
        (*style, "start", " ".join(text.split()[:_START])),
        style,
    )


class _ClueCounts(NamedTuple):
    """How often each clue belonged to a right option, and to a wrong one."""

    right: Counter[Hashable]
    wrong: Counter[Hashable]


class ChoicePrior:
    """Chooses options by their words, with naive Bayes: by how often options like it were right and wrong elsewhere.

    The clues are an option's text alone, with the skill, with skill and phase, with each entry of the context, with the
    words of the stem, and the option's own words. Each of them is one factor of the odds. All words together are one
    factor, because long stems would otherwise outweigh the rest.

    Twins of traps (the same words over a true premise, where rejecting is wrong) are not learnt from: they would cancel
    the counts of the traps. Published sets have traps without twins, and the baseline measures what words reveal there.

    >>> def item(video, phase, answer):
    ...     return IntentQuestion(video, "laparoscopy", video, (), "temporal", "prospective", "What is next?",
    ...                           ("to clip", "to cut"), answer, context={"phase": phase})
    >>> prior = ChoicePrior([item("v1", "dissection", 0), item("v2", "division", 1), item("v3", "division", 1)])
    >>> prior.choose(item("v4", "dissection", 1)), prior.choose(item("v4", "division", 0))
    (0, 1)
    """

    def __init__(self, train: Iterable[IntentQuestion]) -> None:
        self._by_video: defaultdict[str, list[IntentQuestion]] = defaultdict(list)
        known = tuple(train)
        twins = {item.twin for item in known}
        for item in known:
            if item.id not in twins:
                self._by_video[item.video].append(item)
        self._all = _count_clues(item for items in self._by_video.values() for item in items)
        self._own = lru_cache(maxsize=4)(lambda video: _count_clues(self._by_video.get(video, ())))

    def choose(self, item: IntentQuestion) -> int:
        """Return the option with the best odds. Ties are broken by text, so the order of options has no influence."""
        own, others = self._own(item.video), len(item.options) - 1

        def odds(clue: Hashable) -> float:
            right = self._all.right[clue] - own.right[clue]
            wrong = self._all.wrong[clue] - own.wrong[clue]
            return math.log((right + _UNSEEN) / (wrong + _UNSEEN * others))

        def score(option: str) -> tuple[float, str]:
            factors = (sum(map(odds, clues)) / len(clues) for clues in _clue_factors(item, option))
            return round(sum(factors), 9), option

        return max(range(len(item.options)), key=lambda index: score(item.options[index]))


def _count_clues(items: Iterable[IntentQuestion]) -> _ClueCounts:
    counts = _ClueCounts(Counter(), Counter())
    for item in items:
        for index, option in enumerate(item.options):
            tally = counts.right if index == item.answer else counts.wrong
            for clues in _clue_factors(item, option):
                tally.update(clues)
    return counts


def _clue_factors(item: IntentQuestion, option: str) -> Iterator[Sequence[Hashable]]:
    text, phase = option.casefold(), str(item.context.get("phase", ""))
    yield [text]
    yield [(text, "skill", item.skill)]
    yield [(text, "skill", item.skill, "phase", phase)]
    for key, value in item.context.items():
        yield [(text, "context", key, str(value))]
    yield [(text, "stem", word) for word in _words(item.question)] or [text]
    yield [("word", word) for word in _words(option)] or [text]


def _words(text: str) -> list[str]:
    return sorted(set(_WORD.findall(text.casefold())))
