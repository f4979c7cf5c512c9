"""Records of a dataset as what a project stores: an instance becomes a row, a frame values, flags and words.

Text among an instance's attributes is a value, as the schema's own are; whatever else a format carries is kept as it is
in `extra`, for writing back.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from surgeval.records import UNKNOWN, Frame, Instance, Point
from surgeval.studio.exchange.given import ATTRIBUTES, GROUP, LABELME, PROBLEM, PROPOSAL
from surgeval.studio.exchange.match import ProjectFrame
from surgeval.studio.exchange.space import PHASE
from surgeval.studio.schema import IMAGE, MAX_TEXT, Schema, attribute_name
from surgeval.vocab import LabelSpace

__all__ = ["Taker"]

_NOTES = frozenset({"description", "text", "group_id"})  # words of labelme: kept, not shown as values
_SERVING = frozenset({"polygons", "original_parts", "keyframe", GROUP, PROPOSAL})
_NO_TEXT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
_LONGEST = 200  # characters of a name
_MAX_EXTRA = 150_000  # characters
_COMPONENTS = (("action", "verb", "Action"), ("target", "target", "Target"))


@dataclass
class Taker:
    """Makes rows for a project with this schema from records of this label space; counts what it cannot take."""

    schema: Schema
    space: LabelSpace
    group: str
    losses: Counter[str] = field(default_factory=Counter)  # sentence with {n} → n

    def instance(self, instance: Instance, frame: Frame, match: ProjectFrame) -> dict[str, Any] | None:
        """The row of an instance, without its id; None, counted, where it has no box or no class."""
        if instance.box is None or instance.triplet.instrument == UNKNOWN:
            self.losses["{n} instances without box or instrument are not taken"] += 1
            return None
        group, name = self._class(instance)
        values, rest = self._split(instance.attributes, group, name)
        values |= self._triplet(instance, group, name)
        row: dict[str, Any] = {"video": match.video.id, "frame": match.frame, "group": group, "name": name,
                               "values": values, "source": "import"}  # fmt: skip
        sx, sy = match.video.width / frame.width, match.video.height / frame.height
        parts = self._parts(instance)
        if parts:
            row["polygons"] = [[[x * sx, y * sy] for x, y in part] for part in parts]
        else:
            row["box"] = [instance.box.x * sx, instance.box.y * sy, instance.box.w * sx, instance.box.h * sy]
        if instance.track is not None and instance.track >= 0:
            row |= {"track": instance.track, "track_by": "upstream"}
        if instance.score is not None or instance.attributes.get(PROPOSAL) is True:
            row |= {"proposal": True, "score": instance.score}
        if instance.attributes.get("keyframe") is False:
            row["source"] = "interpolated"
        if rest:
            row["extra"] = {ATTRIBUTES: rest}
        for feature in ("points", "motion"):
            if getattr(instance, feature):
                self.losses[
                    f"{'named points' if feature == 'points' else 'motions'} of {{n}} instances are not taken"
                ] += 1
        return row

    def frame(self, frame: Frame) -> tuple[dict[str, str], dict[str, str], dict[str, Any]]:
        """Values of the image, problems with their notes, and the words to keep."""
        values, rest = self._split(frame.attributes, IMAGE, IMAGE)
        problems = frame.attributes.get(PROBLEM)
        flags = (
            {str(reason): str(note)[:500] for reason, note in problems.items()} if isinstance(problems, dict) else {}
        )
        rest.pop(PROBLEM, None)
        if frame.phase is not None:
            values[PHASE] = self.schema.value_spelled(IMAGE, IMAGE, PHASE, self.space.phases[frame.phase])
        words: dict[str, Any] = {}
        if LABELME in rest:
            words[LABELME] = json.dumps(self._file_words(rest.pop(LABELME)), ensure_ascii=False)
        if rest:
            words[ATTRIBUTES] = rest
        if frame.labelled and not frame.instances:
            words["labelled"] = True
        for feature in ("camera", "gaze", "region", "objects", "successor"):
            if getattr(frame, feature):
                self.losses[f"{_FEATURES[feature]} of {{n}} frames are not taken"] += 1
        return values, flags, words

    def _class(self, instance: Instance) -> tuple[str, str]:
        """Group and class as the schema spells them."""
        name = self.space.instruments[instance.triplet.instrument]
        stated = instance.attributes.get(GROUP)
        if isinstance(stated, str) and 0 < len(stated) <= _LONGEST and stated != IMAGE and not _NO_TEXT.search(stated):
            name = name.removeprefix(f"{stated}.")
            return stated, self.schema.spelled(stated, name)
        for group in (self.group, *self.schema.groups):
            spelled = self.schema.spelled(group, name)
            if self.schema.member(group, spelled) is not None:
                return group, spelled
        return self.group, name

    def _triplet(self, instance: Instance, group: str, name: str) -> dict[str, str]:
        names = {"verb": self.space.verbs, "target": self.space.targets}
        ids = {"verb": instance.triplet.verb, "target": instance.triplet.target}
        unsaid = _unsaid(instance)
        return {
            attribute: self.schema.value_spelled(group, name, attribute, names[part][ids[part]])
            for attribute, part, key in _COMPONENTS
            if ids[part] != UNKNOWN and key not in unsaid
        }

    def _split(self, attributes: Mapping[str, object], group: str, name: str) -> tuple[dict[str, str], dict[str, Any]]:
        """Attributes that are values, and the others."""
        member = self.schema.member(group, name)
        values: dict[str, str] = {}
        rest: dict[str, Any] = {}
        for key, value in attributes.items():
            own = attribute_name(key)
            known = member is not None and member.attribute(own) is not None
            if key in _SERVING:
                continue
            if isinstance(value, str) and (known or key not in _NOTES) and _is_value(own, value):
                values[own] = self.schema.value_spelled(group, name, own, value)
            elif known and isinstance(value, int | float):
                values[own] = str(value).lower() if isinstance(value, bool) else str(value)
            elif _storable(key, value):
                # A file's own words as one text: a store sorts keys, and the file shall come back as it was.
                rest[key] = json.dumps(value, ensure_ascii=False) if key == LABELME and group != IMAGE else value
            else:
                self.losses["{n} further fields that JSON cannot hold are not kept"] += 1
        if group != IMAGE and rest and len(str(rest)) > _MAX_EXTRA:
            self.losses["further fields of {n} instances are too long to be kept"] += 1
            rest = {}
        return values, rest

    def _parts(self, instance: Instance) -> tuple[tuple[Point, ...], ...]:
        several = instance.attributes.get("polygons")
        if isinstance(several, tuple) and several:
            return several
        if instance.polygon:
            return (instance.polygon,)
        if instance.mask is not None:
            self.losses["masks of {n} instances are taken as boxes"] += 1
        return ()

    def _file_words(self, words: Any) -> Any:
        """What a labelme file says beside its shapes, without a picture that it may hold."""
        file = words.get("file") if isinstance(words, dict) else None
        if isinstance(file, dict) and file.get("imageData") is not None:
            self.losses["pictures inside {n} labelme files (imageData) are not kept"] += 1
            return {**words, "file": {**file, "imageData": None}}
        return words


_FEATURES = {"camera": "camera motions", "gaze": "gaze points", "region": "interaction regions",
             "objects": "object states", "successor": "successor images"}  # fmt: skip


def _unsaid(instance: Instance) -> set[str]:
    """The components that a labelme shape does not name: its reader takes them as "none", an annotator has not said."""
    words = instance.attributes.get(LABELME)
    first = words[0] if isinstance(words, list) and words else None
    shape = first.get("shape") if isinstance(first, dict) else None
    if not isinstance(shape, dict):
        return set()
    attributes = shape.get("attributes")
    named = attributes if isinstance(attributes, dict) else {}
    return {key for _, _, key in _COMPONENTS if named.get(key) in (None, "")}


def _storable(key: str, value: object) -> bool:
    try:
        text = json.dumps({key: value}, ensure_ascii=False, allow_nan=False)
        text.encode()
    except (TypeError, ValueError, RecursionError):
        return False
    return "\\u0000" not in text


def _is_value(name: str, value: str) -> bool:
    short = 0 < len(name) <= _LONGEST and 0 < len(value) <= MAX_TEXT
    return short and not _NO_TEXT.search(name) and not _NO_TEXT.search(value)
