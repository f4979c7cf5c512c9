"""The tables as people read them: ours with intervals, and in the layout of the paper's Tables 3 to 7.

The paper's own rows are of other models on other items. They stand in tables of their own, closed until one opens them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal

import polars as pl

from surgeval.pages import Table
from surgeval.protocols.intent.published import (
    half_up,
    published,
    published_gaze,
    published_removal,
    published_text_only,
)
from surgeval.protocols.intent.result import IntentScores
from surgeval.protocols.intent.scoring.numbers import LABELS, number_unit
from surgeval.protocols.intent.scoring.weights import DIMENSIONS, SKILLS
from surgeval.protocols.intent.tables import reference_rows
from surgeval.stats import NOTHING, Interval, NumberUnit, number_text, with_ends

__all__ = ["competency_tables", "gaze_tables", "order_tables", "reading_tables", "reliability_tables", "removal_tables",
           "scenario_tables", "text_only_tables"]  # fmt: skip

_PUBLISHED = "Other models on other items, as the paper prints them: for layout and size, no comparison with this run."
_EXPECTED = {
    "always-reject": "expected if always rejecting",
    "always-accept": "expected if always accepting",
    "guessing": "expected if guessing",
}
_EXPECTATION = (
    "Expected: the mean over all ways in which such an answerer could answer these items; no model was asked. Where no "
    "option rejects, as in perceptual traps, it guesses, so that a run of it lies by luck above or below."
)
_STRICT = "A model that answers in sentences has 0 % by the strict reading; that is no fault of its answers."
_ONE_SIDED = (
    "One-sided: one end of the interval is the bound of the number (0 or 100 %, or ±100 points) or the number itself, "
    "so only the other end is estimated."
)
_LEVEL_1 = (*SKILLS, *DIMENSIONS, "overall")
_LEVEL_2 = ("perceptual", "cognitive", "reliability", "twin", "paired", "over_rejection")


def _table(title: str, heads: Sequence[str], rows: Iterable[Sequence[Any]], note: str = "", **more: Any) -> Table:
    frame = pl.DataFrame([[str(cell) for cell in row] for row in rows], schema=dict.fromkeys(heads, pl.String),
                         orient="row")  # fmt: skip
    return Table(title, frame, note, **more)


def _layouts(
    number: int, heads: Sequence[str], own: Iterable[Sequence[Any]], printed: Iterable[Sequence[Any]], note: str = "",
    *, folded: bool = True,
) -> tuple[Table, Table]:  # fmt: skip
    """Our rows in the layout of a table of the paper, and the paper's rows in a table of their own."""
    columns = ("model", *heads)
    return (
        _table(f"In the layout of the paper's Table {number}, per cent", columns, own, note, folded=folded),
        _table(f"Published in the paper's Table {number}, per cent", columns, printed, _PUBLISHED, folded=True),
    )


def _cell(interval: Interval | None, unit: NumberUnit = "share") -> str:
    return NOTHING if interval is None else interval.cell(unit)


def _gap(interval: Interval) -> str:
    return interval.cell("points")


def _format_bounded(interval: Interval | None, unit: Literal["share", "points"] = "share") -> str:
    """Format an interval as a cell; mark it if one end is the bound of the number or the estimate."""
    if interval is None:
        return NOTHING
    bounds = (0.0, 1.0) if unit == "share" else (-1.0, 1.0)
    at_bound = (interval.low <= bounds[0]) != (interval.high >= bounds[1])
    at_estimate = (interval.low == interval.estimate) != (interval.high == interval.estimate)
    return f"{interval.cell(unit)}{', one-sided' if at_bound or at_estimate else ''}"


def _bare(value: float | None) -> str:
    """Per cent without the sign, as the paper's tables have it."""
    return NOTHING if value is None else f"{100 * value:.2f}"


def _printed(value: Fraction | None) -> str:
    return NOTHING if value is None else half_up(value)


def _named(results: Sequence[IntentScores], result: IntentScores, title: str) -> str:
    return f"{title}: {result.name}" if len(results) > 1 else title


def _with_intervals(results: Sequence[IntentScores], numbers: Sequence[str], title: str) -> tuple[Table, ...]:
    """Numbers with their intervals: of one model with guessing and videos beside, of several a column each."""
    known = [number for number in numbers if any(number in result.numbers for result in results)]
    rows: list[tuple[Any, ...]]
    if len(results) == 1:
        (result,) = results
        heads: tuple[str, ...] = ("number", "accuracy", "guessing", "videos")
        rows = [
            (LABELS[number], result.numbers[number].cell(number_unit(number)),
             number_text(result.chances.get(number), number_unit(number)),
             result.numbers[number].clusters) for number in known
        ]  # fmt: skip
    else:
        heads = ("number", *(result.name for result in results), "guessing")
        rows = [
            (LABELS[number], *(_cell(result.numbers.get(number), number_unit(number)) for result in results),
             number_text(next((result.chances[number] for result in results if number in result.chances), None),
                         number_unit(number)))
            for number in known
        ]  # fmt: skip
    return (_table(title, heads, rows, file="tables/numbers.csv", explained=True),) if rows else ()


