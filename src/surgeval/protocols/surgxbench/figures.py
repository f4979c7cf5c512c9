"""The figures of the page on where models look, by file name: Figures 3, 4 and 7 of the paper, and the checks.

Numbers over several frames come from the tables with their intervals; boxes show the cases themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from surgeval.figures import Curve, Estimate, Figure, Series, box, estimates, stacked
from surgeval.figures import curves as draw_curves
from surgeval.metrics.grounding import MATCH_LEVELS
from surgeval.protocols.surgxbench.page_tables import layer
from surgeval.protocols.surgxbench.tables import FOUR
from surgeval.stats import with_ends

if TYPE_CHECKING:
    from surgeval.protocols.surgxbench.result import SurgXScores

__all__ = ["surgxbench_figures"]

_SAID = {"precision": "precision", "recall": "recall", "f1": "F1"}
_LOOKED = {  # column, whether the class is there
    "TP-AA": ("aa", True),
    "TP-AC": ("ac", True),
    "FP-AC": ("ac", False),
}
_MEANING = {
    "TP-AA": "right, on the named instrument",
    "TP-AC": "right, on any instrument",
    "FP-AC": "wrong, on any instrument",
}
_SHARE = "% of the attended region"
_WHOLE = (0.0, 100.0)
_PANEL = 300  # pixels, so that the two panels of an instrument are of one height
_LEVEL_NAMES = {"I": "I only"}


def surgxbench_figures(scores: Sequence[SurgXScores]) -> dict[str, Figure]:
    """All that the models have numbers for."""
    figures: dict[str, Figure] = {}
    with_classes = [run for run in scores if "classes" in run.detail_tables]
    if with_classes:
        classes = _met(with_classes)
        figures |= _recognition(with_classes, classes) | _instruments(with_classes, classes)
    figures |= _four_way([run for run in scores if "four_way" in run.detail_tables])
    for name, title in (("occlusion", "Right predictions lost by hiding …"),
                        ("occlusion_triplets", "Frames that lose their triplet match by hiding …")):  # fmt: skip
        figures |= _occlusion([run for run in scores if name in run.detail_tables], name, title)
    with_matches = [run for run in scores if "matches" in run.detail_tables]
    if with_matches:
        figures |= _triplets(with_matches)
    for number, run in enumerate(scores, start=1):
        mark, whose = (str(number), f": {run.name}") if len(scores) > 1 else ("", "")
        figures |= _curves(run, f"curves{mark}", whose) | _sanity(run, f"sanity{mark}", whose)
    return figures


def _met(scores: Sequence[SurgXScores]) -> tuple[str, ...]:
    """The instruments that some frame shows, or some model says."""
    met = {
        row["class"]
        for run in scores
        for row in run.detail_tables["classes"].iter_rows(named=True)
        if row["frames"] or row["predicted"]
    }
    return tuple(name for name in scores[0].classes if name in met)


def _recognition(scores: Sequence[SurgXScores], classes: tuple[str, ...]) -> dict[str, Figure]:
    """Figure 3: F1 (of one model also precision and recall), and boxes of TP-AA, TP-AC and FP-AC, by instrument."""
    rows = [_by(run.detail_tables["classes"], "class") for run in scores]
    if len(scores) == 1:
        groups = tuple(_group(title, rows[0], classes, column) for column, title in _SAID.items())
    else:
        groups = tuple(_group(run.name, row, classes, "f1") for run, row in zip(scores, rows, strict=True))
    title = "Precision, recall and F1" if len(scores) == 1 else "F1"
    figures: dict[str, Figure] = {"f1": estimates(title, classes, groups, "score", span=(0, 1))}
    for key in _LOOKED:
        boxes = tuple(_boxes(run, [(name, key) for name in classes]) for run in scores)
        if any(any(group.values) for group in boxes):
            file = f"grounding_{key.lower().replace('-', '_')}"
            figures[file] = _box_plot(f"{key}: {_MEANING[key]}", classes, boxes)
    return figures


def _instruments(scores: Sequence[SurgXScores], classes: tuple[str, ...]) -> dict[str, Figure]:
    """Figure 7: for each instrument, how well it is named beside where the model looks when it names it."""
    figures: dict[str, Figure] = {}
    for number, name in enumerate(classes, start=1):
        groups = []
        for run in scores:
            row = _by(run.detail_tables["classes"], "class").get(name, {})
            groups.append(Series(run.name, tuple(_estimate(row, column) for column in _SAID)))
        figures[f"instrument_{number}_named"] = estimates(
            f"{name}: how well it is named",
            tuple(_SAID.values()),
            tuple(groups),
            "score",
            horizontal=False,
            span=(0, 1),
            height=_PANEL,
        )
        boxes = tuple(_boxes(run, [(name, key) for key in _LOOKED]) for run in scores)
        figures[f"instrument_{number}_looked"] = _box_plot(f"{name}: where it looks", tuple(_LOOKED), boxes, _PANEL)
    return figures


class _Boxes(NamedTuple):
    """The values of each class of one model, with its mean chance there."""

    name: str
    values: tuple[tuple[float, ...], ...]
    chances: tuple[float | None, ...]


def _box_plot(title: str, labels: Sequence[str], boxes: Sequence[_Boxes], height: int = 300) -> Figure:
    groups, chances = [(model.name, model.values) for model in boxes], [model.chances for model in boxes]
    return box(title, labels, groups, _SHARE, marks=chances, span=_WHOLE, height=height)


def _boxes(run: SurgXScores, places: Iterable[tuple[str, str]]) -> _Boxes:
    """The cases behind (instrument, measure) pairs, each with its mean chance."""
    rows = run.cases.filter((pl.col("task") == "instruments") & pl.col("predicted") & (pl.col("excluded") == ""))
    values, marks = [], []
    for name, key in places:
        column, right = _LOOKED[key]
        part = rows.filter((pl.col("class") == name) & (pl.col("present") == right) & pl.col(column).is_not_null())
        values.append(tuple((100 * part[column]).to_list()))
        marks.append(_mean(100 * part["chance" if column == "ac" else "chance_class"]))
    return _Boxes(run.name, tuple(values), tuple(marks))


def _four_way(scores: Sequence[SurgXScores]) -> dict[str, Figure]:
    """Of one model a bar per instrument, of several one bar each."""
    rows = []
    for run in scores:
        table = run.detail_tables["four_way"].filter(pl.col("predictions") > 0)
        if len(scores) == 1:
            rows += [(row["class"], row) for row in table.iter_rows(named=True)]
        else:
            rows += [(run.name, row) for row in table.tail(1).iter_rows(named=True)]  # over all instruments
    if not rows:
        return {}
    parts = tuple(
        Series(title, tuple(float(round(row["predictions"] * (row[kind] or 0.0))) for _, row in rows))
        for kind, title in FOUR.items()
    )
    ends = tuple(tuple(_percent(row, kind) for _, row in rows) for kind in FOUR)
    labels = tuple(label for label, _ in rows)
    return {"four_way": stacked("Right or wrong, grounded or not", labels, parts, "predictions", ends)}


def _occlusion(scores: Sequence[SurgXScores], name: str, title: str) -> dict[str, Figure]:
    if not scores:
        return {}
    hidden = tuple(scores[0].detail_tables[name]["hidden"].to_list())
    groups = tuple(_group(run.name, _by(run.detail_tables[name], "hidden"), hidden, "lost", 100) for run in scores)
    return {name: estimates(title, hidden, groups, "% lost", span=(0, 100))}


def _triplets(scores: Sequence[SurgXScores]) -> dict[str, Figure]:
    """Figure 4: match breakdown, and RAS by match."""
    tables = [_by(run.detail_tables["matches"], "match") for run in scores]
    parts = tuple(
        Series(_LEVEL_NAMES.get(level, level), tuple(float(table[level]["triplets"]) for table in tables))
        for level in MATCH_LEVELS
    )
    ends = tuple(tuple(_percent(table[level], "share") for table in tables) for level in MATCH_LEVELS)
    names = tuple(run.name for run in scores)
    figures: dict[str, Figure] = {
        "matches": stacked("Labelled triplets among the top prompts", names, parts, "labelled triplets", ends)
    }
    groups = []
    for run in scores:
        rows = run.cases.filter(
            (pl.col("task") == "triplets") & (pl.col("excluded") == "") & pl.col("ras").is_not_null()
        )
        split = [rows.filter(pl.col("level") == level) for level in MATCH_LEVELS]
        groups.append(_Boxes(run.name, tuple(tuple((100 * part["ras"]).to_list()) for part in split),
                               tuple(_mean(100 * part["chance"]) for part in split)))  # fmt: skip
    if any(any(group.values) for group in groups):
        labels = tuple(
            f"{_LEVEL_NAMES.get(level, level)} ({'global' if level == 'missed' else 'local'})" for level in MATCH_LEVELS
        )
        figures["ras"] = _box_plot("RAS by match", labels, groups)
    return figures


def _curves(run: SurgXScores, name: str, whose: str) -> dict[str, Figure]:
    """Mean curves, scaled together; the areas in the legend are those of the table, before scaling."""
    rows = run.cases.filter(pl.col("task") == "curves")
    if rows.is_empty():
        return {}
    areas = run.detail_tables["curves"].row(0, named=True) if "curves" in run.detail_tables else {}
    lines = {}
    for kind in ("deletion", "deletion_random", "insertion", "insertion_random"):
        table = pl.DataFrame(rows[kind].to_list(), orient="row", infer_schema_length=None)
        lines[kind] = table.mean().row(0)
    low, high = min(map(min, lines.values())), max(map(max, lines.values()))
    span = (high - low) or 1.0
    steps = len(lines["deletion"]) - 1
    curves = tuple(
        Curve(
            kind.replace("_random", ", random order"), tuple(k / steps for k in range(steps + 1)),
            tuple((value - low) / span for value in mean), _area(areas, kind),
            heavy="random" not in kind,
        )
        for kind, mean in lines.items()
    )  # fmt: skip
    return {name: draw_curves(f"Deletion and insertion{whose}", "share of pixels", "score, scaled", curves)}


def _area(areas: dict[str, Any], kind: str) -> str:
    area = _estimate(areas, kind)
    return f"(area {with_ends(area.value, area.low, area.high)})" if area.value is not None else ""


def _sanity(run: SurgXScores, name: str, whose: str) -> dict[str, Figure]:
    if "sanity" not in run.detail_tables:
        return {}
    table = run.detail_tables["sanity"]
    group = Series("correlation", tuple(_estimate(row, "correlation") for row in table.iter_rows(named=True)))
    labels = tuple(layer(step) for step in table["step"].to_list())
    return {name: estimates(f"Rank correlation after randomising{whose}", labels, (group,), "correlation")}


def _group(name: str, rows: dict[str, dict[str, Any]], labels: Sequence[str], column: str, scale: float = 1) -> Series:
    return Series(name, tuple(_estimate(rows.get(label, {}), column, scale) for label in labels))


def _by(table: pl.DataFrame, column: str) -> dict[str, dict[str, Any]]:
    return {row[column]: row for row in table.iter_rows(named=True)}


def _estimate(row: dict[str, Any], column: str, scale: float = 1) -> Estimate:
    """A number of a table with its interval; without both ends there is none."""
    value, low, high = (row.get(f"{column}{end}") for end in ("", "_low", "_high"))
    if not isinstance(value, (int, float)):
        return Estimate(None)
    if not isinstance(low, (int, float)) or not isinstance(high, (int, float)):
        return Estimate(scale * value)
    return Estimate(scale * value, scale * low, scale * high)


def _percent(row: dict[str, Any], column: str) -> tuple[float, float] | None:
    estimate = _estimate(row, column, 100)
    return None if estimate.low is None or estimate.high is None else (estimate.low, estimate.high)


def _mean(column: pl.Series) -> float | None:
    value = column.mean()
    return float(value) if isinstance(value, float) else None
