"""Export the items that reviewers accepted, with the record of their review, and counts of each kind.

If fewer options are wanted, wrong options are dropped: those that a probe without images chose least, else at random by
seed. A trap and its twin with a true premise lose the same options, and so do several traps of one twin. Dropped
options are in the item's review record.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from surgeval.errors import BadInput
from surgeval.files import write_atomically
from surgeval.questions.checks import check_question
from surgeval.questions.drafts import item_to_draft, reorder_options, rules_of, scene_facts
from surgeval.questions.probe import ProbeRow, guessable, least_chosen, read_probe
from surgeval.questions.prompt_templates import skills
from surgeval.questions.question_set import ITEMS, QuestionSet, copy_media, write_items
from surgeval.questions.review import LEAST, ItemDecision, decide
from surgeval.questions.reviewer_agreement import agreement
from surgeval.records import IntentQuestion

__all__ = ["ExportResult", "export_set", "skills_by_scenario"]


@dataclass(frozen=True, slots=True)
class ExportResult:
    """The exported items, and why the others were not exported.

    >>> ExportResult().items
    ()
    """

    items: tuple[IntentQuestion, ...] = ()
    left: dict[str, str] = field(default_factory=dict)  # item → why it was not exported


def export_set(
    questions: QuestionSet,
    out: str | Path,
    *,
    options: int | None = None,
    reviewers: int = LEAST,
    drop_guessable: bool = False,
    anonymous: bool = False,
    seed: int = 0,
) -> ExportResult:
    """Write `items.jsonl`, its media and `export.json` to a folder of its own.

    >>> import tempfile
    >>> item = IntentQuestion("q", "chest", "p", (), "spatial", "absolute", "Where do I look?", ("a", "b"), 0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     export_set(QuestionSet(Path(folder), (item,), {}), Path(folder) / "out").left
    {'q': 'pending: 0 of 2 reviews'}
    """
    out = Path(out)
    if options is not None and not 2 <= options <= 8:
        raise BadInput(f"options is {options}; it must be between 2 and 8")
    decisions = decide(questions, max(reviewers, 1))
    rows = read_probe(questions)
    known = set(guessable(rows)) if drop_guessable else set()
    left: dict[str, str] = {}
    accepted: list[IntentQuestion] = []
    for item in questions.items:
        decision = decisions[item.id]
        corrected = replace(item, answer=decision.answer)
        if why := _reason_to_keep_back(questions, corrected, decision, reviewers, item.id in known, item.answer):
            left[item.id] = why
        else:
            accepted.append(corrected)
    names = _name_reviewers(decisions, anonymous)
    dropped = _choose_dropped(accepted, rows, options, seed)
    exported = []
    for item in _unlink_missing(accepted):
        keep = tuple(k for k in range(len(item.options)) if k not in dropped[item.id])
        trail = _describe_review(
            item, decisions[item.id], names, [item.options[k] for k in dropped[item.id]], bool(rows)
        )
        exported.append(replace(reorder_options(item, keep), review=trail))
    out.mkdir(parents=True, exist_ok=True)
    media = copy_media(questions.folder, out, {name for item in exported for name in item.media})
    exported = [replace(item, media=tuple(media[name] for name in item.media)) for item in exported]
    write_items(out / ITEMS, exported)
    text = json.dumps(_summarise(questions, exported, left), indent=1, ensure_ascii=False)
    write_atomically(out / "export.json", f"{text}\n".encode())
    return ExportResult(tuple(exported), left)


def _reason_to_keep_back(
    questions: QuestionSet, item: IntentQuestion, decision: ItemDecision, reviewers: int, known: bool, original: int
) -> str:
    if decision.status == "pending":
        return f"pending: {len(decision.judgements)} of {reviewers} reviews"
    if decision.status != "accepted":
        return decision.status
    if known:
        return "guessable: answered without a picture every time"
    if item.answer != original:  # the corrected item must pass the checks too: labels of a trap name the right option
        rules, facts = rules_of(item, questions.templates), scene_facts(item, questions.record_of(item))
        before = check_question(item_to_draft(replace(item, answer=original)), rules, facts)
        new = [fault for fault in check_question(item_to_draft(item), rules, facts) if fault not in before]
        if new:
            return f"corrected, and then {new[0].check}: {new[0].reason}"
    return ""


def _choose_dropped(
    items: Sequence[IntentQuestion], rows: Sequence[ProbeRow], options: int | None, seed: int
) -> dict[str, tuple[int, ...]]:
    """The options to drop of each item; items with a twin, and all traps of one twin, lose the same ones."""
    if options is None:
        return {item.id: () for item in items}
    by_id = {item.id: item for item in items}
    families: dict[str, list[IntentQuestion]] = {}
    for item in sorted(items, key=lambda item: item.twin is None):
        families.setdefault(_find_family(item, by_id), []).append(item)
    dropped: dict[str, tuple[int, ...]] = {}
    for family in families.values():
        for leader in family:
            if leader.id in dropped:
                continue
            alike = [item for item in family if set(item.options) == set(leader.options)]
            answers = {item.options[item.answer] for item in alike}
            spared = {k for k, option in enumerate(leader.options) if option in answers}
            lost = _choose_least(leader, rows, len(leader.options) - options, spared, seed)
            texts = {leader.options[k] for k in lost}
            for item in alike:
                dropped[item.id] = tuple(k for k, option in enumerate(item.options) if option in texts)
    return dropped


def _find_family(item: IntentQuestion, by_id: Mapping[str, IntentQuestion]) -> str:
    """The id of the last item along the `twin` links; it is the same for all items that lead to it."""
    way = [item.id]
    while (twin := by_id.get(by_id[way[-1]].twin or "")) is not None:
        if twin.id in way:  # the links form a circle
            return min(way[way.index(twin.id) :])
        way.append(twin.id)
    return way[-1]


def _choose_least(
    item: IntentQuestion, rows: Sequence[ProbeRow], count: int, spared: set[int], seed: int
) -> tuple[int, ...]:
    draw = random.Random(f"{seed} {item.id}")
    lost: list[int] = []
    while len(lost) < count:
        left = [k for k in range(len(item.options)) if k != item.answer and k not in spared and k not in lost]
        if not left:
            break
        least = [k for k in least_chosen(rows, item) if k in left]
        lost.append(draw.choice(least or left))
    return tuple(sorted(lost))


def _unlink_missing(items: Sequence[IntentQuestion]) -> list[IntentQuestion]:
    """The items without links to items that are not exported."""
    here = {item.id for item in items}
    return [
        replace(item, twin=item.twin if item.twin in here else None,
                untrapped=item.untrapped if item.untrapped in here else None)
        for item in items
    ]  # fmt: skip


def _name_reviewers(decisions: dict[str, ItemDecision], anonymous: bool) -> dict[str, str]:
    every = sorted(
        {j.reviewer for d in decisions.values() for j in (*d.judgements, *((d.settled,) if d.settled else ()))}
    )
    return {name: f"reviewer {number}" if anonymous else name for number, name in enumerate(every, start=1)}


def _describe_review(
    item: IntentQuestion, decision: ItemDecision, names: dict[str, str], dropped: list[str], probed: bool
) -> dict[str, Any]:
    """The review of an item; answers as texts, because the order of options may change."""

    def to_json(judgement: Any) -> dict[str, Any]:
        answer = None if judgement.answer is None else item.options[judgement.answer]
        return {"reviewer": names[judgement.reviewer], "verdict": judgement.verdict, "answer": answer,
                "comment": judgement.comment, "when": judgement.when}  # fmt: skip

    trail: dict[str, Any] = {"verdicts": [to_json(judgement) for judgement in decision.judgements]}
    if decision.settled is not None:
        trail["adjudicated"] = to_json(decision.settled)
    if dropped:
        trail["dropped_options"] = {"texts": dropped, "by": "least chosen without pictures" if probed else "seed"}
    return trail


def _summarise(questions: QuestionSet, exported: Sequence[IntentQuestion], left: dict[str, str]) -> dict[str, Any]:
    return {
        "items": len(exported),
        "clusters": len({item.cluster for item in exported}),
        "traps": dict(Counter(str(item.trap) for item in exported if item.trap)),
        "options": dict(sorted(Counter(str(len(item.options)) for item in exported).items())),
        "skills_by_scenario": skills_by_scenario(exported).to_dicts(),
        "agreement": [row.to_json() for row in agreement(questions)],
        "not_exported": left,
    }


def skills_by_scenario(items: Sequence[IntentQuestion]) -> pl.DataFrame:
    """The number of items per skill and scenario, and in total.

    >>> item = IntentQuestion("q", "chest", "p", (), "spatial", "absolute", "Where do I look?", ("a", "b"), 0)
    >>> skills_by_scenario([item]).row(1)
    ('spatial', 'absolute', 1, 1)
    """
    scenarios = sorted({item.scenario for item in items})
    counts = Counter((item.skill, item.scenario) for item in items)
    rows = [
        {"dimension": skill.dimension, "skill": skill.name, **{name: counts[skill.name, name] for name in scenarios},
         "all": sum(counts[skill.name, name] for name in scenarios)}
        for skill in skills().values()
    ]  # fmt: skip
    return pl.DataFrame(rows)
