"""Fixations by I-DT (Salvucci & Goldberg 2000): a window of the minimum duration whose dispersion,
(max x − min x) + (max y − min y), stays within the threshold, grown as long as it does.

The sample that breaks a window starts the next one; a sample without gaze, or a gap in time, ends a fixation. Windows
are tested all at once with running extrema and each sample is added to at most one fixation, so time is linear.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.ndimage import maximum_filter1d, minimum_filter1d

from surgeval.arrays import Floats, Ints
from surgeval.datasets.gaze.track import GazeTrack
from surgeval.errors import BadInput

__all__ = ["find_fixations", "idt"]


def find_fixations(
    track: GazeTrack,
    threshold: float = 0.05,
    *,
    minimum: float = 0.1,
    view: tuple[float, float] | None = None,
    gap: float | None = None,
) -> GazeTrack:
    """The fixations among the samples of a track; a track of fixations is returned as it is.

    `threshold` is a share of the frame, or degrees where `view` says how many degrees wide and high the frame is seen.
    `minimum` is in seconds. Samples more than `gap` seconds apart (default: 2.5 times the usual step) are apart.
    A fixation lasts from its first sample to its last and lies at their mean.

    >>> t = np.arange(30) / 100
    >>> track = GazeTrack("VID01", "samples", t, np.where(t < 0.15, 0.2, 0.8), np.full(30, 0.5), np.zeros(30))
    >>> fixed = find_fixations(track)
    >>> [(round(gaze.t, 2), round(gaze.x, 2), round(gaze.duration, 2)) for gaze in fixed.on_frame()]
    [(0.0, 0.2, 0.14), (0.15, 0.8, 0.14)]
    """
    if track.kind == "fixations":
        return track
    for name, value in (("threshold", threshold), ("minimum", minimum), ("gap", 1.0 if gap is None else gap)):
        if not (math.isfinite(value) and value > 0):
            raise BadInput(f"{name}: found {value!r}, expected a positive number")
    if view is not None and not all(math.isfinite(side) and 0 < side < 180 for side in view):
        raise BadInput(f"view: found {view!r}, expected the degrees that the frame is wide and high, below 180")
    wide, high = view or (1.0, 1.0)
    starts, ends = _windows(track, threshold, minimum, wide, high, gap)
    sizes = ends - starts + 1
    t, x, y = (np.asarray(track.t), np.asarray(track.x), np.asarray(track.y))
    return GazeTrack(
        track.recording, "fixations", t[starts], _means(x, starts, sizes), _means(y, starts, sizes), t[ends] - t[starts]
    )


def idt(x: Floats, y: Floats, threshold: float, samples: int) -> Ints:
    """The first and the last sample of each fixation of at least so many samples, in the unit of the positions.

    >>> idt(np.array([0, 0, 1, 9, 9, 9, np.nan, 9.0]), np.zeros(8), threshold=1, samples=2).tolist()
    [[0, 2], [3, 5]]
    """
    if samples < 1:
        raise BadInput(f"samples: found {samples}, expected at least 1")
    x, y = (np.where(np.isfinite(axis), axis, np.nan) for axis in (x, y))
    if len(x) < samples:
        return np.empty((0, 2), dtype=np.int64)
    fits = np.flatnonzero(_window_fits(x, y, threshold, samples))
    pairs: list[tuple[int, int]] = []
    free = at = 0  # the first sample that no fixation has taken, and the first window from there on
    xs, ys = x.tolist(), y.tolist()
    while (at := at + int(np.searchsorted(fits[at:], free))) < len(fits):
        start = int(fits[at])
        free = _grown(xs, ys, threshold, start, start + samples)
        pairs.append((start, free - 1))
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def _windows(
    track: GazeTrack, threshold: float, minimum: float, wide: float, high: float, gap: float | None
) -> tuple[Ints, Ints]:
    """First and last sample of the fixations of a track, whose gaps in time are filled with "no gaze"."""
    t = np.asarray(track.t, dtype=np.float64)
    steps = np.diff(t)
    usual = float(np.median(steps)) if len(steps) else 0.0
    if usual <= 0:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    breaks = np.flatnonzero(steps > (2.5 * usual if gap is None else gap)) + 1
    x, y = (np.insert(np.asarray(axis, dtype=np.float64), breaks, np.nan) for axis in (track.x, track.y))
    samples = max(1, math.ceil(minimum / usual - 1e-6))
    pairs = idt(x * wide, y * high, threshold, samples)
    inserted = breaks + np.arange(len(breaks))  # where the added samples stand
    first, last = (side - np.searchsorted(inserted, side) for side in (pairs[:, 0], pairs[:, 1]))
    return first, last


def _window_fits(
    x: Floats, y: Floats, threshold: float, samples: int
) -> np.ndarray[tuple[int, ...], np.dtype[np.bool]]:
    """For each sample, whether the window that starts there has gaze throughout and is within the threshold."""
    missing = np.concatenate([[0], np.cumsum(np.isnan(x) | np.isnan(y))])
    whole = missing[samples:] == missing[:-samples]
    spread = np.zeros(len(x))
    for axis in (x, y):
        filled = np.nan_to_num(axis)
        spread += maximum_filter1d(filled, samples) - minimum_filter1d(filled, samples)
    centre = samples // 2  # the filters are centred: the window of sample k starts at k - samples // 2
    return np.asarray(whole & (spread[centre : centre + len(whole)] <= threshold))


def _grown(xs: list[float], ys: list[float], threshold: float, start: int, end: int) -> int:
    """The end (exclusive) of a fixation that starts with the window start…end."""
    low_x, high_x = min(xs[start:end]), max(xs[start:end])
    low_y, high_y = min(ys[start:end]), max(ys[start:end])
    for k in range(end, len(xs)):
        x, y = xs[k], ys[k]
        if low_x <= x <= high_x and low_y <= y <= high_y:
            continue
        low_x, high_x = min(low_x, x), max(high_x, x)
        low_y, high_y = min(low_y, y), max(high_y, y)
        if x != x or y != y or (high_x - low_x) + (high_y - low_y) > threshold:  # NaN: no gaze
            return k
    return len(xs)


def _means(values: Floats, starts: Ints, sizes: Ints) -> Floats:
    return np.array(
        [values[start : start + size].mean() for start, size in zip(starts, sizes, strict=True)], dtype=float
    )
