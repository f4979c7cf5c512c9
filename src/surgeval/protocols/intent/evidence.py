"""The answers as rows of the page's evidence browser: a row per item and condition."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from surgeval.pages import Evidence
from surgeval.protocols.intent.scoring.scores import MISSING
from surgeval.records import IntentQuestion

if TYPE_CHECKING:
    from surgeval.protocols.intent.result import IntentScores

__all__ = ["ROLES", "intent_evidence", "lettered"]

ROLES = {
    "competency": "competency",
    "perceptual": "perceptual trap",
    "cognitive": "cognitive trap",
    "twin": "true-premise twin",
    "untrapped": "trap taken away",
}
_FACETS = {"kind": "Kind", "condition": "Asked", "skill": "Skill", "scenario": "Scenario", "reading": "Reading"}
_LONGEST = 600  # characters of a reply
_LETTERS = "ABCDEFGH"


def lettered(item: IntentQuestion, choice: int | None) -> str:
    """An option with its letter, or that none could be read.

    >>> common = dict(scenario="s", cluster="v", media=(), dimension="spatial", skill="absolute", question="?")
    >>> lettered(IntentQuestion("1", options=("to cut", "to see"), answer=1, **common), 1)
    'B. to see'
    """
    return "no choice can be read" if choice is None else f"{_LETTERS[choice]}. {item.options[choice]}"


def intent_evidence(scores: IntentScores) -> Evidence | None:
    """Question and options, what was chosen and what is right; None where nothing was asked."""
    if scores.answers.is_empty():
        return None
    items = {item.id: item for item in scores.items}
    rows = [_row(items[row["item"]], row) for row in scores.answers.iter_rows(named=True)]
    names = scores.answers.filter(pl.col("condition") != "text-only").select("id", "item").iter_rows()
    pictures = {name: scores.pictures[item] for name, item in names if item in scores.pictures}
    return Evidence(
        model=scores.name, cases=pl.DataFrame(rows, infer_schema_length=None), facets=_FACETS,
        own=frozenset({"reading"}), numbers={"latency": "latency in s"}, open=frozenset({"failed", MISSING}),
        pictures=pictures, case="answer",
    )  # fmt: skip


def _row(item: IntentQuestion, row: dict[str, object]) -> dict[str, object]:
    ok, choice = row["status"] == "ok", row["choice"]
    options = " ".join(f"{letter}. {text}" for letter, text in zip(_LETTERS, item.options, strict=False))
    reply = str(row["content"])[:_LONGEST]
    picked = lettered(item, choice if isinstance(choice, int) else None) if ok else "no answer"
    if ok:
        verdict = "unreadable" if choice is None else "right" if row["right"] else "wrong"
    else:
        verdict = MISSING if row["status"] == MISSING else "failed"
    return {
        "id": row["id"], "video": item.cluster, "frame": "" if item.end is None else f"{item.end:g} s",
        "asked": f"{item.question} {options}", "answer": f"{picked} (said: {reply})" if reply else picked,
        "reference": lettered(item, item.answer), "verdict": verdict,
        "reason": str(row["reason"]) or ("" if row["reading"] == "ok" else str(row["reading"])),
        "kind": ROLES[str(row["role"])], "condition": row["condition"], "skill": item.skill,
        "scenario": item.scenario.replace("_", " "), "reading": str(row["reading"]) or "none",
        "latency": row["latency"],
    }  # fmt: skip
