"""What the words of a multiple-choice item give away: naive Bayes over its options, learnt from other videos.

Each option is judged by how often options like it were right and wrong elsewhere: its text alone, with the skill, with
skill and phase, with every entry of the context, with the words of the stem, and its own words. Each of these clues is
one factor of the odds; words that belong together share one factor, or long stems would drown the rest. Twins of traps
(the same words over a true premise, rejecting is wrong) are not learnt from: their counts would cancel those of the
traps, and the row is to show what words are worth in a set that has traps alone, as published ones do.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from surgeval.records import IntentQuestion

__all__ = ["ChoicePrior"]

_WORD = re.compile(r"[^\W_]+")
_UNSEEN = 0.3  # what stands for the counts of options that were never offered


class _ClueCounts(NamedTuple):
    """How often a clue went with a right option, and with a wrong one."""

    right: Counter[Hashable]
    wrong: Counter[Hashable]


class ChoicePrior:
    """Chooses options by their words; what is known of the asked video itself is left out of every count.

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
        self._all = _count(item for items in self._by_video.values() for item in items)
        self._own = lru_cache(maxsize=4)(lambda video: _count(self._by_video.get(video, ())))

    def choose(self, item: IntentQuestion) -> int:
        """The option with the best odds; equal ones by their text, so that their order never decides."""
        own, others = self._own(item.video), len(item.options) - 1

        def odds(clue: Hashable) -> float:
            right = self._all.right[clue] - own.right[clue]
            wrong = self._all.wrong[clue] - own.wrong[clue]
            return math.log((right + _UNSEEN) / (wrong + _UNSEEN * others))

        def score(option: str) -> tuple[float, str]:
            factors = (sum(map(odds, clues)) / len(clues) for clues in _factors(item, option))
            return round(sum(factors), 9), option

        return max(range(len(item.options)), key=lambda index: score(item.options[index]))


def _count(items: Iterable[IntentQuestion]) -> _ClueCounts:
    counts = _ClueCounts(Counter(), Counter())
    for item in items:
        for index, option in enumerate(item.options):
            tally = counts.right if index == item.answer else counts.wrong
            for clues in _factors(item, option):
                tally.update(clues)
    return counts


def _factors(item: IntentQuestion, option: str) -> Iterator[Sequence[Hashable]]:
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
