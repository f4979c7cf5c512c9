"""Outlines and masks: COCO's run-length strings, polygons, and one from the other.

A polygon of one part is kept as `Instance.polygon`; several parts are kept as the attribute `polygons` together with
the mask of their union, because a record holds one outline.
"""

from __future__ import annotations

import math
from typing import Any

import cv2
import numpy as np

from surgeval.arrays import Bytes
from surgeval.datasets.io.values import check_point
from surgeval.files import Location, as_float, format_value
from surgeval.records import Box, Instance, Mask, Point

MAX_POINTS = 100_000

Polygon = tuple[Point, ...]


def instance_mask(instance: Instance, width: int, height: int) -> Mask | None:
    """The mask of an instance: its own, or its filled outline; None where it has neither.

    >>> from surgeval.records import Triplet
    >>> square = Instance(Triplet(0), polygon=((1.0, 1.0), (3.0, 1.0), (3.0, 3.0), (1.0, 3.0)))
    >>> instance_mask(square, 6, 6).area
    9
    """
    if instance.mask is not None:
        return instance.mask
    return fill((instance.polygon,), width, height) if instance.polygon else None


def fill(parts: tuple[Polygon, ...], width: int, height: int) -> Mask:
    """The union of filled polygons (their edges belong to them), drawn within their bounds only."""
    limit = 1 << 20  # far outside any frame, and safe in OpenCV's fixed point
    outlines = [np.rint(np.clip(np.asarray(part, dtype=np.float64), -limit, limit)).astype(np.int32) for part in parts]
    every = np.concatenate(outlines)
    left, top = np.maximum(every.min(axis=0), 0).tolist()
    right, bottom = np.minimum(every.max(axis=0) + 1, (width, height)).tolist()
    if left >= right or top >= bottom:
        return Mask(height, width, (height * width,))
    canvas = np.zeros((bottom - top, right - left), dtype=np.uint8)
    for points in outlines:
        cv2.fillPoly(canvas, [points - (left, top)], 1)
    return _in_frame(canvas, left, top, width, height)


def _in_frame(canvas: Bytes, left: int, top: int, width: int, height: int) -> Mask:
    """The mask of a frame that is empty but for this part of it: its runs, column by column."""
    columns = np.zeros((canvas.shape[1], canvas.shape[0] + 2), dtype=np.int8)
    columns[:, 1:-1] = canvas.T
    column, row = np.nonzero(np.diff(columns, axis=1))  # where each run begins and, next, where it ends
    edges = (column + left) * height + row + top
    again = np.flatnonzero(edges[:-1] == edges[1:])  # a run that ends where the next column's begins goes on
    edges = np.delete(edges, np.concatenate([again, again + 1]))
    counts = np.diff(np.concatenate([[0], edges, [height * width]])).tolist()
    return Mask(height, width, tuple(counts if counts[-1] else counts[:-1]))


def outline_fields(parts: tuple[Polygon, ...], width: int, height: int) -> dict[str, Any]:
    """The fields of an instance that hold an outline of one or several parts.

    >>> outline_fields((((1.0, 1.0), (3.0, 1.0), (3.0, 3.0)),), 6, 6)
    {'polygon': ((1.0, 1.0), (3.0, 1.0), (3.0, 3.0))}
    """
    if len(parts) == 1:
        return {"polygon": parts[0]}
    return {"mask": fill(parts, width, height), "attributes": {"polygons": parts}}


def parts_of(instance: Instance) -> tuple[Polygon, ...]:
    """The parts of an instance's outline, as they were read."""
    several = instance.attributes.get("polygons")
    if isinstance(several, tuple) and several:
        return several
    return (instance.polygon,) if instance.polygon else ()


def bounds(parts: tuple[Polygon, ...]) -> Box:
    """The box around an outline."""
    xs, ys = [x for part in parts for x, _ in part], [y for part in parts for _, y in part]
    return Box.from_corners(min(xs), min(ys), max(xs), max(ys))


def read_points(value: Any, place: Location, field: str = "points", least: int = 3) -> Polygon | None:
    """Points `[[x, y], …]`."""
    rows = place.items(value, field)
    if rows is None:
        return None
    if not least <= len(rows) <= MAX_POINTS:
        place.error("mask-broken", f"found {len(rows)} points, expected at least {least}", field)
        return None
    points = [check_point(place, row, field) for row in rows]
    return None if None in points else tuple(point for point in points if point is not None)


def read_flat(value: Any, place: Location, field: str) -> Polygon | None:
    """Points as COCO writes them: `[x, y, x, y, …]`."""
    numbers = [as_float(item) for item in value] if isinstance(value, list) and len(value) <= 2 * MAX_POINTS else []
    if len(numbers) < 6 or len(numbers) % 2 or any(n is None or not math.isfinite(n) for n in numbers):
        points = f"{len(numbers)} numbers" if numbers and None not in numbers else format_value(value)
        place.error("mask-broken", f"found {points}, expected an even number of at least 6 finite numbers", field)
        return None
    finite = [float(n) for n in numbers if n is not None]
    return tuple(zip(finite[::2], finite[1::2], strict=True))


def read_mask(value: Any, width: int, height: int, place: Location, field: str = "segmentation") -> Mask | None:
    """A run-length mask `{"size": [h, w], "counts": list or COCO string}` of the frame's size."""
    record = place.mapping(value, field)
    if record is None:
        return None
    if record.get("size") != [height, width]:
        place.error("mask-broken", f"found {format_value(record.get('size'))}, expected [{height}, {width}]", field)
        return None
    counts = record.get("counts")
    if isinstance(counts, str):
        counts = decode_counts(counts) if len(counts) <= 10 * width * height else None
    whole = isinstance(counts, list) and set(map(type, counts)) == {int} and min(counts) >= 0
    if not whole or counts is None or sum(counts) != height * width:
        place.error(
            "mask-broken", f"found run lengths that do not fill the frame, expected a sum of {height * width}", field
        )
        return None
    return Mask(height, width, tuple(counts))


def decode_counts(text: str) -> list[int] | None:
    """COCO's compressed run lengths: 5 bits a character, differences to the count two before.

    >>> decode_counts("61X13mN000`0")
    [6, 1, 40, 4, 5, 4, 5, 4, 21]
    """
    counts: list[int] = []
    at = 0
    while at < len(text):
        value, shift, more = 0, 0, True
        while more:
            code = ord(text[at]) - 48 if at < len(text) else -1
            if not 0 <= code < 64 or shift > 60:
                return None
            value |= (code & 31) << shift
            more = bool(code & 32)
            shift += 5
            at += 1
            if not more and code & 16:
                value -= 1 << shift
        counts.append(value + (counts[-2] if len(counts) > 2 else 0))
    return counts
