"""|A|/HW, the share of its view that a model attends: where the settings fix it, it has no interval.

The region is the top share of the map (`keep_top`), so every map has the same area up to whole pixels. What no video
decides, no video makes unsure. Ties, maps with little evidence and thresholds (profile `early`) make areas differ:
then the mean has an interval like any other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import polars as pl

from surgeval.stats import Interval

__all__ = ["area_is_set", "without_set_area"]

_PIXELS = 0.001  # a share of a view is rounded to whole pixels
_SET = "the settings fix it"


def area_is_set(areas: pl.Series) -> bool:
    """Whether all maps attend the same share of their view, up to pixels.

    >>> area_is_set(pl.Series([0.20001, 0.2, None])), area_is_set(pl.Series([0.2, 0.25]))
    (True, False)
    """
    known = areas.drop_nulls().drop_nans().to_numpy()
    return len(known) > 1 and bool(np.ptp(known) < _PIXELS)


def without_set_area(intervals: Mapping[str, Interval], areas: pl.Series) -> dict[str, Interval]:
    """The numbers, `area` without an interval where the `areas` behind it are all the same."""
    if "area" not in intervals or not area_is_set(areas):
        return dict(intervals)
    fixed = replace(intervals["area"], low=math.nan, high=math.nan, method="none", note=_SET)
    return {**intervals, "area": fixed}
