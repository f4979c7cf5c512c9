"""The figures: how bright, sharp and full of tissue the frames are, and why some are proposed to drop."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

from surgeval.figures import Figure, Series, bars, histogram
from surgeval.protocols.quality.tables import MEASURES
from surgeval.stats import find_measure

if TYPE_CHECKING:
    from surgeval.protocols.quality.result import QualityScores

__all__ = ["quality_figures"]

_EDGES: Mapping[str, tuple[float, ...]] = {
    "brightness": (0, 30, 60, 90, 120, 150, 180, 210, 256),
    "sharpness": (0, 10, 30, 100, 300, 1000, 3000, math.inf),
    "tissue": (0, 0.05, 0.2, 0.4, 0.6, 0.8, math.inf),
}


def quality_figures(scores: QualityScores) -> dict[str, Figure]:
    """A histogram of each measure in `_EDGES`, and the reasons where frames are to be dropped."""
    figures: dict[str, Figure] = {}
    for name, edges in _EDGES.items():
        values = scores.cases[name].to_list()
        counts = tuple(sum(low <= value < high for value in values) for low, high in pairwise(edges))
        figures[name] = histogram(
            f"{name.capitalize()} of the frames", edges, counts, find_measure(MEASURES, name).label, "frames"
        )
    reasons = scores.tables["reasons"]
    if reasons.height:
        counted = Series("frames", tuple(float(count) for count in reasons["frames"]))
        figures["reasons"] = bars("Why frames are proposed to drop", tuple(reasons["reason"]), (counted,), "frames")
    return figures
