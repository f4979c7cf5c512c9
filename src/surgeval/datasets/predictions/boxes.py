"""Boxes of a raw table as pixels of the original frame.

What cannot be a box is refused row by row; boxes without area or off the frame are kept, because a detector that says
them must pay for them, and are told in one sentence. Fractions where pixels are due would make every overlap 0, so a
table that consists of them is refused whole.
"""

from __future__ import annotations

import numpy as np

from surgeval.arrays import Bools, Floats, Ints
from surgeval.datasets.predictions.raw import RawTable
from surgeval.datasets.predictions.truth import GroundTruth

__all__ = ["NORMALISED_TO", "box_columns", "looks_normalised"]

MAX_PIXELS = 1e6  # no box is that large, and products of such numbers stay finite
NORMALISED_TO = 1.5  # boxes that all end below this are fractions of the frame (detectors pass the edge a little)
BEYOND = 0.05  # of a side, and of the boxes: detectors pass the edge a little
MANY = 10  # boxes from which what they have in common is no accident
SMALLEST = 16  # pixels: in a frame below this size such boxes may be meant


def looks_normalised(x: Floats, y: Floats, w: Floats, h: Floats) -> bool:
    """Whether there are boxes and all of them could be fractions of a frame."""
    ends = (x, y, w, h, x + w, y + h)
    return bool(len(x)) and all(bool(np.all(np.abs(values) <= NORMALISED_TO)) for values in ends)


def box_columns(raw: RawTable, truth: GroundTruth, at: Ints) -> tuple[Floats, Floats, Floats, Floats]:
    """`x`, `y`, `w`, `h` in pixels; `at` is each row's frame in `truth.frames`."""
    x, y, w, h = (raw.floats(name) for name in ("x", "y", "w", "h"))
    live = raw.alive
    placed = at >= 0
    sizes = (truth.frames["width"].to_numpy(), truth.frames["height"].to_numpy())
    width, height = (np.where(placed, size[np.maximum(at, 0)] if len(size) else 0, 0) for size in sizes)
    fractions = looks_normalised(x[live], y[live], w[live], h[live])
    if raw.scale == "normalised" or (raw.scale == "either" and fractions):
        # Rows of videos that were not chosen have no known size; they are left out in the end.
        with np.errstate(over="ignore"):  # what becomes infinite is refused below
            x, y, w, h = x * width, y * height, w * width, h * height
    elif fractions and bool(np.any((width > SMALLEST) & live)):
        first = int(np.flatnonzero(live)[0])
        place = raw.place(first)
        extent = f"boxes that all lie within {NORMALISED_TO:g} pixels of the corner"
        place.error(
            "box-unit",
            f"found {extent}, expected pixels of the original frame, not fractions of it",
            "x, y, w, h",
        )
        raw.alive[:] = False
    elif truth.assumed_size and live.any():
        place = raw.place(int(np.flatnonzero(live)[0]))
        size = " × ".join(map(str, truth.assumed_size))
        basis = f"boxes in pixels of a dataset without images, whose frames are taken as {size}"
        place.warn("size-assumed", f"found {basis}, expected the images beside the labels, or normalised boxes")
    for name, values in (("x", x), ("y", y), ("w", w), ("h", h)):
        raw.refuse(np.abs(values) > MAX_PIXELS, "wrong-value", name, f"at most {MAX_PIXELS:g} pixels")
    _warn_beyond(raw, placed, x + w, y + h, width, height)
    raw.warn(placed & ((w <= 0) | (h <= 0)), "box-degenerate", "w, h", "a positive width and height (it is kept, and "
             "overlaps nothing)", lambda row: f"{w[row]:.6g} × {h[row]:.6g} pixels")  # fmt: skip
    off = placed & (w > 0) & (h > 0) & ((x >= width) | (y >= height) | (x + w <= 0) | (y + h <= 0))
    raw.warn(off, "box-off-frame", "x, y, w, h",
             lambda row: f"a box that touches the {width[row]} × {height[row]} frame",
             lambda row: f"({x[row]:.6g}, {y[row]:.6g}) to ({x[row] + w[row]:.6g}, {y[row] + h[row]:.6g})")  # fmt: skip
    return x, y, w, h


def _warn_beyond(raw: RawTable, rows: Bools, right: Floats, bottom: Floats, width: Ints, height: Ints) -> None:
    """Warn where many boxes leave their frames, as boxes of a larger picture do, with the factor that fits all."""
    rows = rows & raw.alive & (width > 0) & (height > 0)
    if rows.sum() < MANY:
        return
    reach = np.maximum(right[rows] / width[rows], bottom[rows] / height[rows])
    beyond = reach > 1 + BEYOND
    if beyond.sum() < BEYOND * len(reach):
        return
    furthest = int(np.flatnonzero(rows)[np.argmax(reach)])
    found = (f"{beyond.sum()} of {len(reach)} boxes beyond their frames, as far as ({right[furthest]:.6g}, "
             f"{bottom[furthest]:.6g}) in {width[furthest]} × {height[furthest]}")  # fmt: skip
    expected = f"pixels of the original frames (times {1 / reach.max():.3g} all would fit)"
    raw.place(furthest).warn("box-outside", f"found {found}, expected {expected}", "x, y, w, h")
