"""From CVAT's labelled shapes to instances: triplet, track, score and the attributes by their declared kinds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from surgeval.datasets.formats.cvat.document import CvatTrack, RunLengths, Shape
from surgeval.datasets.formats.cvat.motion import Seen
from surgeval.datasets.formats.cvat.names import PART, SCORE, TRACK, UNDEFINED, component_of
from surgeval.datasets.io.layout import natural
from surgeval.datasets.io.outline import Polygon, bounds, outline_fields
from surgeval.datasets.io.values import check_combination, check_frame_box, find_class
from surgeval.files import Location, format_value
from surgeval.records import UNKNOWN, Box, Instance, Mask, Triplet
from surgeval.vocab import LabelSpace


class InstanceMaker:
    """Makes the instances of a frame."""

    def __init__(self, space: LabelSpace, kinds: Mapping[str, Mapping[str, str]]) -> None:
        self._space, self._kinds = space, kinds

    def instances(
        self, seen: list[tuple[CvatTrack, Seen]], size: tuple[int, int], place: Location
    ) -> Iterator[Instance]:
        """The instances of a frame, in CVAT's drawing order; outlines marked as parts of one are one instance."""
        groups: dict[object, list[tuple[CvatTrack, Seen]]] = {}
        for position, (track, sighting) in enumerate(sorted(seen, key=lambda pair: pair[1].shape.order)):
            joins = track.group is not None and sighting.shape.kind == "polygon" and PART in sighting.shape.attributes
            groups.setdefault((track.label, track.group) if joins else position, []).append((track, sighting))
        for parts in groups.values():
            parts.sort(key=lambda pair: natural(pair[1].shape.attributes.get(PART, "")))
            instance = self._instance(parts, size, place.at(f"{place.record}, track {parts[0][0].number}"))
            if instance:
                yield instance

    def _instance(self, parts: list[tuple[CvatTrack, Seen]], size: tuple[int, int], place: Location) -> Instance | None:
        (track, sighting), shape = parts[0], parts[0][1].shape
        triplet = self._triplet(track.label, shape.attributes, place)
        if triplet is None:
            return None
        outline = tuple(_outline(seen.shape) for _, seen in parts)
        fields = outline_fields(outline, *size) if outline[0] else {}
        if shape.runs:
            mask = _mask(shape.runs, *size, place)
            box = mask.box() if mask else None
            fields = {"mask": mask}
        else:
            box = bounds(outline) if outline[0] else _box(shape.points)
        placed = check_frame_box(place, box, *size) if box else None
        if placed is None:
            return None
        attributes = self._attributes(track.label, shape) | fields.pop("attributes", {})
        if not sighting.key:
            attributes["keyframe"] = False
        if track.group is not None and len(parts) == 1:
            attributes["group_id"] = track.group
        number, score = self._track(track, shape), attributes.pop(SCORE, None)
        return Instance(triplet, placed, track=number, attributes=attributes, **fields,
                        score=float(score) if isinstance(score, int | float) else None)  # fmt: skip

    def _triplet(self, label: str, attributes: Mapping[str, str], place: Location) -> Triplet | None:
        space = self._space
        tool = find_class(place, space, "instrument", label)
        if tool is None or not space.triplets:
            return None if tool is None else Triplet(tool)
        ids = {"verb": UNKNOWN, "target": UNKNOWN}
        for name, value in attributes.items():
            component = component_of(name)
            if component and value not in ("", UNDEFINED):
                number = find_class(place, space, component, value)
                if number is None:
                    return None
                ids[component] = number
        return check_combination(place, space, (tool, ids["verb"], ids["target"]))

    def _track(self, track: CvatTrack, shape: Shape) -> int | None:
        """The id that we wrote as an attribute (CVAT numbers its tracks anew), else CVAT's own."""
        if TRACK not in shape.attributes:
            return track.number if track.number >= 0 else None
        text = shape.attributes[TRACK].strip()
        return int(text) if text.lstrip("-").isdigit() and text.isascii() and len(text) < 16 else None

    def _attributes(self, label: str, shape: Shape) -> dict[str, object]:
        """The attributes beyond the triplet, as flags, numbers or text by their declared kind."""
        kinds = self._kinds.get(label, {})
        result: dict[str, object] = {"occluded": True} if shape.occluded else {}
        for name, value in shape.attributes.items():
            if value != UNDEFINED and name not in (TRACK, PART) and not component_of(name):
                result[name] = _typed(value, kinds.get(name, "text"))
        return result


def _typed(value: str, kind: str) -> object:
    if kind == "checkbox" and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    if kind == "number":
        try:
            return int(value) if value.strip().lstrip("-").isdigit() and len(value) < 16 else _finite(float(value))
        except ValueError:
            return value
    return value


def _finite(number: float) -> float | str:
    return number if math.isfinite(number) else str(number)


def _box(points: Polygon) -> Box:
    (x1, y1), (x2, y2) = points
    return Box(x1, y1, x2 - x1, y2 - y1)


def _outline(shape: Shape) -> Polygon:
    """The vertices of an outline; of a turned box its corners; none of a plain box."""
    if shape.kind == "polygon":
        return shape.points
    if shape.kind != "box" or not shape.rotation:
        return ()
    (x1, y1), (x2, y2) = shape.points
    angle, cx, cy = math.radians(shape.rotation), (x1 + x2) / 2, (y1 + y2) / 2
    cos, sin = math.cos(angle), math.sin(angle)
    return tuple((cx + (x - cx) * cos - (y - cy) * sin, cy + (x - cx) * sin + (y - cy) * cos)
                 for x, y in ((x1, y1), (x2, y1), (x2, y2), (x1, y2)))  # fmt: skip


def _mask(runs: RunLengths, width: int, height: int, place: Location) -> Mask | None:
    if runs.left + runs.width > width or runs.top + runs.height > height:
        extent = f"{runs.width} × {runs.height} at ({runs.left}, {runs.top})"
        place.error("mask-broken", f"found {extent}, expected a mask inside the {width} × {height} frame", "mask")
        return None
    values = np.zeros(len(runs.counts), dtype=bool)
    values[1::2] = True
    part = np.repeat(values, runs.counts).reshape(runs.height, runs.width)
    canvas = np.zeros((height, width), dtype=bool)
    canvas[runs.top : runs.top + runs.height, runs.left : runs.left + runs.width] = part
    mask = Mask.from_array(canvas)
    if not mask.area:
        place.error(
            "mask-broken", f"found {format_value(runs.counts[:6])}, expected a mask with at least one pixel", "rle"
        )
        return None
    return mask
