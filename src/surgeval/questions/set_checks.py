"""The checks of batches, of whole sets and of probes, and `inspect_set`, which applies every check to a set.

A batch is the six questions of one reply. A set shows whether positions or lengths of right options give them away, and
whether questions occur twice.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

import polars as pl
from scipy.stats import chi2

from surgeval.questions.checks import Fault, Scope, check_question, checks_of, question_check
from surgeval.questions.drafts import LETTERS, Draft, item_to_draft, normalise_text, rules_of, scene_facts
from surgeval.questions.probe import ProbeRow, guessable, read_probe
from surgeval.questions.probe import gaze_confirmed as find_gaze_confirmed
from surgeval.questions.prompt_templates import Rules, skills
from surgeval.questions.question_set import QuestionSet
from surgeval.records import IntentQuestion
from surgeval.results import Result, counted
from surgeval.stats import wilson

__all__ = ["LongestBias", "SetReport", "check_batch", "check_set", "inspect_set", "longest_bias"]


@question_check("batch", needs="batch")
def six_skills(drafts: Sequence[Draft], rules: Rules) -> str:
    """Exactly six questions, one for each skill."""
    counts = Counter(draft.skill for draft in drafts)
    odd = [f"{counts[name]} for {name}" for name in skills() if counts[name] != 1]
    if len(drafts) != len(skills()):
        odd.insert(0, f"{len(drafts)} questions")
    return ", ".join(odd)


@question_check("batch", needs="gaze")
def enough_gaze(drafts: Sequence[Draft], rules: Rules) -> str:
    """At least as many questions depend on the gaze as the template asks for."""
    count = sum(draft.gaze_dependent is True for draft in drafts)
    return (
        f"{count} of {len(drafts)} depend on the gaze, expected {rules.gaze_dependent}"
        if count < rules.gaze_dependent
        else ""
    )


@question_check("batch", needs="batch")
def enough_sources(drafts: Sequence[Draft], rules: Rules) -> str:
    """At least as many questions rest on a recent guideline or a rare lethal detail as the template asks for."""
    count = sum(draft.source_kind in ("guideline", "rare") and bool(draft.source) for draft in drafts)
    return f"{count} of {len(drafts)} name a source, expected {rules.sources}" if count < rules.sources else ""


@question_check("batch", needs="batch")
def not_always_longest(drafts: Sequence[Draft], rules: Rules) -> str:
    """The right option is not the longest every time."""
    told = [_is_longest(draft) for draft in drafts]
    return "the right option is the longest of each question" if len(told) > 2 and all(told) else ""


def _is_longest(draft: Draft) -> bool:
    """Whether the right option is longer than every other."""
    lengths = [len(option) for option in draft.options]
    right = draft.answers[0] if len(draft.answers) == 1 and draft.answers[0] < len(lengths) else None
    return right is not None and all(length < lengths[right] for n, length in enumerate(lengths) if n != right)


_LEVEL = 0.01  # of the test of positions: a balanced set of any size fails once in a hundred times


@dataclass(frozen=True, slots=True)
class LongestBias:
    """Share of questions whose right option is the longest, with its interval, and the share expected by chance.

    >>> LongestBias(0.75, (0.3, 0.95), 0.25).significant
    True
    """

    share: float
    interval: tuple[float, float]
    chance: float

    @property
    def significant(self) -> bool:
        """Whether length gives answers away: the whole interval is above chance."""
        return self.interval[0] > self.chance


def longest_bias(drafts: Mapping[str, Draft]) -> LongestBias | None:
    """The longest-answer bias of a set; None if no question has a longest option.

    >>> draft = Draft("relative", "What do I see?", ("a hook", "clip"), (0,))
    >>> bias = longest_bias({"q": draft})
    >>> bias.share, bias.chance, bias.significant
    (1.0, 0.5, False)
    """
    sized = [d for d in drafts.values() if d.options and Counter(map(len, d.options))[max(map(len, d.options))] == 1]
    if not sized:
        return None
    longest, chance = sum(map(_is_longest, sized)), sum(1 / len(draft.options) for draft in sized) / len(sized)
    return LongestBias(longest / len(sized), wilson(longest, len(sized)), chance)


@question_check("set")
def answer_not_longest(drafts: Mapping[str, Draft]) -> str:
    """The right option is not the longest more often than expected by chance."""
    bias = longest_bias(drafts)
    if bias is None or not bias.significant:
        return ""
    return f"the right option is the longest of {bias.share:.0%}, by chance of {bias.chance:.0%}"


@question_check("set")
def positions_balanced(drafts: Mapping[str, Draft]) -> str:
    """The right option stands equally often in each position."""
    for count in sorted({len(draft.options) for draft in drafts.values()}):
        at = Counter(d.answers[0] for d in drafts.values() if len(d.options) == count and len(d.answers) == 1)
        expected = at.total() / count
        if not expected:
            continue
        statistic = sum((at[k] - expected) ** 2 / expected for k in range(count))
        if chi2.sf(statistic, count - 1) < _LEVEL:
            told = ", ".join(f"{LETTERS[k]} {at[k]}" for k in range(count))
            return f"of {at.total()} questions with {count} options the right one is {told}"
    return ""


@question_check("set")
def questions_distinct(drafts: Mapping[str, Draft]) -> str:
    """No two questions about the same pictures have the same text and the same options."""
    seen: dict[tuple[str, ...], str] = {}
    for name, draft in drafts.items():
        key = (draft.scene, normalise_text(draft.question), *sorted(map(normalise_text, draft.options)))
        if key in seen:
            return f"{seen[key]} and {name} ask the same"
        seen[key] = name
    return ""


@question_check("probe", needs="probe")
def not_guessable(questions: QuestionSet, rows: Sequence[ProbeRow]) -> Iterator[tuple[str, str]]:
    """A model without pictures does not find the answer every time."""
    for name in guessable(rows):
        yield name, "answered without a picture every time"


@question_check("probe", needs="probe")
def gaze_confirmed(questions: QuestionSet, rows: Sequence[ProbeRow]) -> Iterator[tuple[str, str]]:
    """Enough answers are found with the gaze and not without."""
    seen = {row.item for row in rows if row.condition == "gaze"} & {
        row.item for row in rows if row.condition == "plain"
    }
    confirmed = find_gaze_confirmed(rows)
    for (record, name), items in _batches(questions).items():
        wanted = questions.templates[name].rules.gaze_dependent
        needing = [item.id for item in items if item.gaze_dependent]
        count = sum(item in confirmed for item in needing)
        if wanted and needing and seen.issuperset(needing) and count < wanted:
            shortfall = f"{count} of {len(needing)} are right with the gaze only, expected {wanted}"
            yield f"{record} {name}", shortfall


def check_batch(drafts: Sequence[Draft], rules: Rules, where: str = "") -> list[Fault]:
    """Apply the checks of a batch to the questions of one reply.

    >>> [fault.check for fault in check_batch([], Rules())]
    ['six-skills']
    """
    found = [(check.name, check.find(drafts, rules)) for check in checks_of("batch")]
    return [Fault(name, where, reason) for name, reason in found if reason]


def check_set(drafts: Mapping[str, Draft]) -> list[Fault]:
    """Apply the checks of a set to its questions together.

    >>> check_set({})
    []
    """
    found = [(check.name, check.find(drafts)) for check in checks_of("set")]
    return [Fault(name, "the set", reason) for name, reason in found if reason]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SetReport(Result):
    """Result of the checks of a set. `unchecked` says what items lack, and which checks therefore did not apply.

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
        """`faults`: one row per check that failed, how often, and the first case."""
        counts = Counter(fault.check for fault in self.faults)
        first = {fault.check: f"{fault.where}: {fault.reason}" for fault in reversed(self.faults)}
        rows = [(name, count, first[name]) for name, count in counts.most_common()]
        schema = {"check": pl.String, "failed": pl.Int64, "for instance": pl.String}
        return {"faults": pl.DataFrame(rows, schema=schema, orient="row")}

    def __str__(self) -> str:
        return f"{counted(self.items, 'item')}, {counted(len(self.faults), 'fault')}"

    def to_json(self) -> dict[str, Any]:
        """Plain values of all of it."""
        bias = self.longest
        told = None if bias is None else {"share": bias.share, "interval": list(bias.interval), "chance": bias.chance}
        faults = [{"check": fault.check, "where": fault.where, "reason": fault.reason} for fault in self.faults]
        return {"items": self.items, "faults": faults, "unchecked": list(self.unchecked), "longest_answer": told,
                "answer_positions": dict(self.positions)}  # fmt: skip


