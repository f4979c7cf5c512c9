"""Label refinement (appendix A.4): rules that merge values of one class, and the counts before and after.

A rule holds for one class of a group and under the values in `where`; rules do not feed one another. Spellings of a
value that differ in case, spaces, '-' and '_' alone are the same value: the paper has "vas-deferens", annotators "vas
deferens".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surgeval.errors import DataError
from surgeval.studio.schema.aliases import folded
from surgeval.studio.schema.builtin import DATA
from surgeval.studio.schema.jsonc import parse_jsonc, read_jsonc
from surgeval.studio.schema.model import OfClass
from surgeval.studio.schema.standing import LabelledValues

__all__ = [
    "Counts",
    "RuleCounts",
    "SchemaRule",
    "builtin_refinement",
    "parse_refinement",
    "read_refinement",
    "refine",
    "refined",
    "rule_counts",
    "rules_from",
]  # fmt: skip

_KEYS = {"group", "name", "where", "attribute", "from", "to"}
_MAX_RULES = 10_000


@dataclass(frozen=True, slots=True)
class SchemaRule(OfClass):
    """In `group.name`, where the other values are these, `sources` of the attribute become `to`."""

    where: tuple[tuple[str, str], ...]
    attribute: str
    sources: tuple[str, ...]
    to: str

    def applies(self, group: str, name: str, values: Mapping[str, str]) -> bool:
        """Whether the rule changes these values."""
        return self.holds(group, name, values) and self.merges(values.get(self.attribute, ""))

    def holds(self, group: str, name: str, values: Mapping[str, str]) -> bool:
        """Whether the class is the rule's, and the other values are those of `where`."""
        return (group, name) == (self.group, self.name) and all(
            folded(values.get(key, "")) == folded(value) for key, value in self.where
        )

    def merges(self, value: str) -> bool:
        """Whether a value of the attribute is one of the sources.

        >>> rule = SchemaRule("tools", "hook", (), "target", ("vas-deferens",), "duct")
        >>> [rule.merges(value) for value in ("vas-deferens", "Vas deferens", "duct")]
        [True, True, False]
        """
        return value != self.to and folded(value) in {folded(source) for source in self.sources}

    def to_json(self) -> dict[str, Any]:
        """The form that `rules_from` reads back."""
        return {
            "group": self.group,
            "name": self.name,
            "where": dict(self.where),
            "attribute": self.attribute,
            "from": list(self.sources),
            "to": self.to,
        }


@dataclass(frozen=True, slots=True)
class Counts(OfClass):
    """How often a class with these values occurs before and after a refinement."""

    values: tuple[tuple[str, str], ...]
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class RuleCounts:
    """What a rule does: how many have one of its old values, and how many the new one, before and after."""

    rule: SchemaRule
    merged: int
    before: int
    after: int


def parse_refinement(text: str, name: str = "mapping") -> tuple[SchemaRule, ...]:
    """The rules of a mapping text (JSON or JSONC).

    >>> rule = '{"group": "tools", "name": "hook", "attribute": "target", "from": ["fat", "omentum"], "to": "tissue"}'
    >>> [(rule.sources, rule.to) for rule in parse_refinement(f'{{"rules": [{rule}]}} // merged')]
    [(('fat', 'omentum'), 'tissue')]
    >>> parse_refinement('{"rules": 3}', "mine.json")
    Traceback (most recent call last):
    surgeval.errors.DataError: mine.json: rules: found no list, expected a list of at most 10000 rules
    """
    return rules_from(parse_jsonc(text, name), name)


def read_refinement(path: Path | str) -> tuple[SchemaRule, ...]:
    """The rules of a mapping file (JSON or JSONC).

    >>> import json, tempfile
    >>> rule = {"group": "tools", "name": "hook", "attribute": "target", "from": ["fat"], "to": "tissue"}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "map.json").write_text(json.dumps({"rules": [rule]}))
    ...     [(rule.sources, rule.to) for rule in read_refinement(f"{folder}/map.json")]
    [(('fat',), 'tissue')]
    >>> read_refinement("nowhere.json")
    Traceback (most recent call last):
    surgeval.errors.DataError: nowhere.json: no such file
    """
    return rules_from(read_jsonc(Path(path)), str(path))


def builtin_refinement() -> tuple[SchemaRule, ...]:
    """The merges that ProstaTD's authors made.

    >>> [rule.to for rule in builtin_refinement()]
    ['prostate', 'bag', 'bag', 'seminal vesicle', 'bladder', 'fluid', 'fascias']
    """
    return read_refinement(DATA / "prostatd_refinement.jsonc")


