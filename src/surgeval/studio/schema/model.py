"""What may be said: groups of things that are labelled, their members, and the values each attribute may take.

`tools.scissors.action` admits what the schema lists under `tools.scissors.actions`; the group `image` has no members,
its attributes belong to the whole frame. "null" is a value like any other: an instrument that does nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

from surgeval.errors import BadInput, visible
from surgeval.studio.schema.aliases import attribute_name, spelled

__all__ = ["IMAGE", "Attribute", "Member", "OfClass", "Schema", "instrument_group"]

IMAGE = "image"
_INSTRUMENTS = "tools"
MAX_TEXT = 2000  # characters of a free text


@dataclass(frozen=True, slots=True)
class Attribute:
    """A name and the values it may take; without values it is free text.

    >>> Attribute("action", ("cut", "null")).admits("cut"), Attribute("note").admits("smoke from the left")
    (True, True)
    """

    name: str
    values: tuple[str, ...] = ()

    @property
    def free(self) -> bool:
        """Whether any short text will do."""
        return not self.values

    def admits(self, value: str) -> bool:
        """Whether the value may be chosen."""
        return len(value) <= MAX_TEXT if self.free else value in self.values


@dataclass(frozen=True, slots=True)
class OfClass:
    """Whatever is about one class of a group begins with the two names."""

    group: str
    name: str


@dataclass(frozen=True, slots=True)
class Member(OfClass):
    """A class of a group: `scissors` of `tools`, or the image itself."""

    attributes: tuple[Attribute, ...]
    guideline: str = ""
    picture: str = ""  # a file's name in the project's folder of guidelines

    def attribute(self, name: str) -> Attribute | None:
        """The attribute of that name, if the member has it."""
        return next((attribute for attribute in self.attributes if attribute.name == name), None)


@dataclass(frozen=True)
class Schema:
    """All members, by group and name, and the attributes of the image.

    >>> from surgeval.studio.schema import builtin_schema
    >>> schema = builtin_schema("prostatd")
    >>> schema.admits("tools", "scissors", "action", "cut"), schema.admits("tools", "aspirator", "action", "cut")
    (True, False)
    >>> schema.spelled("tools", "driver")
    'needle driver'
    """

    name: str
    members: tuple[Member, ...]
    source: str  # canonical JSON, from which the same schema is read again

    @cached_property
    def _by_name(self) -> Mapping[tuple[str, str], Member]:
        return MappingProxyType({(member.group, member.name): member for member in self.members})

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """The instance groups, in the schema's order."""
        return tuple(dict.fromkeys(member.group for member in self.members if member.group != IMAGE))

    @property
    def image(self) -> Member | None:
        """The attributes of the whole frame, where the schema has some."""
        return self.member(IMAGE, IMAGE)

    def member(self, group: str, name: str) -> Member | None:
        """The member of that exact name."""
        return self._by_name.get((group, name))

    def admits(self, group: str, name: str, attribute: str, value: str) -> bool:
        """Whether this value may be chosen for this attribute of this member."""
        member = self.member(group, name)
        definition = member.attribute(attribute) if member else None
        return definition is not None and definition.admits(value)

    def inadmissible(self, group: str, name: str, values: Mapping[str, str]) -> tuple[str, ...]:
        """The attributes whose value this schema lacks; a member it lacks is named as such, but for the image."""
        if self.member(group, name) is None and group != IMAGE:
            return (f"{group}.{name}",)
        return tuple(key for key, value in values.items() if not self.admits(group, name, key, value))

    def spelled(self, group: str, name: str) -> str:
        """A member's name as this schema writes it, also from an alias; unknown names stay as they are."""
        return spelled(name, [member.name for member in self.members if member.group == group])

    def value_spelled(self, group: str, name: str, attribute: str, value: str) -> str:
        """A value as this schema writes it; unknown ones stay as they are."""
        member = self.member(group, name)
        definition = member.attribute(attribute_name(attribute)) if member else None
        return value if definition is None else spelled(value, definition.values)

    def require(self, group: str, name: str) -> Member:
        """The member, or a sentence that lists those there are."""
        member = self.member(group, name)
        if member is None:
            names = ", ".join(other.name for other in self.members if other.group == group) or "no members"
            raise BadInput(f"class {visible(group)}.{visible(name)}: found no such class, expected one of {names}")
        return member

    def pairs(self) -> tuple[tuple[str, str, str], ...]:
        """Every admissible (instrument, action, target)."""
        return tuple(
            (member.name, action, target)
            for member in self.members
            if (actions := member.attribute("action")) and (targets := member.attribute("target"))
            for action in actions.values
            for target in targets.values
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and (self.name, self.source) == (other.name, other.source)

    def __hash__(self) -> int:
        return hash((self.name, self.source))

    def panel(self) -> dict[str, Any]:
        """Plain data for a panel: group → member → attribute → values."""
        result: dict[str, Any] = {}
        for member in self.members:
            shown = {attribute.name: list(attribute.values) for attribute in member.attributes}
            result.setdefault(member.group, {})[member.name] = shown
        return result


def instrument_group(schema: Schema) -> str:
    """The group whose members are the instruments: `tools`, or the first where a schema calls them otherwise.

    >>> from surgeval.studio.schema import builtin_schema
    >>> instrument_group(builtin_schema("cholect50"))
    'tools'
    """
    return _INSTRUMENTS if _INSTRUMENTS in schema.groups else next(iter(schema.groups), _INSTRUMENTS)