def inspect_set(questions: QuestionSet, *, options: int | None = None) -> SetReport:
    """Apply every check to the items, to the batches they were made in, and to the set.

    >>> from pathlib import Path
    >>> item = IntentQuestion("q", "laparoscopy", "v", (), "spatial", "relative", "What is it?", ("a", "b"), 0)
    >>> [fault.check for fault in inspect_set(QuestionSet(Path("."), (item,), {})).faults]
    ['first-person']
    """
    drafts = {item.id: item_to_draft(item) for item in questions.items}
    faults: list[Fault] = []
    for item in questions.items:
        facts = scene_facts(item, questions.record_of(item))
        faults += check_question(
            drafts[item.id], rules_of(item, questions.templates), facts, options=options, where=item.id
        )
    faults += _batch_faults(questions, drafts)
    faults += check_set(drafts)
    rows = read_probe(questions)
    faults += [Fault(c.name, where, reason) for c in checks_of("probe") for where, reason in c.find(questions, rows)]
    positions = Counter(LETTERS[item.answer] for item in questions.items)
    return SetReport(
        items=len(questions.items), faults=tuple(faults), unchecked=tuple(_unchecked(questions)),
        longest=longest_bias(drafts), positions=dict(sorted(positions.items())),
    )  # fmt: skip


def _batches(questions: QuestionSet) -> dict[tuple[str, str], list[IntentQuestion]]:
    """The items by record and template, without exported ones, whose batches may be incomplete."""
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


def _unchecked(questions: QuestionSet) -> list[str]:
    """What items of the set lack, with the checks that therefore do not apply to them."""
    items = questions.items
    bare = sum(item.trap is not None and not item.labels for item in items)
    alone = sum(item.trap == "perceptual" and questions.record_of(item) is None for item in items)
    silent = sum(item.gaze_dependent is None for item in items)
    loose = len(items) - sum(map(len, _batches(questions).values()))
    lacking = {
        "labels": f"{bare} traps have no labels" if bare else "",
        "scene": f"{alone} perceptual traps have no record" if alone else "",
        "gaze": f"{silent} items do not say whether they depend on the gaze" if silent else "",
        "batch": f"{loose} items belong to no batch" if loose else "",
        "probe": "" if read_probe(questions) else "no probe was made",
    }
    every = [check for scope in get_args(Scope) for check in checks_of(scope)]
    return [
        f"{reason}: {', '.join(check.name for check in every if check.needs == need)}"
        for need, reason in lacking.items()
        if reason
    ]
