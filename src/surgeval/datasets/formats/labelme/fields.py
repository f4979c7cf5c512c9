"""What a labelme shape or file says beyond geometry and triplet, and how a changed record is put back into it.

The file's own words travel with the records as the attribute `labelme`: whatever has no field of its own, the order of
keys, empty defaults, spellings. A writer starts from them and changes only what the record says otherwise, so a file
that nobody touched comes back as it was. They are plain JSON, so that a store can hold them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from surgeval.datasets.formats.labels import null_of
from surgeval.datasets.formats.writing import SERVING
from surgeval.files import as_float
from surgeval.records import UNKNOWN, Triplet
from surgeval.vocab import LabelSpace

WORDS = "labelme"  # the attribute that holds a file's own words
COMPONENTS = (("Action", "verb"), ("Target", "target"))
PHASE = "phase"  # the field of a file that names the phase
TRACK = "Track"  # how a track id is written among the attributes
_TRACKS = ("Track", "track", "track_id", "TrackID", "trackId")
_CONFIDENCE = re.compile(r"\s*confidence:\s*([0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]{1,3})?)[ \t]*(?:\r?\n|$)", re.IGNORECASE)
# Keys with a field of their own in the records, or without meaning beyond the file.
_SHAPE_KEYS = frozenset({"label", "points", "group_id", "shape_type", "attributes", "originalPoints", "score",
                         "description", "flags"})  # fmt: skip
_FILE_KEYS = frozenset({"version", "shapes", "imagePath", "imageData", "imageHeight", "imageWidth", "transformInfo",
                        "noAnnotation", "flags"})  # fmt: skip
_HIDDEN = SERVING | {"group_id"}


def reserved_names(attributes: Mapping[str, object]) -> set[str]:
    """The attributes of an instance that would be read as its action, target or track."""
    return {key for key, _ in COMPONENTS} | {key for key in _TRACKS if _whole(attributes.get(key)) is not None}


def reserved_fields(attributes: Mapping[str, object]) -> set[str]:
    """The attributes of a frame whose names mean something else in a file."""
    return set(_FILE_KEYS) - ({"flags"} if isinstance(attributes.get("flags"), dict) else set())


def given_attributes(shape: Mapping[str, Any]) -> dict[str, Any]:
    """The shape's `attributes`, {} where it has none."""
    attributes = shape.get("attributes")
    return attributes if isinstance(attributes, dict) else {}


def group_of(fields: Mapping[str, Any]) -> int | str | None:
    """The group that a shape or an instance belongs to."""
    group = fields.get("group_id")
    return group if isinstance(group, int | str) and not isinstance(group, bool) else None


def track_of(shape: Mapping[str, Any]) -> int | None:
    """The track id among the attributes, a number or its digits.

    >>> track_of({"attributes": {"Track": "3"}}), track_of({"attributes": {"Action": "cut"}}), track_of({})
    (3, None, None)
    """
    attributes = given_attributes(shape)
    return next((number for key in _TRACKS if (number := _whole(attributes.get(key))) is not None), None)


def _whole(value: Any) -> int | None:
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,15}", value):
        return int(value)
    number = as_float(value)
    return int(number) if number is not None and abs(number) < 1e15 and number == int(number) else None


def score_of(shape: Mapping[str, Any]) -> float | None:
    """The score of a proposal: `description: "confidence: 0.87"`, or the field `score` of other tools.

    >>> score_of({"description": "confidence: 0.87"}), score_of({"score": 0.5}), score_of({"description": "blurred"})
    (0.87, 0.5, None)
    """
    told = _CONFIDENCE.match(text) if isinstance(text := shape.get("description"), str) else None
    number = float(told[1]) if told else as_float(shape.get("score"))
    return number if number is not None and 0 <= number <= 1 else None


def note_of(shape: Mapping[str, Any]) -> str:
    r"""The description without the line that is a score.

    >>> note_of({"description": "confidence: 0.87\nhalf hidden"}), note_of({"description": "confidence: 87 per cent"})
    ('half hidden', 'confidence: 87 per cent')
    """
    text = shape.get("description")
    if not isinstance(text, str):
        return ""
    told = _CONFIDENCE.match(text)
    return text[told.end() :] if told and float(told[1]) <= 1 else text