def rules_from(data: Any, source: str) -> tuple[SchemaRule, ...]:
    """The rules in parsed JSON: `{"rules": [{group, name, where, attribute, from, to}]}`.

    >>> rule = {"group": "tools", "name": "hook", "attribute": "target", "from": ["fat"], "to": "tissue"}
    >>> rules_from({"rules": [rule]}, "map.json")[0].applies("tools", "hook", {"target": "fat"})
    True
    >>> rules_from({"rules": [{"to": "bag"}]}, "map.json")
    Traceback (most recent call last):
    surgeval.errors.DataError: map.json: rules[0]: found the keys to, expected attribute, from, group, name, to, where
    """
    rows = data.get("rules") if isinstance(data, dict) else None
    if not isinstance(rows, list) or len(rows) > _MAX_RULES:
        raise DataError(source, f"found no list, expected a list of at most {_MAX_RULES} rules", field="rules")
    return tuple(_rule(row, f"rules[{number}]", source) for number, row in enumerate(rows))


def _rule(row: Any, path: str, source: str) -> SchemaRule:
    if not isinstance(row, dict) or set(row) | {"where"} != _KEYS:
        found = f"the keys {', '.join(sorted(row))}" if isinstance(row, dict) else "no object"
        raise DataError(source, f"found {found}, expected {', '.join(sorted(_KEYS))}", field=path)
    where, sources = row.get("where", {}), row["from"]
    texts = [row["group"], row["name"], row["attribute"], row["to"]]
    texts += list(sources) if isinstance(sources, list) else [None]
    texts += list(where.values()) if isinstance(where, dict) else [None]
    if not all(isinstance(text, str) and text for text in texts):
        raise DataError(source, "found a value that is no text, expected names and values as text", field=path)
    return SchemaRule(
        row["group"], row["name"], tuple(sorted(where.items())), row["attribute"], tuple(sources), row["to"]
    )


def refine(rules: Iterable[SchemaRule], group: str, name: str, values: Mapping[str, str]) -> dict[str, str]:
    """The values after the rules, each judged on the values as they were.

    >>> refine(builtin_refinement(), "tools", "aspirator", {"action": "suck", "target": "smoke"})
    {'action': 'suck', 'target': 'fluid'}
    """
    result = dict(values)
    for rule in rules:
        if rule.applies(group, name, values):
            result[rule.attribute] = rule.to
    return result


def refined(rules: Iterable[SchemaRule], stored: Iterable[LabelledValues]) -> tuple[Counts, ...]:
    """Counts before and after of every combination that the rules change.

    >>> sucked = [{"action": "suck", "target": target} for target in ("blood", "fluid")]
    >>> stored = [LabelledValues("tools", "aspirator", values, 3) for values in sucked]
    >>> [(dict(row.values)["target"], row.before, row.after) for row in refined(builtin_refinement(), stored)]
    [('blood', 3, 0), ('fluid', 3, 6)]
    """
    rules = tuple(rules)
    before: dict[tuple[str, str, tuple[tuple[str, str], ...]], int] = {}
    after: dict[tuple[str, str, tuple[tuple[str, str], ...]], int] = {}
    for label in stored:
        old = (label.group, label.name, tuple(sorted(label.values.items())))
        new = (label.group, label.name, tuple(sorted(refine(rules, label.group, label.name, label.values).items())))
        before[old] = before.get(old, 0) + label.count
        after[new] = after.get(new, 0) + label.count
    keys = sorted(before.keys() | after.keys())
    rows = (Counts(*key, before.get(key, 0), after.get(key, 0)) for key in keys)
    return tuple(row for row in rows if row.before != row.after)


def rule_counts(rules: Iterable[SchemaRule], stored: Iterable[LabelledValues]) -> tuple[RuleCounts, ...]:
    """How many each rule merges, in the order of the rules.

    >>> sucked = [{"action": "suck", "target": target} for target in ("blood", "fluid")]
    >>> stored = [LabelledValues("tools", "aspirator", values, 3) for values in sucked]
    >>> [(row.merged, row.before, row.after) for row in rule_counts(builtin_refinement(), stored)][5]
    (3, 3, 6)
    """
    known = tuple(stored)
    counts = []
    for rule in rules:
        under = [label for label in known if rule.holds(label.group, label.name, label.values)]
        merged = sum(label.count for label in under if rule.merges(label.values.get(rule.attribute, "")))
        before = sum(label.count for label in under if label.values.get(rule.attribute) == rule.to)
        counts.append(RuleCounts(rule, merged, before, before + merged))
    return tuple(counts)
