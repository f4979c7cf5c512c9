"""FOCUS: foreign-object classes, the capability taxonomy and the tracks' latency limits."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache

from surgeval.vocab.label_space import read_packaged

__all__ = ["Capability", "ForeignObject", "capabilities", "foreign_objects", "suggest_capabilities", "track_limits"]


@dataclass(frozen=True, slots=True)
class ForeignObject:
    """A class of objects that must not remain in the patient."""

    name: str
    slug: str


@cache
def foreign_objects() -> tuple[ForeignObject, ...]:
    """The ten classes, in the challenge's order.

    >>> [o.name for o in foreign_objects()][:3]
    ['Sponge', 'Clip', 'Specimen Bag']
    """
    return tuple(ForeignObject(row["name"], row["slug"]) for row in read_packaged("fo_classes")["classes"])


@dataclass(frozen=True, slots=True)
class Capability:
    """A leaf of the taxonomy, with the group it belongs to."""

    value: str
    code: str
    label: str
    group: str
    group_code: str
    group_label: str


@cache
def capabilities() -> tuple[Capability, ...]:
    """The fifteen leaves in five groups.

    >>> len(capabilities()), len({leaf.group for leaf in capabilities()})
    (15, 5)
    """
    return tuple(
        Capability(leaf["value"], leaf["code"], leaf["label"], group["value"], group["code"], group["label"])
        for group in read_packaged("taxonomy")["groups"]
        for leaf in group["leaves"]
    )


def suggest_capabilities(value: object) -> str:
    """What a message about an unknown capability names instead: the most similar ones, or all of them.

    >>> suggest_capabilities("object_counting")
    'a capability of the taxonomy, such as object_identification or object_aggregation'
    >>> suggest_capabilities(7)
    'a capability of the taxonomy: object_identification, instance_matching, object_attributes, ...'
    """
    known = [leaf.value for leaf in capabilities()]
    near = get_close_matches(value.strip().casefold().replace(" ", "_"), known, 2) if isinstance(value, str) else []
    return "a capability of the taxonomy" + (f", such as {' or '.join(near)}" if near else f": {', '.join(known)}")


def track_limits() -> dict[str, float]:
    """Latency limit in seconds per track.

    >>> track_limits()
    {'frame': 5.0, 'segment': 15.0, 'procedure': 30.0}
    """
    return dict(read_packaged("taxonomy")["track_max_latency_s"])
