"""Checks of boxes, triplets and names in files from outside.

Each returns a usable value, or reports a problem at the location and returns None.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from surgeval.files import Location, as_float, format_value
from surgeval.records import UNKNOWN, Box, Point, Triplet
from surgeval.vocab import LabelSpace

MAX_SIDE = 20_000  # pixels of a frame or image: no endoscope is larger
MAX_PIXELS = 1 << 26  # twice an 8K frame; a larger image or mask would take too much memory
SLACK = 0.01  # pixels: what six decimals of a normalised coordinate can lose


def check_size(location: Location, width: Any, height: Any, field: str = "size") -> tuple[int, int] | None:
    """A frame size."""
    w, h = location.whole(width, f"{field} width", 1, MAX_SIDE), location.whole(height, f"{field} height", 1, MAX_SIDE)
    if w is None or h is None:
        return None
    if w * h > MAX_PIXELS:
        location.error("image-size", f"found {w} × {h}, expected at most {MAX_PIXELS} pixels", field)
        return None
    return w, h


def check_point(location: Location, value: Any, field: str) -> Point | None:
    """An image point `[x, y]`."""
    numbers = _read_numbers(location, value, 2, field, "two numbers [x, y]")
    return None if numbers is None else (numbers[0], numbers[1])


def check_box(location: Location, value: Any, width: int, height: int, field: str = "box") -> Box | None:
    """A box `[x, y, w, h]` in pixels that has an area and touches the frame; past the edge is a warning.

    >>> check_box(Location("labels.json", print), [10, 20, 30, 40], 854, 480)
    Box(x=10.0, y=20.0, w=30.0, h=40.0)
    >>> check_box(Location("labels.json", print), [10, 20, 0, 40], 854, 480)
    labels.json: box: found 0 × 40 pixels, expected a positive width and height
    """
    numbers = _read_numbers(location, value, 4, field, "four finite numbers [x, y, w, h]")
    return None if numbers is None else check_frame_box(location, Box(*numbers), width, height, field)


def check_frame_box(
    location: Location, box: Box, width: int, height: int, field: str = "box", written: str = ""
) -> Box | None:
    """The box when it has an area and touches the frame of this size; `written` is how the file spells it."""
    x1, y1, x2, y2 = box.corners
    if box.w > 0 and box.h > 0 and box.inside(width, height, SLACK):
        return box
    described = written or f"({x1:.6g}, {y1:.6g}) to ({x2:.6g}, {y2:.6g})"
    if not all(map(math.isfinite, (x1, y1, x2, y2, box.w * box.h))):
        location.error("not-finite", f"found {described}, expected finite numbers", field)
    elif box.w <= 0 or box.h <= 0:
        location.error(
            "box-degenerate", f"found {box.w:.6g} × {box.h:.6g} pixels, expected a positive width and height", field
        )
    elif not box.clipped(width, height).area:
        location.error(
            "box-off-frame", f"found {described}, expected a box that touches the {width} × {height} frame", field
        )
    else:
        location.warn("box-outside", f"found {described}, expected a box inside the {width} × {height} frame", field)
        return box
    return None


def _read_numbers(location: Location, value: Any, count: int, field: str, expected: str) -> list[float] | None:
    values = [as_float(item) for item in value] if isinstance(value, list | tuple) and len(value) == count else []
    numbers = [item for item in values if item is not None]
    if len(numbers) != count:
        location.error("not-a-number", f"found {format_value(value)}, expected {expected}", field)
        return None
    if not all(map(math.isfinite, numbers)):
        location.error("not-finite", f"found {format_value(list(value))}, expected {expected}", field)
        return None
    return numbers


def check_triplet(location: Location, space: LabelSpace, number: int, ids: Sequence[int]) -> Triplet | None:
    """The triplet of an id and its components, which must agree where both are known."""
    stated = (ids[0], ids[1], ids[2])
    if number == UNKNOWN:
        return check_combination(location, space, stated)
    classes = space.triplets[number]
    for component, own, other in zip(("instrument", "verb", "target"), stated, classes, strict=True):
        if own not in (UNKNOWN, other):
            clash = f"{own} beside triplet {number} ({space.triplet_name(number)})"
            location.error("triplet-inconsistent", f"found {clash}, expected {component} {other}", component)
            return None
    return Triplet(*classes)


def check_combination(location: Location, space: LabelSpace, ids: tuple[int, int, int]) -> Triplet | None:
    """The triplet of three component ids, which must be a class of the space when all three are known."""
    if UNKNOWN not in ids and space.triplets and space.find(*ids) < 0:
        names = f"({space.instruments[ids[0]]}, {space.verbs[ids[1]]}, {space.targets[ids[2]]})"
        location.error(
            "triplet-unknown",
            f"found {names}, expected one of the {len(space.triplets)} triplets of {space.name}",
            "triplet",
        )
        return None
    return Triplet(*ids)


def find_class(location: Location, space: LabelSpace, component: str, name: Any) -> int | None:
    """The id of a class given by name."""
    text = location.text(name, component)
    if text is None:
        return None
    number = space.find_name(component, text)
    if number < 0:
        location.error(
            "class-unknown", f"found {format_value(text)}, expected a {component} of {space.name}", component
        )
        return None
    return number


def fits(width: int, height: int) -> bool:
    """Whether a picture of this size may be decoded or a mask of it drawn.

    >>> fits(7680, 4320), fits(20_000, 20_000), fits(0, 10)
    (True, False, False)
    """
    return 0 < width <= MAX_SIDE and 0 < height <= MAX_SIDE and width * height <= MAX_PIXELS
