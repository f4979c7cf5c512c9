"""How stored values stand to a schema and to a label space: two levels, and neither ever drops a value.

Not admissible by the schema: cannot be chosen, but may come from a file or an older schema. Admissible but no class of
the label space: stored, marked, listed, and lost in formats that only know class numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum

from surgeval.studio.schema._model import IMAGE, Schema
from surgeval.vocab import LabelSpace

__all__ = ["Labelled", "Mismatch", "Standing", "mismatches", "standing"]


class Standing(StrEnum):
    """What a triplet is: a class, admissible but no class, incomplete, or not admissible."""

    CLASS = "class"
    NO_CLASS = "no class"
    INCOMPLETE = "incomplete"
    INADMISSIBLE = "inadmissible"


@dataclass(frozen=True, slots=True)
class Labelled:
    """Values that occur in a project, and how often."""

    group: str
    name: str
    values: Mapping[str, str]
    count: int


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A stored class or value that a schema lacks, how often it occurs, and what could stand in its place."""

    group: str
    name: str
    attribute: str  # "" where the class itself is unknown
    value: str
    count: int
    proposal: str  # "" where nothing comes close


def standing(schema: Schema, space: LabelSpace | None, group: str, name: str, values: Mapping[str, str]) -> Standing:
    """Where a class with these values stands.

    >>> from surgeval.studio.schema import builtin_schema
    >>> from surgeval.vocab import load_labels
    >>> schema, space = builtin_schema("prostatd"), load_labels("prostatd")
    >>> str(standing(schema, space, "tools", "scissors", {"action": "cut", "target": "prostate"}))
    'class'
    >>> str(standing(schema, space, "tools", "forceps", {"action": "bag", "target": "gauze"}))
    'no class'
    """
    if schema.inadmissible(group, name, values):
        return Standing.INADMISSIBLE
    member = schema.require(group, name)
    if any(attribute.values and attribute.name not in values for attribute in member.attributes):
        return Standing.INCOMPLETE
    if space is None or group == IMAGE or not {"action", "target"} <= set(values):
        return Standing.CLASS
    ids = (
        space.find_name("instrument", name),
        space.find_name("verb", values["action"]),
        space.find_name("target", values["target"]),
    )
    return Standing.CLASS if min(ids) >= 0 and space.find(*ids) >= 0 else Standing.NO_CLASS


def mismatches(schema: Schema, stored: Iterable[Labelled]) -> tuple[Mismatch, ...]:
    """What a switch to `schema` would leave unknown, the most frequent first, each with a proposed value.

    >>> from surgeval.studio.schema import builtin_schema
    >>> stored = [Labelled("tools", "driver", {"action": "suture"}, 4)]
    >>> [(found.name, found.proposal, found.count) for found in mismatches(builtin_schema("prostatd"), stored)]
    [('driver', 'needle driver', 4)]
    """
    counts: dict[tuple[str, str, str, str], int] = {}
    for one in stored:
        if schema.member(one.group, one.name) is None and one.group != IMAGE:
            key = (one.group, one.name, "", "")
            counts[key] = counts.get(key, 0) + one.count
            continue
        for attribute in schema.inadmissible(one.group, one.name, one.values):
            key = (one.group, one.name, attribute, one.values[attribute])
            counts[key] = counts.get(key, 0) + one.count
    found = [Mismatch(*key, count, _proposal(schema, *key)) for key, count in counts.items()]
    return tuple(sorted(found, key=lambda one: (-one.count, one.group, one.name, one.attribute, one.value)))


def _proposal(schema: Schema, group: str, name: str, attribute: str, value: str) -> str:
    if not attribute:
        names = [member.name for member in schema.members if member.group == group]
        return _closest(name, schema.spelled(group, name), names)
    member = schema.member(group, name)
    known = member.attribute(attribute) if member is not None else None
    if known is None or known.free:
        return ""
    return _closest(value, schema.value_spelled(group, name, attribute, value), known.values)


def _closest(wanted: str, spelled: str, names: Iterable[str]) -> str:
    known = list(names)
    return spelled if spelled in known else next(iter(get_close_matches(wanted, known, 1, 0.75)), "")