def competency_tables(results: Sequence[IntentScores]) -> tuple[Table, ...]:
    """Every number with its interval, and Table 3."""
    own = _with_intervals(results, ("overall", *DIMENSIONS, *SKILLS, "asymmetry"), "Competency")
    rows = [(result.name, *(_bare(_value(result, number)) for number in _LEVEL_1)) for result in results]
    printed = [(model.name, *(_printed(model.numbers[number]) for number in _LEVEL_1)) for model in published()]
    return (*own, *_layouts(3, _LEVEL_1, rows, printed))


def _value(result: IntentScores, number: str) -> float | None:
    return result.numbers[number].estimate if number in result.numbers else None


def reliability_tables(results: Sequence[IntentScores]) -> tuple[Table, ...]:
    """Traps and twins with intervals, and Table 4 with the reference rows."""
    own = _with_intervals(results, _LEVEL_2, "Reliability")
    rows: list[tuple[str, ...]] = [
        (result.name, *(_bare(_value(result, number)) for number in _LEVEL_2)) for result in results
    ]
    expected = [
        (_EXPECTED[row["answerer"]], *(_bare(row.get(number)) for number in _LEVEL_2))
        for row in reference_rows(results[0].items).iter_rows(named=True)
    ]
    printed = [(model.name, *(_printed(model.numbers.get(number)) for number in _LEVEL_2)) for model in published()]
    heads = ("perceptual", "cognitive", "average", "twins", "paired", "over-rejection")
    note = _EXPECTATION if expected else ""
    return (*own, *_layouts(4, heads, [*rows, *expected], printed, note, folded=False))


def gaze_tables(results: Sequence[IntentScores]) -> tuple[Table, ...]:
    """Gains with intervals, and Table 5."""
    asked = [result for result in results if result.gains]
    own = [
        _table(_named(results, result, "Without and with gaze"), ("number", "without", "with", "gain", "p"),
               [(LABELS[number], number_text(gain.b, "share"), number_text(gain.a, "share"), _gap(gain.interval),
                 f"{gain.p:.4f}" if gain.testable else NOTHING) for number, gain in result.gains.items()],
               file="tables/gaze.csv", explained=True)
        for result in asked
    ]  # fmt: skip
    numbers = (*DIMENSIONS, "overall")
    rows = [(result.name, *(cell for number in numbers for cell in _pair(result, number))) for result in asked]
    printed = []
    for name, row in published_gaze().items():
        triples = [row[number] for number in numbers]
        cells = [(_printed(without), f"{_printed(with_gaze)} ({_plus(gain)})") for without, with_gaze, gain in triples]
        printed.append((name, *(text for pair in cells for text in pair)))
    heads = [f"{number}, {how}" for number in numbers for how in ("w/o gaze", "w/ gaze")]
    return (*own, *_layouts(5, heads, rows, printed)) if own else ()


def _pair(result: IntentScores, number: str) -> tuple[str, str]:
    if number not in result.gains:
        return NOTHING, NOTHING
    gain = result.gains[number]
    return _bare(gain.b), f"{_bare(gain.a)} ({100 * gain.estimate:+.2f})"


def _plus(value: Fraction) -> str:
    return f"{'+' if value >= 0 else ''}{half_up(value)}"


def text_only_tables(results: Sequence[IntentScores]) -> tuple[Table, ...]:
    """Chance, text only and full side by side, and Table 6."""
    asked = [result for result in results if result.text_only]
    own = [
        _table(_named(results, result, "Chance, text only, full"),
               ("number", "guessing", "text only", "with the pictures", "the pictures add", "p"),
               [(LABELS[number], number_text(row.chance, "share"), _cell(row.text), _cell(row.full),
                 _gap(row.gain.interval), f"{row.gain.p:.4f}" if row.gain.testable else NOTHING)
                for number, row in result.text_only.items()],
               file="tables/text_only.csv", explained=True)
        for result in asked
    ]  # fmt: skip
    numbers = ("perceptual", "cognitive", "reliability")
    rows = []
    for result in asked:
        known = [result.text_only.get(number) for number in numbers]
        for setting in ("text", "full"):
            values = (None if row is None else getattr(row, setting).estimate for row in known)
            rows.append((result.name, _SETTINGS[setting], *map(_bare, values)))
    printed = [
        (name, _SETTINGS[setting], *(_printed(row[number][column]) for number in numbers))
        for name, row in published_text_only().items() for column, setting in enumerate(("text", "full"))
    ]  # fmt: skip
    heads = ("setting", "perceptual", "cognitive", "average")
    return (*own, *_layouts(6, heads, rows, printed)) if own else ()


_SETTINGS = {"text": "text only", "full": "pictures and text"}


