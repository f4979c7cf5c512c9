"""How stored values stand to a schema and to a label space: two levels, and neither ever drops a value.

Not admissible by the schema: cannot be chosen, but may come from a file or an older schema. Admissible but no class of
the label space: stored, marked, listed, and lost in formats that only know class numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum

from surgeval.studio.schema.aliases import folded
from surgeval.studio.schema.model import IMAGE, OfClass, Schema
from surgeval.vocab import LabelSpace

__all__ = ["LabelledValues", "Mismatch", "Standing", "mismatches", "standing", "standings"]


class Standing(StrEnum):
    """What a triplet is: a class, admissible but no class, incomplete, or not admissible."""

    CLASS = "class"
    NO_CLASS = "no class"
    INCOMPLETE = "incomplete"
    INADMISSIBLE = "inadmissible"


@dataclass(frozen=True, slots=True)
class LabelledValues(OfClass):
    """Values that occur in a project, and how often."""

    values: Mapping[str, str]
    count: int


@dataclass(frozen=True, slots=True)
class Mismatch(OfClass):
    """A stored class or value that a schema lacks, how often it occurs, and what could stand in its place."""

    attribute: str  # "" where the class itself is unknown
    value: str
    count: int
    proposal: str  # "" where nothing comes close
    certain: bool = False  # the proposal is another way to write the same, not only spelled alike


def standing(schema: Schema, space: LabelSpace | None, group: str, name: str, values: Mapping[str, str]) -> Standing:
    """Where a class with these values stands: the first thing that is wrong, else a class.

    >>> from surgeval.studio.schema import builtin_schema
    >>> from surgeval.vocab import load_labels
    >>> schema, space = builtin_schema("prostatd"), load_labels("prostatd")
    >>> str(standing(schema, space, "tools", "scissors", {"action": "cut", "target": "prostate"}))
    'class'
    >>> str(standing(schema, space, "tools", "forceps", {"action": "bag", "target": "gauze"}))
    'no class'
    """
    return next(iter(standings(schema, space, group, name, values)), Standing.CLASS)


def standings(
    schema: Schema, space: LabelSpace | None, group: str, name: str, values: Mapping[str, str]
) -> tuple[Standing, ...]:
    """All that is wrong with a class and its values, the gravest first: one thing does not hide another.

    >>> from surgeval.studio.schema import builtin_schema
    >>> from surgeval.vocab import load_labels
    >>> schema, space = builtin_schema("prostatd"), load_labels("prostatd")
    >>> left_over = {"action": "bag", "target": "gauze", "note": "old"}
    >>> [str(fault) for fault in standings(schema, space, "tools", "forceps", left_over)]
    ['inadmissible', 'no class']
    """
    wrong = schema.inadmissible(group, name, values)
    faults = [Standing.INADMISSIBLE] if wrong else []
    member = schema.member(group, name)
    if member is None:
        return tuple(faults)
    if any(attribute.values and attribute.name not in values for attribute in member.attributes):
        faults.append(Standing.INCOMPLETE)
    triplet = {"action", "target"}
    if space is None or group == IMAGE or not triplet <= set(values) or triplet & set(wrong):
        return tuple(faults)
    ids = (
        space.find_name("instrument", name),
        space.find_name("verb", values["action"]),
        space.find_name("target", values["target"]),
    )
    if min(ids) < 0 or space.find(*ids) < 0:
        faults.append(Standing.NO_CLASS)
    return tuple(faults)


def mismatches(schema: Schema, stored: Iterable[LabelledValues]) -> tuple[Mismatch, ...]:
    """What a switch to `schema` would leave unknown, the most frequent first, each with a proposed value.

    >>> from surgeval.studio.schema import builtin_schema
    >>> stored = [LabelledValues("tools", "driver", {"action": "suture"}, 4)]
    >>> [(row.name, row.proposal, row.certain, row.count) for row in mismatches(builtin_schema("prostatd"), stored)]
    [('driver', 'needle driver', True, 4)]
    """
    counts: dict[tuple[str, str, str, str], int] = {}
    for label in stored:
        if schema.member(label.group, label.name) is None and label.group != IMAGE:
            key = (label.group, label.name, "", "")
            counts[key] = counts.get(key, 0) + label.count
            continue
        for attribute in schema.inadmissible(label.group, label.name, label.values):
            key = (label.group, label.name, attribute, label.values[attribute])
            counts[key] = counts.get(key, 0) + label.count
    unknown = [Mismatch(*key, count, *_proposal(schema, *key)) for key, count in counts.items()]
    return tuple(sorted(unknown, key=lambda row: (-row.count, row.group, row.name, row.attribute, row.value)))


def _proposal(schema: Schema, group: str, name: str, attribute: str, value: str) -> tuple[str, bool]:
    if not attribute:
        names = [member.name for member in schema.members if member.group == group]
        return _closest(name, schema.spelled(group, name), names)
    member = schema.member(group, name)
    known = member.attribute(attribute) if member is not None else None
    if known is None or known.free:
        return "", False
    return _closest(value, schema.value_spelled(group, name, attribute, value), known.values)


def _closest(wanted: str, spelled: str, names: Iterable[str]) -> tuple[str, bool]:
    """The closest known name, and whether it means the same: a bladder is only spelled like a gallbladder."""
    known = list(names)
    if spelled in known:
        return spelled, True
    plural = next((name for name in known if _singular(name) == _singular(wanted)), None)
    if plural is not None:
        return plural, True
    return next(iter(get_close_matches(wanted, known, 1, 0.75)), ""), False


def _singular(name: str) -> str:
    key = folded(name)
    return key.removesuffix("s") if not key.endswith("ss") else key
