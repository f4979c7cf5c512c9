"""Verdicts: what the numbers of a run say together, by rules that stand in docs/verdicts.md and beside every sentence.

A protocol makes a claim about what it tested, and for each of its rules a `Reason`: a sentence with its number, and
whether the rule holds (True), fails (False) or is inconclusive (None). `verdict_of` turns the reasons into a grade.
Rules are pure functions of numbers, so that they are tested on planted cases.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from surgeval.results import Grade, counted, percent
from surgeval.stats import FEW_CLUSTERS, Interval

__all__ = ["FEW_VIDEOS", "Claim", "Effect", "Reason", "Rule", "Verdict", "above", "changed", "every_one", "listed",
           "reference_verdict", "saw_no_images", "share", "verdict_of"]  # fmt: skip

Effect: TypeAlias = Literal["decides", "limits", "remark"]
_LEAST = 0.005  # of a share: less is nothing in whole per cent
_MOST_CLAUSES = 3  # of the sentence; the reasons have them all


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule by name, in words with its threshold; what `decides` must hold, what `limits` must not fail."""

    name: str
    text: str
    effect: Effect = "remark"


FEW_VIDEOS = Rule(
    "videos",
    f"Fewer than {FEW_CLUSTERS} videos carry no claim about others: no test of so few can reach 0.05.",
    "remark",
)


@dataclass(frozen=True, slots=True)
class Reason:
    """One finding: a sentence with its number, whether its rule holds, and a clause for the verdict's sentence.

    `interval` and `baseline` are the number that the sentence is about and what it is held against, for the page to
    draw on a line over `span`; None where a sentence has no one number.
    """

    rule: Rule
    text: str
    holds: bool | None
    clause: str = ""
    interval: Interval | None = None
    baseline: float | None = None
    span: tuple[float, float] = (0.0, 1.0)

    @property
    def grade(self) -> Grade | None:
        """What the rule alone says; None for a remark.

        >>> Reason(Rule("right", "Right more often than not.", "decides"), "It is right in 51 %.", None).grade
        'inconclusive'
        """
        if self.rule.effect == "remark":
            return None
        return "inconclusive" if self.holds is None else "passes" if self.holds else "fails"

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
    """A grade, what it says in one short sentence, the reasons, the claim that was tested, and what decided it.

    >>> verdict = Verdict("passes", "It sees.", because=("it is right in 90 % of the frames",))
    >>> verdict.sentence, str(verdict)
    ('It sees: it is right in 90 % of the frames.', 'passes: It sees: it is right in 90 % of the frames.')
    """

    grade: Grade
    statement: str
    reasons: tuple[Reason, ...] = ()
    claim: str = ""
    because: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """The statement, and the clauses of the rules that decided it."""
        start = self.statement.removesuffix(".")
        return f"{start}: {'; '.join(self.because)}." if self.because else f"{start}."

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "claim": self.claim,
            "grade": self.grade,
            "sentence": self.sentence,
            "reasons": [reason.to_json() for reason in self.reasons],
        }

    def __str__(self) -> str:
        return f"{self.grade}: {self.sentence}"


def verdict_of(claim: Claim, reasons: Sequence[Reason], videos: int) -> Verdict:
    """The grade that follows from the reasons, and the sentence.

    The claim fails where a rule that decides fails. It is inconclusive where a rule that decides is inconclusive, where
    a rule that limits fails, and over fewer than six videos, whatever the rules say.

    >>> right = Rule("right", "Right more often than not.", "decides")
    >>> seen = [Reason(right, "It is right in 90 % of the frames.", True, "it is right in 90 % of the frames")]
    >>> verdict_of(Claim("It sees.", "It does not see."), seen, videos=20).sentence
    'It sees: it is right in 90 % of the frames.'
    >>> str(verdict_of(Claim("It sees.", "It does not see."), seen, videos=3))
    'inconclusive: In these 3 videos it passes; six are needed for a claim.'
    """
    failed = [reason for reason in reasons if reason.rule.effect == "decides" and reason.holds is False]
    unknown = [reason for reason in reasons if reason.rule.effect == "decides" and reason.holds is None]
    unknown += [reason for reason in reasons if reason.rule.effect == "limits" and reason.holds is False]
    deciding = [reason for reason in reasons if reason.rule.effect == "decides"]
    every = tuple(reasons)
    few = videos < FEW_CLUSTERS
    if few:
        every = (*every, Reason(FEW_VIDEOS, f"{counted(videos, 'video')}: too few for a claim about others.", None))
    if not failed and (unknown or not deciding):
        unclear = f"Unclear whether {_clause(claim.yes)}"
        return Verdict("inconclusive", unclear, every, claim.yes, _clauses(unknown))
    if few:
        where = "In this video" if videos == 1 else f"In these {videos} videos"
        found = "fails" if failed else "passes"
        return Verdict("inconclusive", f"{where} it {found}; six are needed for a claim.", every, claim.yes)
    if failed:
        return Verdict("fails", claim.no, every, claim.yes, _clauses([*failed, *unknown]))
    return Verdict("passes", claim.yes, every, claim.yes, _clauses(deciding))


def reference_verdict(claim: Claim, reasons: Sequence[Reason], row: str) -> Verdict:
    """The verdict on a reference row, of which nothing is claimed; `row` says what it does.

    >>> str(reference_verdict(Claim("It sees.", "It does not see."), (), "It repeats the reference answers."))
    'not applicable: Reference row: it repeats the reference answers.'
    """
    return Verdict("not applicable", f"Reference row: {_clause(row)}", tuple(reasons), claim.yes)


def _clause(sentence: str) -> str:
    """A sentence as a part of another."""
    return f"{sentence[:1].lower()}{sentence[1:]}"


def _clauses(reasons: Sequence[Reason]) -> tuple[str, ...]:
    return tuple(reason.clause for reason in reasons if reason.clause)[:_MOST_CLAUSES]


def saw_no_images(rule: Rule) -> Reason:
    """Why an answerer without images fails in every protocol that asks about images."""
    return Reason(rule, "The model was not given any images.", False, "it was not given any images")


def above(interval: Interval, baseline: float = 0.0, margin: float = 0.0) -> bool | None:
    """Whether a number is above a baseline: True where its whole interval is, None where the interval holds it.

    False where the whole interval is below the baseline, or, with a margin, too near to it to matter.

    >>> sure, unsure = (Interval(estimate=0.3, low=low, high=0.4) for low in (0.1, -0.1))
    >>> above(sure), above(unsure), above(Interval(estimate=0.01, low=-0.01, high=0.02), margin=0.05)
    (True, None, False)
    """
    if math.isnan(interval.low) or math.isnan(interval.high):
        return None
    if interval.high < baseline + margin:
        return False
    return True if interval.low > baseline else None


def every_one(*holds: bool | None) -> bool | None:
    """Whether all hold: False where any fails, None where any is inconclusive.

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
