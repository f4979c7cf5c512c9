"""Checks of a whole set: where the right options stand, whether their length gives them away, questions asked twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from scipy.stats import chi2

from surgeval.questions.checks.batch import longest_answer
from surgeval.questions.checks.kind import plain
from surgeval.questions.draft import LETTERS, Draft
from surgeval.stats import wilson

__all__ = ["SET_CHECKS", "LongestBias", "longest_bias"]

_LEVEL = 0.01  # of the test of positions: a balanced set of any size fails one time in a hundred


@dataclass(frozen=True, slots=True)
class LongestBias:
    """How often the right option is the longest, and how often it would be by chance.

    >>> LongestBias(0.75, (0.3, 0.95), 0.25).told
    True
    """

    share: float
    interval: tuple[float, float]
    chance: float

    @property
    def told(self) -> bool:
        """Whether length gives answers away: the whole interval lies above chance."""
        return self.interval[0] > self.chance


def longest_bias(drafts: Mapping[str, Draft]) -> LongestBias | None:
    """The longest-answer bias of a set; None where no question has a longest option.

    >>> draft = Draft("relative", "What do I see?", ("a hook", "clip"), (0,))
    >>> bias = longest_bias({"q": draft})
    >>> bias.share, bias.chance, bias.told
    (1.0, 0.5, False)
    """
    sized = [d for d in drafts.values() if d.options and Counter(map(len, d.options))[max(map(len, d.options))] == 1]
    if not sized:
        return None
    longest, chance = sum(map(longest_answer, sized)), sum(1 / len(draft.options) for draft in sized) / len(sized)
    return LongestBias(longest / len(sized), wilson(longest, len(sized)), chance)


def answer_not_longest(drafts: Mapping[str, Draft]) -> str:
    """The right option is not the longest more often than chance has it."""
    bias = longest_bias(drafts)
    if bias is None or not bias.told:
        return ""
    return f"the right option is the longest of {bias.share:.0%}, by chance of {bias.chance:.0%}"


def positions_balanced(drafts: Mapping[str, Draft]) -> str:
    """The right option stands equally often in each position."""
    for count in sorted({len(draft.options) for draft in drafts.values()}):
        at = Counter(d.answers[0] for d in drafts.values() if len(d.options) == count and len(d.answers) == 1)
        expected = at.total() / count
        if not expected:
            continue
        statistic = sum((at[k] - expected) ** 2 / expected for k in range(count))
        if chi2.sf(statistic, count - 1) < _LEVEL:
            told = ", ".join(f"{LETTERS[k]} {at[k]}" for k in range(count))
            return f"of {at.total()} questions with {count} options the right one is {told}"
    return ""


def questions_distinct(drafts: Mapping[str, Draft]) -> str:
    """No two questions about the same pictures have the same text and the same options."""
    seen: dict[tuple[str, ...], str] = {}
    for name, draft in drafts.items():
        key = (draft.scene, plain(draft.question), *sorted(map(plain, draft.options)))
        if key in seen:
            return f"{seen[key]} and {name} ask the same"
        seen[key] = name
    return ""


SET_CHECKS = (positions_balanced, answer_not_longest, questions_distinct)
