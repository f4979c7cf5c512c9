"""Verdicts: what the numbers of a run say together, by rules that stand in docs/verdicts.md and beside every sentence.

A protocol makes a claim about what it tested, and for each of its rules a `Reason`: a sentence with its number, and
whether the rule holds (True), fails (False) or cannot be told (None). `verdict_of` turns the reasons into a grade.
Rules are pure functions of numbers, so that they are tested on planted cases.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from surgeval.results import percent
from surgeval.stats import FEW_CLUSTERS, Interval

__all__ = ["FEW_VIDEOS", "GRADES", "Claim", "Effect", "Grade", "Reason", "Rule", "Verdict", "above", "changed",
           "every_one", "listed", "share", "verdict_of"]  # fmt: skip

Grade: TypeAlias = Literal["supported", "in these videos", "not shown", "contradicted"]
Effect: TypeAlias = Literal["decides", "limits", "remark"]
GRADES: tuple[Grade, ...] = ("supported", "in these videos", "not shown", "contradicted")
_LEAST = 0.005  # of a share: less is nothing in whole per cent
_MOST_CLAUSES = 3  # of the sentence; the reasons say all


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule by name, in words with its threshold; what `decides` must hold, what `limits` must not fail."""

    name: str
    text: str
    effect: Effect = "remark"


FEW_VIDEOS = Rule(
    "videos", f"Fewer than {FEW_CLUSTERS} videos carry no claim beyond themselves: no test could reach 0.05.", "remark"
)


@dataclass(frozen=True, slots=True)
class Reason:
    """One finding: the sentence with its number, whether its rule holds, and a clause for the verdict's sentence."""

    rule: Rule
    text: str
    holds: bool | None
    clause: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"rule": self.rule.name, "effect": self.rule.effect, "holds": self.holds, "text": self.text}


@dataclass(frozen=True, slots=True)
class Claim:
    """What is tested, as two sentences: that it is so, and that it is not."""

    yes: str
    no: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """A grade, the sentence that says it, and the reasons."""

    grade: Grade
    sentence: str
    reasons: tuple[Reason, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "grade": self.grade,
            "sentence": self.sentence,
            "reasons": [reason.to_json() for reason in self.reasons],
        }

    def __str__(self) -> str:
        # "Not shown that …" and "In these videos …" say their grade; what is so instead must not look contradicted.
        if self.grade == "supported":
            return f"supported: {self.sentence}"
        return f"contradicted, for {_clause(self.sentence)}" if self.grade == "contradicted" else self.sentence


def verdict_of(claim: Claim, reasons: Sequence[Reason], videos: int) -> Verdict:
    """The grade that follows from the reasons, and the sentence.

    A rule that decides and fails contradicts the claim; one that decides and cannot be told, or limits and fails,
    leaves it not shown. Few videos carry no claim about others: what they support is supported in these videos only,
    and what they speak against is not shown.

    >>> right = Rule("right", "Right more often than not.", "decides")
    >>> said = [Reason(right, "It is right in 90 % of the frames.", True, "it is right in 90 % of the frames")]
    >>> verdict_of(Claim("It sees.", "It does not see."), said, videos=20).sentence
    'It sees: it is right in 90 % of the frames.'
    >>> verdict_of(Claim("It sees.", "It does not see."), said, videos=3).grade
    'in these videos'
    >>> missed = [Reason(right, "It is never right.", False, "it is never right")]
    >>> str(verdict_of(Claim("It sees.", "It does not see."), missed, videos=1))
    'In this video it does not see: it is never right; too few videos for a claim about others.'
    """
    failed = [reason for reason in reasons if reason.rule.effect == "decides" and reason.holds is False]
    unknown = [reason for reason in reasons if reason.rule.effect == "decides" and reason.holds is None]
    unknown += [reason for reason in reasons if reason.rule.effect == "limits" and reason.holds is False]
    every = tuple(reasons)
    few = videos < FEW_CLUSTERS
    if few:
        text = f"{videos} video{'' if videos == 1 else 's'}: too few for a claim about others."
        every = (*every, Reason(FEW_VIDEOS, text, None))
    if failed:
        against = [*failed, *unknown]
        if few:
            return Verdict("not shown", _in_these(videos, claim.no, against), every)
        return Verdict("contradicted", _sentence(claim.no, against), every)
    if unknown or not any(reason.rule.effect == "decides" for reason in reasons):
        return Verdict("not shown", _sentence(f"Not shown that {_clause(claim.yes)}", unknown), every)
    shown = [reason for reason in reasons if reason.rule.effect == "decides"]
    if few:
        return Verdict("in these videos", _in_these(videos, claim.yes, shown), every)
    return Verdict("supported", _sentence(claim.yes, shown), every)


