"""From a heatmap to the region a model looked at: the top share of pixels, or what exceeds a fixed value.

Neither is always what its name promises (flat maps, sparse maps, ties), so a region carries its true share of the
area and flags. Values are compared in float64.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surgeval.arrays import Bools, Floats
from surgeval.errors import BadInput

__all__ = ["FLAT", "Region", "fixed_region", "kept_pixels", "top_region"]

# A flat grid that was interpolated to pixels is flat up to rounding; the highest 20 % of rounding noise is no region.
FLAT = 1e-6


@dataclass(frozen=True)
class Region:
    """The attended pixels A: `size` of them, `fraction` = |A| / area, whatever share was asked for.

    Flags: `empty_region` (R1), `constant` (R2), `sparse` (R3: fewer pixels are above 0 than were asked for), `ties`
    (R4: the last value kept is shared by pixels beyond the share asked for).
    """

    mask: Bools
    size: int
    fraction: float
    threshold: float  # the lowest map value kept (fixed mode: on the min-max scale)
    flags: frozenset[str] = frozenset()


def kept_pixels(area: int, keep_top: float) -> int:
    """How many pixels reach the (1 − keep_top) quantile (type 7, numpy's default) when no two are equal.

    The quantile sits at place h = (area − 1)(1 − keep_top) of the sorted values, so the ones from place ⌈h⌉ on reach
    it: `map >= quantile` and "not below the k-th highest value" are the same set, and the second needs no
    interpolation.

    >>> kept_pixels(24 * 32, 0.2), kept_pixels(10, 1.0), kept_pixels(11, 0.7)
    (154, 10, 8)
    """
    if not 0 < keep_top <= 1:
        raise BadInput(f"keep_top: found {keep_top}, expected a share above 0 and at most 1")
    h = (area - 1) * (1.0 - keep_top)
    whole = round(h)  # 10 × (1 − 0.7) is 3.0000000000000004; place 3 is meant
    return area - (whole if abs(h - whole) < 1e-12 * area else math.ceil(h))


def top_region(map: npt.ArrayLike, keep_top: float = 0.2, positive: bool = True) -> Region:
    """The pixels not below the (1 − keep_top) quantile; with `positive`, only those above 0 (R3).

    A flat map has no highest part: the region is the whole area, flagged `constant` (R2).

    >>> heat = [[0, 0, 0, 0, 0], [0, 0, 0, 0, 9]]
    >>> top_region(heat).size, top_region(heat, positive=False).size, sorted(top_region(heat, positive=False).flags)
    (1, 10, ['sparse', 'ties'])
    """
    heat, low, high = _checked(map)
    constant = _flat(low, high)
    count = kept_pixels(heat.size, keep_top)
    threshold = low if constant else float(np.partition(heat, heat.size - count, axis=None)[heat.size - count])
    mask = heat >= threshold
    if positive:
        mask &= heat > 0
    flags = {
        "constant": constant,
        "sparse": threshold <= 0 and not constant,
        "ties": not constant and int(np.count_nonzero(mask)) > count,
    }
    return _region(mask, threshold, {name for name, raised in flags.items() if raised})


def fixed_region(map: npt.ArrayLike, threshold: float = 0.3, strict: bool = False) -> Region:
    """The pixels at or above `threshold` of the min-max scaled map; `strict` leaves those equal to it out.

    A flat map scales to zeros, so its region is empty (R2).

    >>> fixed_region([[0, 3, 10]]).size, fixed_region([[0, 3, 10]], strict=True).size, fixed_region([[5, 5]]).size
    (2, 1, 0)
    """
    if not 0 < threshold <= 1:
        raise BadInput(f"threshold: found {threshold}, expected a number above 0 and at most 1")
    heat, low, high = _checked(map)
    if _flat(low, high):
        return _region(np.zeros(heat.shape, dtype=bool), threshold, {"constant"})
    scaled = (heat - low) / (high - low)
    return _region(scaled > threshold if strict else scaled >= threshold, threshold, set())


def _flat(low: float, high: float) -> bool:
    return high - low <= FLAT * max(abs(low), abs(high))


def _checked(map: npt.ArrayLike) -> tuple[Floats, float, float]:
    """The map in float64 (R10: quantiles of float32 are not exact) with its lowest and highest value."""
    heat = np.asarray(map, dtype=np.float64)
    if heat.ndim != 2 or not heat.size:
        raise BadInput(f"map: found shape {heat.shape}, expected rows × columns with at least one pixel")
    low, high = float(heat.min()), float(heat.max())  # nan goes through both
    if not -1e300 < low <= high < 1e300:
        raise BadInput(f"map: found values from {low:g} to {high:g}, expected finite values below 1e300")
    return heat, low, high


def _region(mask: Bools, threshold: float, flags: set[str]) -> Region:
    size = int(np.count_nonzero(mask))
    return Region(mask, size, size / mask.size, threshold, frozenset(flags if size else flags | {"empty_region"}))
