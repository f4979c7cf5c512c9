"""A run as tables: numbers in full precision for files; the page words them (`_page_tables`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from surgeval.protocols.intent.scoring.estimates import estimate_of
from surgeval.protocols.intent.scoring.numbers import LABELS, MEASURES, number_unit
from surgeval.protocols.intent.scoring.scores import MISSING, PLAIN, roles_of
from surgeval.protocols.intent.scoring.weights import NUMBERS, SKILLS
from surgeval.records import IntentQuestion
from surgeval.results import percent
from surgeval.stats import Difference, Interval, find_measure, number_text

if TYPE_CHECKING:
    from surgeval.protocols.intent.result import IntentScores

__all__ = ["intent_tables", "printed_tables", "reading_table", "reference_rows", "set_table"]

_ENDS = ("", "_low", "_high")
_BY_SCENARIO = ("overall", "reliability", "paired")


def printed_tables(scores: IntentScores) -> dict[str, pl.DataFrame]:
    """What the command prints: every number with its interval and what guessing reaches."""
    rows = []
    for name, interval in scores.numbers.items():
        unit, chance = number_unit(name), scores.chances.get(name)
        guessing = "" if chance is None else percent(chance) if unit == "share" else number_text(chance, unit)
        rows.append((LABELS[name], interval.cell(unit), guessing))
    table = pl.DataFrame(rows, schema=dict.fromkeys(("number", "share", "guessing"), pl.String), orient="row")
    return {"accuracy": table} if rows else {}


def intent_tables(scores: IntentScores) -> dict[str, pl.DataFrame]:
    """`numbers` first, then what else was asked; a table without rows is left out."""
    tables = {
        "numbers": _numbers(scores), "gaze": _gaze(scores), "text_only": _text_only(scores),
        "trap_removal": _removal(scores), "option_order": _order(scores), "wrong_gaze": _moved(scores),
        "scenarios": scenario_table(scores), "references": reference_rows(scores.items),
        "readings": reading_table(scores), "denominators": _denominators(scores), "set": set_table(scores.items),
        "answers": scores.answers.drop("distractor", strict=False),
    }  # fmt: skip
    return {name: table for name, table in tables.items() if table.height}


def _frame(rows: Sequence[dict[str, Any]], text: Sequence[str], whole: Sequence[str] = ()) -> pl.DataFrame:
    """A table from its rows; NaN, where there is no interval, is null."""
    kinds = dict.fromkeys(text, pl.String) | dict.fromkeys(whole, pl.Int64)
    columns = list(rows[0]) if rows else []
    frame = pl.DataFrame(rows, schema={name: kinds.get(name, pl.Float64) for name in columns})
    return frame.with_columns(pl.selectors.float().fill_nan(None))


def _ends(name: str, interval: Interval | None) -> dict[str, float | None]:
    values = (None, None, None) if interval is None else (interval.estimate, interval.low, interval.high)
    return {f"{name}{end}": value for end, value in zip(_ENDS, values, strict=True)}


def _gap(name: str, difference: Difference | None) -> dict[str, float | None]:
    return {
        **_ends(name, difference.interval if difference else None),
        f"{name}_p": difference.p if difference else None,
    }


def _numbers(scores: IntentScores) -> pl.DataFrame:
    rows = [
        {"number": number, "label": LABELS[number], **_ends("estimate", interval), "chance": scores.chances.get(number),
         "strict": scores.strict[number].estimate if number in scores.strict else None,
         "answers": scores.plain.filter(pl.col("cell").is_in(list(NUMBERS[number]))).height,
         "videos": interval.clusters, "signature": find_measure(MEASURES, number).signature(scores.settings, interval)}
        for number, interval in scores.numbers.items()
    ]  # fmt: skip
    return _frame(rows, ("number", "label", "signature"), ("answers", "videos"))


def _gaze(scores: IntentScores) -> pl.DataFrame:
    rows = [
        {"number": number, "without_gaze": gain.b, "with_gaze": gain.a, **_gap("gain", gain)}
        for number, gain in scores.gains.items()
    ]
    return _frame(rows, ("number",))


def _text_only(scores: IntentScores) -> pl.DataFrame:
    rows = [
        {"number": number, "chance": row.chance, **_ends("text_only", row.text), **_ends("full", row.full),
         **_gap("gain", row.gain)}
        for number, row in scores.text_only.items()
    ]  # fmt: skip
    return _frame(rows, ("number",))


def _removal(scores: IntentScores) -> pl.DataFrame:
    rows = [
        {"kind": kind, "failed": row.failed, "passed": row.passed, **_ends("after_failed", row.after_failed),
         **_ends("again", row.again), **_ends("after_passed", row.after_passed), **_gap("over_again", row.over_again),
         **_ends("failed_minus_passed", row.less_than_passed)}
        for kind, row in scores.removal.items()
    ]  # fmt: skip
    return _frame(rows, ("kind",), ("failed", "passed"))


def _order(scores: IntentScores) -> pl.DataFrame:
    order = scores.order
    if order is None:
        return pl.DataFrame()
    row = {
        "items": order.items,
        "rotations": order.rotations,
        **_ends("consistent", order.consistent),
        **_ends("right_in_every_order", order.always_right),
        **_ends("right_in_own_order", order.first_order),
    }
    return _frame([row], (), ("items", "rotations"))  # fmt: skip


def _moved(scores: IntentScores) -> pl.DataFrame:
    moved = scores.moved
    if moved is None:
        return pl.DataFrame()
    row = {"items": moved.items, "against": moved.against, **_ends("changed", moved.changed),
           "distractor_known": moved.known, **_ends("to_distractor", moved.to_distractor)}  # fmt: skip
    return _frame([row], ("against",), ("items", "distractor_known"))


def scenario_table(scores: IntentScores) -> pl.DataFrame:
    """Competency, reliability and paired accuracy by scenario."""
    rows = []
    for scenario in sorted(scores.plain["scenario"].unique()):
        part = scores.plain.filter(pl.col("scenario") == scenario)
        for number in _BY_SCENARIO:
            interval = estimate_of(part, number)
            if interval is not None:
                rows.append({"scenario": scenario, "number": number, **_ends("estimate", interval),
                             "videos": interval.clusters})  # fmt: skip
    return _frame(rows, ("scenario", "number"), ("videos",))


def reference_rows(items: Sequence[IntentQuestion]) -> pl.DataFrame:
    """What always rejecting, always accepting and guessing reach on the traps of these items, on average.

    Nobody is asked: in a cognitive trap the right option is the one that rejects, and in its twin it is not. A
    perceptual trap has no such option: all three guess it.
    """
    by_id = {item.id: item for item in items}
    traps = [item for item in items if item.trap == "cognitive"]
    twins = [(trap, by_id[trap.twin]) for trap in traps if trap.twin in by_id]
    if not traps:
        return pl.DataFrame()
    guess = [1 / len(item.options) for item in traps]
    guess_twin = [1 / len(twin.options) for _, twin in twins]
    accept = [1 / (len(twin.options) - 1) for _, twin in twins]
    pair = [1 / (len(trap.options) * len(twin.options)) for trap, twin in twins]

    def mean(values: list[float]) -> float | None:
        return sum(values) / len(values) if values else None

    seen = mean([1 / len(item.options) for item in items if item.trap == "perceptual"])

    def row(name: str, trap: float, twin: float | None, both: float | None, over: float | None) -> dict[str, Any]:
        average = trap if seen is None else (seen + trap) / 2
        return {"answerer": name, "perceptual": seen, "cognitive": trap, "reliability": average, "twin": twin,
                "paired": both, "over_rejection": over}  # fmt: skip

    known = bool(twins)
    rows = [
        row("always-reject", 1.0, 0.0 if known else None, 0.0 if known else None, 1.0 if known else None),
        row("always-accept", 0.0, mean(accept), 0.0 if known else None, 0.0 if known else None),
        row("guessing", sum(guess) / len(guess), mean(guess_twin), mean(pair), mean(guess_twin)),
    ]
    return _frame(rows, ("answerer",))


def reading_table(scores: IntentScores) -> pl.DataFrame:
    """By condition: how replies were read, and what a stricter reading would change; missing replies are wrong."""
    rows = []
    for condition in scores.answers["condition"].unique(maintain_order=True):
        every = scores.answers.filter(pl.col("condition") == condition)
        replied = every.filter(pl.col("status") == "ok")
        counted = every.filter(pl.col("status").is_in(["ok", MISSING]))
        missing = counted.height - replied.height
        rows.append({
            "condition": condition, "asked": every.height, "missing": missing,
            "failed": every.height - counted.height, "unreadable": int(replied["choice"].is_null().sum()),
            "right": _mean(counted["right"]) if counted.height else None,
            "right_strict": _mean(counted["right_strict"]) if counted.height else None,
            "differs": _mean(replied["choice"].ne_missing(replied["strict"])) if replied.height else None,
        })  # fmt: skip
    return _frame(rows, ("condition",), ("asked", "missing", "failed", "unreadable"))


def _mean(flags: pl.Series) -> float:
    return float(flags.cast(pl.Float64).mean() or 0.0)  # type: ignore[arg-type]


def _denominators(scores: IntentScores) -> pl.DataFrame:
    """By kind of item, asked as they are: items, replies, and accuracy with and without the unreadable replies.

    A missing reply is wrong in both.
    """
    plain = scores.answers.filter(pl.col("condition") == PLAIN)
    kind = pl.when(pl.col("role") == "competency").then("skill").otherwise("role")
    rows = []
    for (name,), part in plain.with_columns(kind=kind).group_by("kind", maintain_order=True):
        replied = part.filter(pl.col("status") == "ok")
        missing = part.filter(pl.col("status") == MISSING).height
        read = replied.filter(pl.col("choice").is_not_null())
        right = int(replied["right"].sum())
        rows.append({
            "kind": name, "asked": part.height, "missing": missing, "answered": replied.height,
            "readable": read.height, "right": right,
            "unreadable_wrong": _share(right, replied.height + missing),
            "unreadable_dropped": _share(right, read.height + missing),
        })  # fmt: skip
    return _frame(rows, ("kind",), ("asked", "missing", "answered", "readable", "right"))


def _share(right: int, counted: int) -> float | None:
    return right / counted if counted else None


def set_table(items: Sequence[IntentQuestion]) -> pl.DataFrame:
    """Figure 3 of the paper: items by scenario and skill, the traps of both kinds, and the twins."""
    roles = roles_of(items)
    columns = (*SKILLS, "perceptual", "cognitive", "twin", "untrapped")
    rows = []
    for scenario in sorted({item.scenario for item in items}):
        here = [item.skill if roles[item.id] == "competency" else roles[item.id] for item in items
                if item.scenario == scenario]  # fmt: skip
        videos = len({item.cluster for item in items if item.scenario == scenario})
        counts = {name: here.count(name) for name in columns}
        rows.append({"scenario": scenario, "videos": videos, "items": len(here), **counts})
    return _frame(rows, ("scenario",), ("videos", "items", *columns))