def _in_these(videos: int, claimed: str, reasons: Sequence[Reason]) -> str:
    where = "In this video" if videos == 1 else f"In these {videos} videos"
    claim = _sentence(f"{where} {_clause(claimed)}", reasons).removesuffix(".")
    return f"{claim}; too few videos for a claim about others."


def _clause(sentence: str) -> str:
    """A sentence as a part of another."""
    return f"{sentence[:1].lower()}{sentence[1:]}"


def _sentence(opening: str, reasons: Sequence[Reason]) -> str:
    clauses = [reason.clause for reason in reasons if reason.clause][:_MOST_CLAUSES]
    start = opening.removesuffix(".")
    return f"{start}: {'; '.join(clauses)}." if clauses else f"{start}."


def above(interval: Interval, floor: float = 0.0, margin: float = 0.0) -> bool | None:
    """Whether a number is above a floor: True where its whole interval is, None where the interval holds the floor.

    False where the whole interval is below the floor, or, with a margin, too near to it to matter.

    >>> sure, unsure = (Interval(estimate=0.3, low=low, high=0.4) for low in (0.1, -0.1))
    >>> above(sure), above(unsure), above(Interval(estimate=0.01, low=-0.01, high=0.02), margin=0.05)
    (True, None, False)
    """
    if math.isnan(interval.low) or math.isnan(interval.high):
        return None
    if interval.high < floor + margin:
        return False
    return True if interval.low > floor else None


def every_one(*holds: bool | None) -> bool | None:
    """Whether all hold: False where any fails, None where any cannot be told.

    >>> every_one(True, None), every_one(True, None, False), every_one(True, True)
    (None, False, True)
    """
    return False if False in holds else None if None in holds else True


def share(interval: Interval) -> str:
    """A share with its interval in per cent: `34 % [31, 45]`.

    >>> share(Interval(estimate=0.341, low=0.312, high=0.449))
    '34 % [31, 45]'
    >>> share(Interval(estimate=1.0, low=math.nan, high=math.nan))
    '100 %'
    """
    if math.isnan(interval.low):
        return percent(interval.estimate)
    return f"{percent(interval.estimate)} [{', '.join(_whole(end) for end in (interval.low, interval.high))}]"


def changed(interval: Interval) -> str:
    """A difference of shares in points, with its sign: `+12 points [−1, +25]`; in words where no video has any.

    >>> changed(Interval(estimate=-0.05, low=-0.08, high=-0.02)), changed(Interval(estimate=0.12, low=-0.01, high=0.25))
    ('−5 points [−8, −2]', '+12 points [−1, +25]')
    >>> changed(Interval(estimate=0.0, low=0.0, high=0.0))
    'no difference in any video'
    """
    if interval.low == interval.high == 0:
        return "no difference in any video"
    size = _signed(interval.estimate)
    points = f"{size} point{'' if size[1:] == '1' else 's'}"
    return points if math.isnan(interval.low) else f"{points} [{_signed(interval.low)}, {_signed(interval.high)}]"


def _signed(value: float) -> str:
    text = _whole(value)
    return f"+{text}" if value > 0 and text != "0" else text


def listed(names: Sequence[str], most: int = 3, between: str = ", ") -> str:
    """A few names, and how many more there are.

    >>> listed(["hook", "bag", "clip", "mesh"]), listed(["hook"])
    ('hook, bag, clip and 1 more', 'hook')
    """
    rest = len(names) - most
    return between.join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


def _whole(value: float) -> str:
    """A share as whole per cent, rounded as `percent` does it, with a minus where it has one."""
    size = percent(abs(value)).removeprefix("over ").removesuffix(" %") if abs(value) >= _LEAST else "0"
    return f"\u2212{size}" if value < 0 and size != "0" else size
