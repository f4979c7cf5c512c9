"""The pictures of results on classes: a bar each, and the word where a number is undefined."""

from __future__ import annotations

from collections.abc import Mapping

from surgeval.arrays import Floats
from surgeval.figures import Estimate, EstimateBars, EstimateGroup

__all__ = ["class_bars", "mean_bars"]


def class_bars(component: str, ap: Floats) -> EstimateBars:
    """AP of each class of a component, by its number."""
    return mean_bars(f"AP by class ({component})", {str(number): value for number, value in enumerate(ap.tolist())})


def mean_bars(title: str, values: Mapping[str, float]) -> EstimateBars:
    """Numbers from 0 to 1 by name."""
    group = EstimateGroup(title, tuple(map(Estimate.of, values.values())))
    return EstimateBars(title, tuple(values), (group,), "AP", span=(0, 1))
