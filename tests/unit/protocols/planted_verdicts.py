"""What the tests of verdicts share."""

from __future__ import annotations

from typing import get_args

from surgeval.protocols.verdict import Verdict
from surgeval.results import Grade
from surgeval.stats import Interval


def near(value: float, half: float = 0.03, clusters: int = 20) -> Interval:
    return Interval(estimate=value, low=value - half, high=value + half, clusters=clusters)


def rank_of(verdict: Verdict) -> int:
    """0 is best."""
    return get_args(Grade).index(verdict.grade)
