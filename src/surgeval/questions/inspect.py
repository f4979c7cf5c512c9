"""The automatic checks over a whole set, or over any `items.jsonl`: which check failed for which item, and why."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from surgeval.questions.checks import (
    Fault,
    LongestBias,
    check_batch,
    check_names,
    check_question,
    check_set,
    longest_bias,
)
from surgeval.questions.draft import LETTERS, Draft
from surgeval.questions.folder import QuestionSet
from surgeval.questions.items import draft_of, facts_of, rules_of
from surgeval.questions.probe import gaze_confirmed, guessable, read_probe
from surgeval.records import IntentQuestion
from surgeval.results import Result, counted

__all__ = ["SetReport", "inspect_set"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SetReport(Result):
    """What the checks say of a set. `unchecked` are checks that lacked something to hold the items against.

    >>> SetReport(items=3).sound
    True
    """

    items: int
    faults: tuple[Fault, ...] = ()
    unchecked: tuple[str, ...] = ()
    longest: LongestBias | None = None
    positions: Mapping[str, int] = field(default_factory=dict)

    @property
    def sound(self) -> bool:
        """Whether no check failed."""
        return not self.faults

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """`faults`, a row per check that failed: how often, and the first case of it."""
        counts = Counter(fault.check for fault in self.faults)
        first = {fault.check: f"{fault.where}: {fault.found}" for fault in reversed(self.faults)}
        rows = [(name, count, first[name]) for name, count in counts.most_common()]
        schema = {"check": pl.String, "failed": pl.Int64, "for instance": pl.String}
        return {"faults": pl.DataFrame(rows, schema=schema, orient="row")}

    def __str__(self) -> str:
        return f"{counted(self.items, 'item')}, {counted(len(self.faults), 'fault')}"

    def to_json(self) -> dict[str, Any]:
        """Everything, for other programs."""
        bias = self.longest
        told = None if bias is None else {"share": bias.share, "interval": list(bias.interval), "chance": bias.chance}
        faults = [{"check": fault.check, "where": fault.where, "found": fault.found} for fault in self.faults]
        return {"items": self.items, "faults": faults, "unchecked": list(self.unchecked), "longest_answer": told,
                "answer_positions": dict(self.positions)}  # fmt: skip


def inspect_set(questions: QuestionSet, *, options: int | None = None) -> SetReport:
    """Apply every check to the items, to the batches they were made in, and to the set.

    >>> from pathlib import Path
    >>> item = IntentQuestion("q", "laparoscopy", "v", (), "spatial", "relative", "What is it?", ("a", "b"), 0)
    >>> [fault.check for fault in inspect_set(QuestionSet(Path("."), (item,), {})).faults]
    ['first-person']
    """
    drafts = {item.id: draft_of(item) for item in questions.items}
    faults: list[Fault] = []
    for item in questions.items:
        facts = facts_of(item, questions.record_of(item))
        faults += check_question(
            drafts[item.id], rules_of(item, questions.templates), facts, options=options, where=item.id
        )
    faults += _batch_faults(questions, drafts)
    faults += check_set(drafts)
    faults += _probe_faults(questions)
    positions = Counter(LETTERS[item.answer] for item in questions.items)
    return SetReport(
        items=len(questions.items), faults=tuple(faults), unchecked=tuple(_unchecked(questions)),
        longest=longest_bias(drafts), positions=dict(sorted(positions.items())),
    )  # fmt: skip


def _batches(questions: QuestionSet) -> dict[tuple[str, str], list[IntentQuestion]]:
    """The items by record and template, without exported ones: their batches may not be complete any more."""
    batches = defaultdict(list)
    for item in questions.items:
        record, template = (str(item.context.get(key, "")) for key in ("record", "template"))
        if record and item.review is None and template.partition(" ")[0] in questions.templates:
            batches[record, template.partition(" ")[0]].append(item)
    return batches


def _batch_faults(questions: QuestionSet, drafts: Mapping[str, Draft]) -> list[Fault]:
    faults: list[Fault] = []
    for (record, name), items in _batches(questions).items():
        faults += check_batch([drafts[item.id] for item in items], questions.templates[name].rules, f"{record} {name}")
    return faults


def _probe_faults(questions: QuestionSet) -> list[Fault]:
    """What a probe of this set has shown, where there was one."""
    rows = read_probe(questions)
    told = [Fault("not-guessable", name, "answered without a picture every time") for name in guessable(rows)]
    seen = {row.item for row in rows if row.condition == "gaze"} & {
        row.item for row in rows if row.condition == "plain"
    }
    confirmed = gaze_confirmed(rows)
    for (record, name), items in _batches(questions).items():
        wanted = questions.templates[name].rules.gaze_dependent
        needing = [item.id for item in items if item.gaze_dependent]
        count = sum(item in confirmed for item in needing)
        if wanted and needing and seen.issuperset(needing) and count < wanted:
            shortfall = f"{count} of {len(needing)} are right with the gaze only, expected {wanted}"
            told.append(Fault("gaze-confirmed", f"{record} {name}", shortfall))
    return told


def _unchecked(questions: QuestionSet) -> list[str]:
    """What could not be checked for lack of labels, records, batches or a probe, and by which checks."""
    told = []
    bare = sum(item.trap is not None and not item.labels for item in questions.items)
    if bare:
        told.append(f"{bare} traps have no labels: perceptual-labels, cognitive-labels, trap-reasons")
    alone = sum(item.trap == "perceptual" and questions.record_of(item) is None for item in questions.items)
    if alone:
        told.append(f"{alone} perceptual traps have no record: labels-match-scene")
    silent = sum(item.gaze_dependent is None for item in questions.items)
    if silent:
        told.append(f"{silent} items do not say whether they depend on the gaze: gaze-told, enough-gaze")
    loose = len(questions.items) - sum(map(len, _batches(questions).values()))
    if loose:
        told.append(f"{loose} items belong to no batch: six-skills, enough-sources, not-always-longest")
    if not read_probe(questions):
        told.append("no probe was made: not-guessable, gaze-confirmed")
    return told


def claims() -> dict[str, str]:
    """Every check with its claim, those of the probe too."""
    return {**check_names(), "not-guessable": "A model without pictures does not find the answer every time.",
            "gaze-confirmed": "Enough answers are found with the gaze and not without."}  # fmt: skip
