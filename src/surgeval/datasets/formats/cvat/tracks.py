"""The instances of a video gathered into CVAT's tracks: one label, one kind of shape and one group each.

A track of ours whose instrument or kind of shape changes becomes several of CVAT's, which share the attribute `track`.
An instance without track is a track of one frame, as CVAT itself exports plain shapes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from surgeval.datasets.formats.cvat.document import Shape
from surgeval.datasets.formats.cvat.names import ACTION, PART, SCORE, TARGET, TRACK, UNDEFINED, component_of
from surgeval.datasets.formats.writing import SERVING, Output
from surgeval.datasets.formats.xml_text import legal
from surgeval.datasets.io.outline import Polygon, parts_of
from surgeval.records import UNKNOWN, Frame, Instance

_FIRST_PARTS = 1_000_000  # groups that join the parts of one instance are numbered from here


@dataclass(frozen=True, slots=True)
class DeclaredAttribute:
    """An attribute as a task declares it."""

    name: str
    kind: str = "text"  # CVAT's input type
    mutable: bool = True
    default: str = UNDEFINED
    values: tuple[str, ...] = ()


@dataclass(slots=True)
class Collected:
    """A track as it will be written."""

    label: str
    group: int | None
    proposed: bool
    shapes: list[Shape] = field(default_factory=list)
    between: set[int] = field(default_factory=set)  # frames that were interpolated when they were read


@dataclass(frozen=True, slots=True)
class _Entry:
    frame: int
    kind: str
    points: Polygon
    order: int
    occluded: bool
    between: bool
    values: dict[str, object]


class CvatTracks:
    """Takes frames in their order."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._entries: dict[tuple[object, ...], list[_Entry]] = {}
        self._kinds: dict[str, dict[str, set[str]]] = {}  # label → attribute → kinds of its values
        self._alone = self._joined = 0

    def add(self, frame: Frame, number: int) -> None:
        """Take the instances of a frame."""
        for order, instance in enumerate(frame.instances):
            parts = parts_of(instance)
            if instance.triplet.instrument == UNKNOWN or (instance.box is None and not parts):
                self._out.lost("{n} instances without box or instrument were left out")
                continue
            self._out.kept()
            self._out.look(instance.triplet)
            self._take(instance, parts, number, order)

    def _take(self, instance: Instance, parts: tuple[Polygon, ...], number: int, order: int) -> None:
        label = self._out.space.instruments[instance.triplet.instrument]
        values, occluded, group = self._values(instance)
        if len(parts) > 1:
            if group is not None:
                values["group_id"] = group
            self._joined += 1
            group = _FIRST_PARTS + self._joined
        for name, value in values.items():
            self._kinds.setdefault(label, {}).setdefault(name, set()).add(_kind(value))
        owner: object = instance.track
        if owner is None or len(parts) > 1:
            self._alone += 1
            owner = f"alone {self._alone}"
        if instance.box is not None:
            x1, y1, x2, y2 = instance.box.corners
        between = instance.attributes.get("keyframe") is False
        for part, points in enumerate(parts or (((x1, y1), (x2, y2)),)):
            kind = "polygon" if parts else "box"
            marked = {**values, PART: str(part)} if len(parts) > 1 else values
            entry = _Entry(number, kind, points, order, occluded, between, marked)
            double = 0  # the same track twice in one frame
            while (known := self._entries.get((owner, label, kind, group, part, double))) and known[-1].frame == number:
                double += 1
            self._entries.setdefault((owner, label, kind, group, part, double), []).append(entry)

    def _values(self, instance: Instance) -> tuple[dict[str, object], bool, int | None]:
        """The attributes of an instance, whether it is occluded, and its group."""
        space, triplet, out = self._out.space, instance.triplet, self._out
        values: dict[str, object] = {TRACK: "" if instance.track is None else str(instance.track)}
        if space.verbs and triplet.verb != UNKNOWN:
            values[ACTION] = space.verbs[triplet.verb]
        if space.targets and triplet.target != UNKNOWN:
            values[TARGET] = space.targets[triplet.target]
        if instance.score is not None:
            values[SCORE] = float(instance.score)
        occluded, group = False, None
        for name, value in instance.attributes.items():
            if name in SERVING:
                continue
            if name == "occluded" and value in (True, "1"):
                occluded = True
            elif name == "group_id" and isinstance(value, int) and 0 < value < _FIRST_PARTS and value is not True:
                group = value
            elif name in (TRACK, SCORE, PART) or component_of(name):
                out.lost("attributes of {n} instances whose names mean something else in CVAT are not kept")
            else:
                values[legal(name, out)] = value
        return values, occluded, group

    def fields(self, label: str) -> Iterator[DeclaredAttribute]:
        """The attributes of a label."""
        space = self._out.space
        kinds = self._kinds.get(label, {})
        if space.verbs:
            yield DeclaredAttribute(ACTION, "select", values=(UNDEFINED, *space.verbs))
        if space.targets:
            yield DeclaredAttribute(TARGET, "select", values=(UNDEFINED, *space.targets))
        yield DeclaredAttribute(TRACK, mutable=False, default="")
        if any(key[1] == label and key[4] for key in self._entries):
            yield DeclaredAttribute(PART, mutable=False)
        for name in kinds:
            if name not in (ACTION, TARGET, TRACK):
                kind = self._input(label, name)
                values = ("false",) if kind == "checkbox" else ("-1000000", "1000000", "0.000001")
                yield DeclaredAttribute(name, kind, values=() if kind == "text" else values)

    def _input(self, label: str, name: str) -> str:
        kinds = self._kinds[label][name]
        return next(iter(kinds)) if len(kinds) == 1 and kinds != {"other"} else "text"

    def collected(self) -> Iterator[Collected]:
        """The tracks, by the frame in which each begins."""
        for key, entries in sorted(self._entries.items(), key=lambda item: (item[1][0].frame, item[1][0].order)):
            label, group = str(key[1]), key[3]
            names = dict.fromkeys(name for entry in entries for name in entry.values)
            scored = all(SCORE in entry.values for entry in entries)
            track = Collected(label, group if isinstance(group, int) else None, scored)
            for entry in entries:
                texts = {name: self._text(label, name, entry.values[name]) if name in entry.values else UNDEFINED
                         for name in names}  # fmt: skip
                track.shapes.append(Shape(entry.frame, entry.kind, entry.points, 0, False, entry.occluded, entry.order,
                                          attributes=texts))  # fmt: skip
            track.between = {entry.frame for entry in entries if entry.between}
            yield track

    def _text(self, label: str, name: str, value: object) -> str:
        if isinstance(value, str):
            if value == UNDEFINED and name not in (ACTION, TARGET):
                self._out.lost(f"{{n}} texts that are CVAT's {UNDEFINED} are not kept")
            return legal(value, self._out, lines=True)
        if self._input(label, name) == "text":
            self._out.lost("values of {n} attributes that are no text became text")
        return json.dumps(value, default=str, ensure_ascii=False)


def _kind(value: object) -> str:
    """How CVAT would ask for a value."""
    if isinstance(value, bool):
        return "checkbox"
    if isinstance(value, int | float):
        return "number" if abs(value) < 1e15 and math.isfinite(value) else "other"
    return "text" if isinstance(value, str) else "other"