def removal_tables(results: Sequence[IntentScores]) -> tuple[Table, ...]:
    """Failed traps without the trap, with both controls, and Table 7."""
    asked = [result for result in results if result.removal]
    columns = ("traps", "failed", "twin of the failed", "failed, asked again", "trap taken away adds", "passed",
               "twin of the passed", "failed − passed")  # fmt: skip
    own = [
        _table(_named(results, result, "The trap taken away"), columns,
               [(kind, row.failed, _format_bounded(row.after_failed), _format_bounded(row.again),
                 _format_bounded(row.over_again.interval if row.over_again else None, "points"), row.passed,
                 _format_bounded(row.after_passed), _format_bounded(row.less_than_passed, "points"))
                for kind, row in result.removal.items()],
               _ONE_SIDED, file="tables/trap_removal.csv")
        for result in asked
    ]  # fmt: skip
    kinds = ("perceptual", "cognitive")
    rows = [
        (
            result.name,
            *(_bare(interval.estimate if (interval := _after(result, kind)) else None) for kind in kinds),
        )
        for result in asked
    ]
    printed = [(name, *(_printed(row[kind]) for kind in kinds)) for name, row in published_removal().items()]
    heads = ("perceptual w/o trap", "cognitive w/o trap")
    return (*own, *_layouts(7, heads, rows, printed)) if own else ()


def _after(result: IntentScores, kind: str) -> Interval | None:
    return result.removal[kind].after_failed if kind in result.removal else None


def order_tables(results: Sequence[IntentScores]) -> tuple[Table, ...]:
    """Other orders of the options, and gaze moved elsewhere: a row per model."""
    orders = [
        (result.name, result.order.items, _cell(result.order.consistent), _cell(result.order.first_order),
         _cell(result.order.always_right), _places(result.order.by_position)) for result in results if result.order
    ]  # fmt: skip
    moved = [(result.name, result.moved.items, result.moved.against, _cell(result.moved.changed), result.moved.known,
              _cell(result.moved.to_distractor)) for result in results if result.moved]  # fmt: skip
    tables = []
    if orders:
        heads = ("model", "items", "same answer in every order", "right in their own order", "right in every order",
                 "chosen by place")  # fmt: skip
        tables.append(_table("Options in another order", heads, orders, file="tables/option_order.csv"))
    if moved:
        heads = ("model", "items", "compared with", "answer changed", "distractor known", "changed to the distractor's")
        note = "The distractor's answer is what the moved gaze points at, where the scene tells."
        tables.append(_table("Gaze moved elsewhere", heads, moved, note, file="tables/wrong_gaze.csv"))
    return tuple(tables)


def _places(counts: Mapping[int, int]) -> str:
    """How often each place of the list was chosen: a model that likes a letter shows here."""
    total = sum(counts.values())
    return ", ".join(
        f"{'ABCDEFGH'[position]} {number_text(count / total, 'share')}" for position, count in counts.items()
    )


def scenario_tables(results: Sequence[IntentScores]) -> tuple[Table, ...]:
    """Competency, reliability and pairs by scenario."""
    rows = []
    for result in results:
        for row in result.tables["scenarios"].iter_rows(named=True) if "scenarios" in result.tables else ():
            estimate = with_ends(row["estimate"], row["estimate_low"], row["estimate_high"], "share")
            rows.append(
                (result.name, row["scenario"].replace("_", " "), LABELS[row["number"]], estimate, row["videos"])
            )
    heads = ("model", "scenario", "number", "accuracy", "videos")
    return (_table("By scenario", heads, rows, file="tables/scenarios.csv"),) if rows else ()


def reading_tables(results: Sequence[IntentScores]) -> tuple[Table, ...]:
    """Usual and strict reading by condition and by number, and both denominators by kind of item."""
    both = [
        (result.name, LABELS[number], *(number_text(reading.estimate, number_unit(number))
                                        for reading in (interval, result.strict[number])))
        for result in results for number, interval in result.numbers.items() if number in result.strict
    ]  # fmt: skip
    reads = [
        (result.name, row["condition"], row["asked"], row["missing"], row["failed"], row["unreadable"],
         *(number_text(row[key], "share") for key in ("right", "right_strict", "differs")))
        for result in results for row in result.tables["readings"].iter_rows(named=True)
    ]  # fmt: skip
    counts = [
        (result.name, row["kind"], row["asked"], row["missing"], row["answered"], row["readable"], row["right"],
         *(number_text(row[key], "share") for key in ("unreadable_wrong", "unreadable_dropped")))
        for result in results for row in result.tables["denominators"].iter_rows(named=True)
    ]  # fmt: skip
    heads = ("model", "asked", "replies wanted", "missing", "failed", "unreadable", "right", "right, strict reading",
             "differ")  # fmt: skip
    kinds = ("model", "items", "asked", "missing", "answered", "readable", "right", "unreadable counts wrong",
             "unreadable left out")  # fmt: skip
    numbers = ("model", "number", "as read", "strict reading")
    by_number = _table("Each number by both readings", numbers, both, _STRICT, file="tables/numbers.csv", folded=True)
    return (
        _table("How replies were read", heads, reads, _STRICT, file="tables/readings.csv"),
        *([by_number] if both else []),
        _table("Both denominators, items as asked first", kinds, counts, file="tables/denominators.csv", folded=True),
    )
