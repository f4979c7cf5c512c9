"""What a project holds as the records of a dataset: an annotation becomes an instance, a frame with its words a frame.

What other formats carry and the studio does not use comes back from where an import kept it (`extra`, a frame's
words), so that a writer can put it into its file again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from surgeval.datasets import OnProblem, Problem
from surgeval.datasets.io import outline_fields
from surgeval.records import UNKNOWN, Instance, Triplet
from surgeval.studio.exchange.space import NumberedSpace
from surgeval.studio.schema import folded
from surgeval.studio.store import Annotation

__all__ = ["ATTRIBUTES", "GROUP", "LABELME", "PROBLEM", "PROPOSAL", "given_instance", "own_words"]

ATTRIBUTES = "attributes"  # what `extra` and a frame's words keep of other formats
GROUP = "group"  # attributes that an export writes and an import reads
PROBLEM = "problem"
PROPOSAL = "proposal"
LABELME = "labelme"
_COMPONENTS = (("action", "verb", "Action"), ("target", "target", "Target"))
_AS_TUPLES = ("target_box",)  # what writers expect of values that JSON keeps as lists


def given_instance(
    annotation: Annotation, values: Mapping[str, str], classes: NumberedSpace, size: tuple[int, int], group: str,
    tell: OnProblem,
) -> Instance | None:  # fmt: skip
    """The instance of an annotation with these values; None, told, where the label space has no class for it."""
    ids = [classes.ids.get((annotation.group, annotation.name), UNKNOWN)]
    ids += [classes.component(part, values.get(name)) for name, part, _ in _COMPONENTS]
    wanted = (annotation.name, *(values.get(name) for name, _, _ in _COMPONENTS))
    for name, number in zip(wanted, ids, strict=True):
        if name is not None and number == UNKNOWN:
            record, expected = (
                f"{annotation.name} {annotation.id} in frame {annotation.frame} of {annotation.video}",
                f"a name of {classes.space.name}",
            )
            tell(Problem("class-unknown", "studio.sqlite", f"found {name!r}, expected {expected}", record))
            return None
    if UNKNOWN not in ids and classes.space.triplets and classes.space.find(*ids) == UNKNOWN:
        names = f"({', '.join(str(name) for name in wanted)})"
        expected = f"one of the {len(classes.space.triplets)} triplets of {classes.space.name} (the instance is kept)"
        record = f"{annotation.name} {annotation.id} in frame {annotation.frame} of {annotation.video}"
        tell(
            Problem("triplet-unknown", "studio.sqlite", f"found {names}, expected {expected}", record, level="warning")
        )
    attributes: dict[str, Any] = {key: value for key, value in values.items() if key not in ("action", "target")}
    imported = (annotation.extra or {}).get(ATTRIBUTES)
    for key, value in imported.items() if isinstance(imported, dict) else ():
        attributes.setdefault(key, tuple(value) if key in _AS_TUPLES and isinstance(value, list) else value)
    if LABELME in attributes:
        attributes[LABELME] = _spoken(own_words(attributes[LABELME]), values)
    if annotation.group != group:
        attributes[GROUP] = annotation.group
    if annotation.source == "interpolated":
        attributes["keyframe"] = False
    if annotation.proposal and annotation.score is None:
        attributes[PROPOSAL] = True
    outline = outline_fields(annotation.polygons, *size) if annotation.polygons else {}
    attributes |= outline.pop("attributes", {})
    # A label that was accepted is a label: the score belongs to proposals, and is read as one.
    score = annotation.score if annotation.proposal else None
    return Instance(
        Triplet(*ids), annotation.box, track=annotation.track, score=score, attributes=attributes, **outline
    )


def own_words(text: Any) -> Any:
    """What a labelme file said, which is kept as one text."""
    return json.loads(text) if isinstance(text, str) else text


def _spoken(words: Any, values: Mapping[str, str]) -> Any:
    """A labelme shape's own words; in a file `null` and nothing mean the same, in a project they do not."""
    if not isinstance(words, list):
        return words
    return [{**entry, "shape": _told(entry["shape"], values)} if isinstance(entry, dict)
            and isinstance(entry.get("shape"), dict) else entry for entry in words]  # fmt: skip


def _told(shape: dict[str, Any], values: Mapping[str, str]) -> dict[str, Any]:
    attributes = shape.get("attributes")
    old = attributes if isinstance(attributes, dict) else {}
    new = dict(old)
    for name, _, key in _COMPONENTS:
        value = values.get(name)
        if value is None and old.get(key) in ("", "null"):
            del new[key]
        elif value is not None and folded(value).startswith("null") and old.get(key) in (None, ""):
            new[key] = value
    return shape if new == old else {**shape, "attributes": new}