def shape_extras(shape: Mapping[str, Any]) -> dict[str, Any]:
    """What a shape says beyond geometry, triplet, track and score: an instance's attributes.

    >>> shape_extras({"label": "hook", "attributes": {"Action": "cut", "position": "left"}, "flags": {"check": True}})
    {'position': 'left', 'flags': {'check': True}}
    """
    known = {key for key, _ in COMPONENTS}
    result = {key: value for key, value in given_attributes(shape).items()
              if key not in known and not (key in _TRACKS and _whole(value) is not None)}  # fmt: skip
    if note := note_of(shape):
        result.setdefault("description", note)
    if isinstance(flags := shape.get("flags"), dict) and flags:
        result.setdefault("flags", flags)
    for key, value in shape.items():
        if key not in _SHAPE_KEYS and value is not None:
            result.setdefault(key, value)
    return {key: value for key, value in result.items() if key not in _HIDDEN}


def file_extras(fields: Mapping[str, Any]) -> dict[str, Any]:
    """What a file says of its image beyond size and place: `text`, `description`, flags, fields of other tools.

    >>> file_extras({"version": "5.6.1", "flags": {}, "shapes": [], "text": "", "description": "smoke"})
    {'description': 'smoke'}
    """
    result = {key: value for key, value in fields.items() if key not in _FILE_KEYS and value not in (None, "")}
    if isinstance(flags := fields.get("flags"), dict) and flags:
        result["flags"] = flags
    return {key: value for key, value in result.items() if key not in SERVING}


def with_extras(fields: Mapping[str, Any], old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a file after its extras were changed from `old` to `new`."""
    result = dict(fields)
    for key in old.keys() - new.keys():
        result[key] = "" if isinstance(result[key], str) else {} if key == "flags" else None
    return result | {key: value for key, value in new.items() if key not in old or old[key] != value}


def with_labels(shape: Mapping[str, Any], triplet: Triplet, space: LabelSpace, *, new: bool) -> dict[str, Any]:
    """The shape with the label, action and target of a triplet; what says the same already keeps its spelling.

    A file that was read may give one of action and target and leave out the other, which is null, and is left so. A
    `new` shape says `null`, since a shape without both is no triplet.
    """
    result = dict(shape)
    label = shape.get("label")
    if not isinstance(label, str) or space.find_name("instrument", label) != triplet.instrument:
        result["label"] = space.instruments[triplet.instrument]
    attributes = dict(given_attributes(shape))
    silent = all(attributes.get(key) in (None, "") for key, _ in COMPONENTS)
    for (key, component), number in zip(COMPONENTS, (triplet.verb, triplet.target), strict=True):
        value = attributes.get(key)
        known = space.find_name(component, value) if isinstance(value, str) and value else UNKNOWN
        none = (UNKNOWN,) if new or silent else (UNKNOWN, null_of(space, component))
        if known == number or (value in (None, "", "null") and number in none):
            continue
        names = space.verbs if component == "verb" else space.targets
        if number == UNKNOWN:
            attributes.pop(key, None)
        else:
            attributes[key] = names[number]
    return _with_attributes(result, attributes)


def with_facts(
    shape: Mapping[str, Any], track: int | None, score: float | None, extras: Mapping[str, Any]
) -> dict[str, Any]:
    """The shape with this track, score and further attributes; what says the same already stays as it is."""
    result, old = dict(shape), shape_extras(shape)
    attributes = dict(given_attributes(shape))
    if track_of(shape) != track:
        attributes = {key: value for key, value in attributes.items() if key not in _TRACKS}
        if track is not None:
            attributes[TRACK] = track
    note = extras.get("description", "")
    noted = isinstance(note, str) and "description" not in attributes
    if score_of(shape) != score or (noted and note_of(shape) != note):
        if as_float(shape.get("score")) is not None:
            result["score"] = score
        result["description"] = described(score, note if noted else note_of(shape))
    for key in old.keys() - extras.keys():
        if key in attributes:
            del attributes[key]
        elif key != "description":
            result[key] = {} if key == "flags" else None
    for key, value in extras.items():
        if (key == "description" and noted) or (key in old and old[key] == value):
            continue
        own = (key == "flags" and isinstance(value, dict)) or (key in shape and key not in _SHAPE_KEYS)
        at_shape = own and key not in attributes
        (result if at_shape else attributes)[key] = value
    return _with_attributes(result, attributes)


def described(score: float | None, note: str) -> str:
    r"""The description of a shape with a score, a note, both or neither.

    >>> described(0.87, ""), described(0.5, "half hidden"), described(None, "half hidden")
    ('confidence: 0.87', 'confidence: 0.5\nhalf hidden', 'half hidden')
    """
    lines: Iterable[str] = () if score is None else (f"confidence: {float(score)!r}",)
    return "\n".join((*lines, *((note,) if note else ())))


def _with_attributes(shape: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    if attributes != given_attributes(shape):
        shape["attributes"] = attributes
    return shape
