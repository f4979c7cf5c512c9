"""Export: the items that people accepted, with the trail of their review, and how many there are of each kind.

Where fewer options are asked for, wrong ones are dropped: those that a probe without pictures chose least, else by
seed. A trap and its true-premise twin lose the same ones, and so do several traps of one twin. What was dropped is in
the item's trail.
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
from surgeval.questions.folder import ITEMS, QuestionSet, copy_media, write_items
from surgeval.questions.items import draft_of, facts_of, reordered, rules_of
from surgeval.questions.kappas import agreement
from surgeval.questions.probe import ProbeRow, guessable, least_chosen, read_probe
from surgeval.questions.review import LEAST, ItemDecision, decide
from surgeval.questions.template import skills
from surgeval.records import IntentQuestion

__all__ = ["Exported", "export_set", "skills_by_scenario"]


@dataclass(frozen=True, slots=True)
class Exported:
    """What went out, and why the rest stayed.

    >>> Exported().items
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
) -> Exported:
    """Write `items.jsonl`, its media and `export.json` to a folder of its own.

    >>> import tempfile
    >>> item = IntentQuestion("q", "chest", "p", (), "spatial", "absolute", "Where do I look?", ("a", "b"), 0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     export_set(QuestionSet(Path(folder), (item,), {}), Path(folder) / "out").left
    {'q': 'pending: 0 of 2 reviews'}
    """
    out = Path(out)
    if options is not None and not 2 <= options <= 8:
        raise BadInput(f"options: found {options}, expected 2 to 8")
    decisions = decide(questions, max(reviewers, 1))
    rows = read_probe(questions)
    known = set(guessable(rows)) if drop_guessable else set()
    left: dict[str, str] = {}
    accepted: list[IntentQuestion] = []
    for item in questions.items:
        decision = decisions[item.id]
        corrected = replace(item, answer=decision.answer)
        if why := _why_not(questions, corrected, decision, reviewers, item.id in known, item.answer):
            left[item.id] = why
        else:
            accepted.append(corrected)
    names = _names(decisions, anonymous)
    dropped = _dropped(accepted, rows, options, seed)
    exported = []
    for item in _linked(accepted):
        keep = tuple(k for k in range(len(item.options)) if k not in dropped[item.id])
        trail = _trail(item, decisions[item.id], names, [item.options[k] for k in dropped[item.id]], bool(rows))
        exported.append(replace(reordered(item, keep), review=trail))
    out.mkdir(parents=True, exist_ok=True)
    media = copy_media(questions.folder, out, {name for item in exported for name in item.media})
    exported = [replace(item, media=tuple(media[name] for name in item.media)) for item in exported]
    write_items(out / ITEMS, exported)
    told = json.dumps(_summary(questions, exported, left), indent=1, ensure_ascii=False)
    write_atomically(out / "export.json", f"{told}\n".encode())
    return Exported(tuple(exported), left)


def _why_not(
    questions: QuestionSet, item: IntentQuestion, decision: ItemDecision, reviewers: int, known: bool, original: int
) -> str:
    if decision.status == "pending":
        return f"pending: {len(decision.judgements)} of {reviewers} reviews"
    if decision.status != "accepted":
        return decision.status
    if known:
        return "guessable: answered without a picture every time"
    if item.answer != original:  # a corrected answer must keep the rules too: a trap's labels name the right option
        rules, facts = rules_of(item, questions.templates), facts_of(item, questions.record_of(item))
        before = check_question(draft_of(replace(item, answer=original)), rules, facts)
        new = [fault for fault in check_question(draft_of(item), rules, facts) if fault not in before]
        if new:
            return f"corrected, and then {new[0].check}: {new[0].found}"
    return ""


def _dropped(
    items: Sequence[IntentQuestion], rows: Sequence[ProbeRow], options: int | None, seed: int
) -> dict[str, tuple[int, ...]]:
    """The options that each item loses; items with a twin, and all traps of one twin, are decided together."""
    if options is None:
        return {item.id: () for item in items}
    by_id = {item.id: item for item in items}
    families: dict[str, list[IntentQuestion]] = {}
    for item in sorted(items, key=lambda item: item.twin is None):
        families.setdefault(_family(item, by_id), []).append(item)
    dropped: dict[str, tuple[int, ...]] = {}
    for family in families.values():
        for leader in family:
            if leader.id in dropped:
                continue
            alike = [item for item in family if set(item.options) == set(leader.options)]
            answers = {item.options[item.answer] for item in alike}
            spared = {k for k, option in enumerate(leader.options) if option in answers}
            lost = _least(leader, rows, len(leader.options) - options, spared, seed)
            texts = {leader.options[k] for k in lost}
            for item in alike:
                dropped[item.id] = tuple(k for k, option in enumerate(item.options) if option in texts)
    return dropped


def _family(item: IntentQuestion, by_id: Mapping[str, IntentQuestion]) -> str:
    """The id of the last item along the `twin` links, which a twin shares with all items that lead to it."""
    way = [item.id]
    while (twin := by_id.get(by_id[way[-1]].twin or "")) is not None:
        if twin.id in way:  # they name each other
            return min(way[way.index(twin.id) :])
        way.append(twin.id)
    return way[-1]


def _least(item: IntentQuestion, rows: Sequence[ProbeRow], count: int, spared: set[int], seed: int) -> tuple[int, ...]:
    draw = random.Random(f"{seed} {item.id}")
    lost: list[int] = []
    while len(lost) < count:
        left = [k for k in range(len(item.options)) if k != item.answer and k not in spared and k not in lost]
        if not left:
            break
        least = [k for k in least_chosen(rows, item) if k in left]
        lost.append(draw.choice(least or left))
    return tuple(sorted(lost))


def _linked(items: Sequence[IntentQuestion]) -> list[IntentQuestion]:
    """The items without links to items that stayed behind."""
    here = {item.id for item in items}
    return [
        replace(item, twin=item.twin if item.twin in here else None,
                untrapped=item.untrapped if item.untrapped in here else None)
        for item in items
    ]  # fmt: skip


def _names(decisions: dict[str, ItemDecision], anonymous: bool) -> dict[str, str]:
    every = sorted(
        {j.reviewer for d in decisions.values() for j in (*d.judgements, *((d.settled,) if d.settled else ()))}
    )
    return {name: f"reviewer {number}" if anonymous else name for number, name in enumerate(every, start=1)}


def _trail(
    item: IntentQuestion, decision: ItemDecision, names: dict[str, str], dropped: list[str], probed: bool
) -> dict[str, Any]:
    """Who said what; answers as texts, since options may have moved."""

    def told(judgement: Any) -> dict[str, Any]:
        answer = None if judgement.answer is None else item.options[judgement.answer]
        return {"reviewer": names[judgement.reviewer], "verdict": judgement.verdict, "answer": answer,
                "comment": judgement.comment, "when": judgement.when}  # fmt: skip

    trail: dict[str, Any] = {"verdicts": [told(judgement) for judgement in decision.judgements]}
    if decision.settled is not None:
        trail["adjudicated"] = told(decision.settled)
    if dropped:
        trail["dropped_options"] = {"texts": dropped, "by": "least chosen without pictures" if probed else "seed"}
    return trail


def _summary(questions: QuestionSet, exported: Sequence[IntentQuestion], left: dict[str, str]) -> dict[str, Any]:
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
    """How many items there are of each skill in each scenario, and in all.

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
