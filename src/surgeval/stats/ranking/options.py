"""The named choices of a ranking, checked once.

The defaults are the recommended ranking; `docs/ranking.md` says what each alternative is and why it is not the default.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from surgeval.errors import BadInput, did_you_mean, locate
from surgeval.stats.interval import FEW_CLUSTERS
from surgeval.stats.means import Point

__all__ = [
    "RESAMPLES_OF_A_RANKING",
    "Collapse",
    "Correction",
    "RankOptions",
    "RankScheme",
    "Resolve",
    "Sided",
    "Test",
    "WinTies",
]

RankScheme: TypeAlias = Literal["cluster", "two_level", "question"]
Test: TypeAlias = Literal["bootstrap", "exchange"]
Sided: TypeAlias = Literal["two", "one"]
Correction: TypeAlias = Literal["none", "holm", "bonferroni"]
Collapse: TypeAlias = Literal["pairwise", "upper_bound", "wins", "leader", "chain", "closure"]
Resolve: TypeAlias = Literal["top3", "all", "none"]
WinTies: TypeAlias = Literal["split", "all", "none", "random", "head_to_head"]

RESAMPLES_OF_A_RANKING = 10_000
_LEAST_ALPHA = 1e-9  # below, no number of resamples that fits a computer could show a difference


@dataclass(frozen=True, slots=True, kw_only=True)
class RankOptions:
    """How a ranking is made.

    >>> RankOptions(sided="one").tests(models=3), RankOptions().tests(models=3)
    (6, 3)
    >>> RankOptions(correction="fdr")
    Traceback (most recent call last):
    surgeval.errors.BadInput: correction: found 'fdr', expected one of none, holm, bonferroni
    """

    alpha: float = 0.05
    resamples: int = RESAMPLES_OF_A_RANKING
    scheme: RankScheme = "cluster"
    sided: Sided = "two"
    correction: Correction = "none"
    collapse: Collapse = "pairwise"
    resolve: Resolve = "top3"
    win_ties: WinTies = "split"
    point: Point = "flat"
    min_clusters: int = FEW_CLUSTERS
    seed: int = 0
    test: Test = "bootstrap"

    def __post_init__(self) -> None:
        for name, kind in (
            ("scheme", RankScheme), ("sided", Sided), ("correction", Correction), ("collapse", Collapse),
            ("resolve", Resolve), ("win_ties", WinTies), ("point", Point), ("test", Test),
        ):  # fmt: skip
            known, setting = get_args(kind), getattr(self, name)
            if setting not in known:
                expected = f"one of {', '.join(known)}{did_you_mean(setting, known)}"
                raise BadInput(locate(name, None, None, f"found {setting!r}, expected {expected}"))
        alpha: object = self.alpha  # a caller without a type checker may pass anything
        if isinstance(alpha, bool) or not isinstance(alpha, (int, float)) or not _LEAST_ALPHA <= alpha < 1:
            wanted = f"a number between 0 and 1, such as 0.05, and not below {_LEAST_ALPHA:g}"
            raise BadInput(locate("alpha", None, None, f"found {alpha!r}, expected {wanted}"))
        for name, least in (("resamples", 1), ("min_clusters", 2), ("seed", None)):
            value: object = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
                raise BadInput(locate(name, None, None, f"found {value!r}, expected a whole number"))
            if least is not None and value < least:
                raise BadInput(
                    locate(name, None, None, f"found {value!r}, expected a whole number of at least {least}")
                )
        if self.scheme == "question" and self.point == "macro":
            raise BadInput("point: found macro, expected flat, because scheme question knows no videos to average over")
        if self.test == "exchange" and self.scheme != "cluster":
            raise BadInput(
                f"scheme: found {self.scheme}, expected cluster, because the exchange test swaps whole videos"
            )

    def tests(self, models: int) -> int:
        """Tests per bucket: unordered pairs, or both directions of each when one-sided."""
        return models * (models - 1) // (2 if self.sided == "two" else 1)

    def exact(self, videos: int) -> bool:
        """Whether the exchange test goes through all swaps of this many videos (mirror images are one)."""
        return videos <= 62 and 2 ** (videos - 1) <= self.resamples

    def smallest_p(self, models: int, videos: int) -> float:
        """The smallest p (after correction) that this number of resamples, or of exchanges of the videos, can give."""
        family = 1 if self.correction == "none" else max(self.tests(models), 1)
        tails = 2 if self.sided == "two" else 1
        if self.test == "exchange":
            return min(1.0, family * (tails / 2**videos if self.exact(videos) else 1 / (self.resamples + 1)))
        return min(1.0, family * tails / (self.resamples + 1))

    def needed(self, models: int) -> int:
        """Resamples from which on a pair can be called significant at all."""
        family = 1 if self.correction == "none" else max(self.tests(models), 1)
        tails = 2 if self.sided == "two" and self.test == "bootstrap" else 1  # an exchange test counts both at once
        return int(np.ceil(family * tails / self.alpha * (1 - 1e-12))) - 1

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)
