"""The label space of a project: that of its schema, and behind it the names that occur and the schema lacks.

A schema named after a packaged label space speaks of that one, so ids are those of the published classes. Names that
are stored and not in it are put behind its own, which changes no id; triplets that are admissible but no class stay
none: formats of class numbers say that they lose them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from surgeval.studio.schema import IMAGE, LabelledValues, Schema, folded, spelled
from surgeval.vocab import LabelSpace, label_space_names, load_labels

__all__ = ["NumberedSpace", "packaged_space", "project_classes"]

PHASE = "phase"
_MOST = 10_000  # classes of a label space


def packaged_space(schema: Schema) -> LabelSpace | None:
    """The label space that a schema is named after.

    >>> from surgeval.studio.schema import builtin_schema
    >>> packaged_space(builtin_schema("prostatd")).name
    'prostatd'
    """
    return load_labels(schema.name) if schema.name in label_space_names() else None


@dataclass(frozen=True)
class NumberedSpace:
    """A label space and the id that each class of each group has in it."""

    space: LabelSpace
    ids: Mapping[tuple[str, str], int]

    def component(self, part: str, value: str | None) -> int:
        """The id of an action or target; −1 where there is none."""
        if value is None:
            return -1
        names = self.space.verbs if part == "verb" else self.space.targets
        return self.space.find_name(part, spelled(value, names))


def project_classes(
    schema: Schema, labelled: Iterable[LabelledValues], space: LabelSpace | None = None
) -> NumberedSpace:
    """The classes of a project with this schema and these values; `space` is used instead of the schema's own space.

    >>> from surgeval.studio.schema import builtin_schema
    >>> met = [LabelledValues("tools", "scissors", {"action": "burn", "target": "prostate"}, 3)]
    >>> classes = project_classes(builtin_schema("prostatd"), met)
    >>> classes.space.verbs[-1], len(classes.space.triplets)
    ('burn', 89)
    """
    stored = list(labelled)
    base = space or packaged_space(schema)
    instruments = list(base.instruments if base else ())
    ids: dict[tuple[str, str], int] = {}
    taken = {folded(name): number for number, name in enumerate(instruments)}
    owned: dict[int, tuple[str, str]] = {}
    for group, name in _members(schema, stored):
        number = taken.get(folded(spelled(name, instruments)))
        if number is not None and owned.get(number, (group, name))[0] == group:
            ids[group, name] = number
        elif space is None:
            own = name if number is None else f"{group}.{name}"  # one name in two groups is two classes
            taken[folded(own)] = ids[group, name] = len(instruments)
            instruments.append(own)
        owned.setdefault(ids.get((group, name), -1), (group, name))
    if space is not None:
        return NumberedSpace(space, ids)
    verbs = _names(schema, stored, "action", base.verbs if base else ())
    targets = _names(schema, stored, "target", base.targets if base else ())
    phases = _names(schema, stored, PHASE, base.phases if base else ())
    if base and (tuple(instruments), verbs, targets, phases) == (
        base.instruments, base.verbs, base.targets, base.phases,
    ):  # fmt: skip
        return NumberedSpace(base, ids)
    name = f"{base.name}+" if base else schema.name
    bare = LabelSpace(name, tuple(instruments) or ("instrument",), verbs, targets, (), phases)
    triplets = base.triplets if base else _triplets(NumberedSpace(bare, ids), schema)
    return NumberedSpace(LabelSpace(name, bare.instruments, verbs, targets, triplets, phases), ids)


def _members(schema: Schema, stored: list[LabelledValues]) -> list[tuple[str, str]]:
    own = [(member.group, member.name) for member in schema.members if member.group != IMAGE]
    return list(dict.fromkeys([*own, *((label.group, label.name) for label in stored if label.group != IMAGE)]))


def _names(schema: Schema, stored: list[LabelledValues], attribute: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """The values of an attribute: those of the label space, then of the schema, then others that occur."""
    image = attribute == PHASE
    listed = [value for member in schema.members if (member.group == IMAGE) == image
              if (choices := member.attribute(attribute)) for value in choices.values]  # fmt: skip
    met = [label.values[attribute] for label in stored if attribute in label.values and (label.group == IMAGE) == image]
    names = list(known)
    keys = {folded(name) for name in names}
    for value in [*listed, *sorted(met)]:
        if folded(spelled(value, names)) not in keys:
            keys.add(folded(value))
            names.append(value)
    return tuple(names)


def _triplets(classes: NumberedSpace, schema: Schema) -> tuple[tuple[int, int, int], ...]:
    """Every combination that the schema admits, as far as a label space can number them."""
    rows = (
        (classes.ids[member.group, member.name], classes.component("verb", action), classes.component("target", target))
        for member in schema.members
        if (actions := member.attribute("action")) and (targets := member.attribute("target"))
        for action in actions.values
        for target in targets.values
    )
    return tuple(dict.fromkeys(rows))[:_MOST]
