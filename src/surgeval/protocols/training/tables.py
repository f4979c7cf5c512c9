"""Our numbers in the layout of the paper's tables, with the published rows below them, marked as other data.

Values are per cent, as printed there; Table 14 holds F1 as fractions. Ours are means over folds with the standard
deviation (ddof = 1) beside them; intervals over videos stand in the tables of the scores.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from surgeval.protocols.training.published import (
    METRICS,
    SOURCE,
    PaperRow,
    PublishedTable,
    published,
    published_notes,
)

if TYPE_CHECKING:
    from surgeval.protocols.training.result import TrainingScores

__all__ = ["PaperTable", "convention_note", "convention_notes", "fold_table", "own_rows", "paper_tables"]

_COMPONENTS = ("i", "v", "t", "ivt")
_COSTS = ("bbox", "i", "v", "t", "ivt")
SAME_AS_PUBLISHED = ("ivtd", "ivtd-legacy")  # ivtdmetrics with its defects repaired, and with them


@dataclass(frozen=True, slots=True)
class PaperTable:
    """A table in the paper's layout; `ours` stand above the published rows."""

    paper: PublishedTable
    ours: tuple[PaperRow, ...]
    decimals: int = 1
    first: str = "method"

    @property
    def rows(self) -> tuple[PaperRow, ...]:
        """Ours first."""
        return (*self.ours, *self.paper.rows)

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know about the published rows; first, whether their convention is another than ours."""
        return (*self.other_conventions, *published_notes(self.paper.number))

    @property
    def other_conventions(self) -> tuple[str, ...]:
        """A sentence for each convention of ours that is not that of the published rows."""
        names = dict.fromkeys(row.convention for row in self.ours)
        return tuple(convention_note(name) for name in names if name not in SAME_AS_PUBLISHED)

    def frame(self) -> pl.DataFrame:
        """Numbers: a column per value, and one for its standard deviation where any row has it."""
        rows = []
        spread = [any(row.spreads[k] is not None for row in self.rows) for k, _ in enumerate(self.paper.columns)]
        for row in self.rows:
            cells: dict[str, Any] = {self.first: row.name, "data": row.data, "convention": row.convention}
            for k, column in enumerate(self.paper.columns):
                cells[column] = row.values[k]
                if spread[k]:
                    cells[f"{column} std"] = row.spreads[k]
            rows.append(cells)
        numbers = [name for name in (rows[0] if rows else {}) if name not in (self.first, "data", "convention")]
        return pl.DataFrame(rows, schema_overrides=dict.fromkeys(numbers, pl.Float64))

    def readable(self) -> pl.DataFrame:
        """Texts: `36.1 ± 3.4`."""
        rows = [
            {self.first: row.name, "data": row.data, "convention": row.convention}
            | {column: self._cell(row.values[k], row.spreads[k]) for k, column in enumerate(self.paper.columns)}
            for row in self.rows
        ]
        return pl.DataFrame(rows)

    def _cell(self, value: float | None, spread: float | None) -> str:
        if value is None:
            return "–"
        shown = f"{value:.{self.decimals}f}"
        return shown if spread is None else f"{shown} ± {spread:.{self.decimals}f}"


def convention_note(convention: str) -> str:
    """What to say where published rows stand beside numbers of another convention.

    >>> convention_note("coco")
    'Ours are computed under convention coco, published rows with ivtdmetrics: compare them under ivtd only.'
    """
    return (
        f"Ours are computed under convention {convention}, published rows with {METRICS}: compare them under ivtd only."
    )


def paper_tables(results: Sequence[TrainingScores]) -> tuple[PaperTable, ...]:
    """Tables 4, 5, 8, 12 and 14 of what was trained on folds, Table 15 of what was trained without one source."""
    folds = [result for result in results if result.scheme != "sources"]
    sources = [result for result in results if result.scheme == "sources"]
    tables = []
    if folds:
        maps = (_COMPONENTS, ("mAP50", "mAP50:95"))
        rare = ("rare, global", "rare, video (class-first)")
        tables += [
            _table(4, [_row(result, [*_fold_cells(result, "", *maps), _speed(result)]) for result in folds]),
            _table(5, [_row(result, _fold_cells(result, "", ("ivt",), ("P", "R", "F1"))) for result in folds]),
            _table(8, [_row(result, _fold_cells(result, "video-wise ", *maps)) for result in folds]),
            _table(
                12, [_row(result, [_number(result, scope, "ivt", "mAP50", 100) for scope in rare]) for result in folds]
            ),
            _table(
                14,
                [_row(result, [_number(result, "cost-aware", part, "F1", 1) for part in _COSTS]) for result in folds],
                4,
            ),
        ]
    if sources:
        tables.append(_left_out(sources))
    return tuple(table for table in tables if any(value is not None for row in table.ours for value in row.values))


def _table(number: int, ours: Iterable[PaperRow], decimals: int = 1) -> PaperTable:
    return PaperTable(published(number), tuple(ours), decimals)


def _row(result: TrainingScores, cells: Sequence[tuple[float | None, float | None]]) -> PaperRow:
    values, spreads = zip(*cells, strict=True)
    return PaperRow(result.name, _data(result), result.scores.settings["convention"], values, spreads)


def _data(result: TrainingScores) -> str:
    videos = len(result.scores.settings["videos"])
    return f"ours ({result.scores.settings['label_space']}, {videos} video{'' if videos == 1 else 's'})"


def _groups(result: TrainingScores) -> pl.DataFrame:
    return result.scores.sheets[result.scheme]


def _fold_cells(
    result: TrainingScores, prefix: str, components: Sequence[str], metrics: Sequence[str]
) -> list[tuple[float | None, float | None]]:
    """Mean and standard deviation over folds, in per cent."""
    rows = {(row["component"], row["group"]): row for row in _groups(result).iter_rows(named=True)}
    return [
        (_percent(rows.get((component, "mean"), {}), f"{prefix}{metric}"),
         _percent(rows.get((component, "std"), {}), f"{prefix}{metric}"))
        for component in components for metric in metrics
    ]  # fmt: skip


def _percent(row: Mapping[str, Any], column: str) -> float | None:
    value = row.get(column)
    return None if value is None else 100 * value


def _number(result: TrainingScores, scope: str, component: str, metric: str, scale: float) -> tuple[float | None, None]:
    estimate = next(
        (n.interval.estimate for n in result.scores.numbers if n.key == (scope, component, metric)), math.nan
    )
    return (None if math.isnan(estimate) else scale * estimate), None


def _speed(result: TrainingScores) -> tuple[float | None, float | None]:
    """Frames per second over folds, end to end: another measure than the paper's, which does not say what it timed."""
    known = [record.frames_per_second for record in result.records if not math.isnan(record.frames_per_second)]
    if not known:
        return None, None
    mean = sum(known) / len(known)
    spread = math.sqrt(sum((value - mean) ** 2 for value in known) / (len(known) - 1)) if len(known) > 1 else None
    return mean, spread


def _left_out(results: Sequence[TrainingScores]) -> PaperTable:
    """Table 15, a row per method and source instead of nine columns."""
    paper, metrics = published(15), ("mAP50", "mAP50:95", "F1")
    methods = tuple(dict.fromkeys(column.rpartition(" ")[0] for column in paper.columns))
    theirs = [
        PaperRow(f"{method}: without {row.name}" if row.name != "Average" else f"{method}: average", SOURCE, METRICS,
                 tuple(row.values[paper.columns.index(f"{method} {metric}")] for metric in metrics), (None,) * 3)
        for method in methods for row in paper.rows
    ]  # fmt: skip
    ours = []
    for result in results:
        rows = [row for row in _groups(result).iter_rows(named=True) if row["component"] == result.scores.main]
        for row in rows:
            if row["group"] == "std":
                continue
            title = "average" if row["group"] == "mean" and row["videos"] is None else f"without {row['group']}"
            cells = tuple(_percent(row, metric) for metric in metrics)
            convention = result.scores.settings["convention"]
            ours.append(PaperRow(f"{result.name}: {title}", _data(result), convention, cells, (None,) * 3))
    turned = replace(paper, columns=tuple(f"IVT {metric}" for metric in metrics), rows=tuple(theirs))
    return PaperTable(turned, tuple(ours))


def fold_table(result: TrainingScores) -> pl.DataFrame:
    """One row per fold: videos, main numbers, boxes and speed; then mean and std."""
    speeds = {record.fold: record for record in result.records}
    rows: list[dict[str, Any]] = []
    for row in _groups(result).iter_rows(named=True):
        if row["component"] != result.scores.main:
            continue
        record = speeds.get(row["group"]) if row["videos"] is not None else None
        mean, spread = _speed(result)
        overall = {"mean": mean, "std": spread}.get(row["group"]) if row["videos"] is None else None
        rows.append({
            "fold": row["group"], "test videos": row["videos"],
            **{metric: row[metric] for metric in ("mAP50", "mAP50:95", "P", "R", "F1")},
            "boxes": record.boxes if record else None, "frames": record.frames if record else None,
            "frames per second": record.frames_per_second if record else overall,
            "device": record.device if record else None,
        })  # fmt: skip
    frame = pl.DataFrame(rows, infer_schema_length=None)
    return frame.with_columns(pl.selectors.float().fill_nan(None))


def own_rows(tables: Iterable[PaperTable]) -> tuple[PaperTable, ...]:
    """The paper's tables with our rows only."""
    return tuple(replace(table, paper=replace(table.paper, rows=())) for table in tables)


def convention_notes(tables: Iterable[PaperTable]) -> tuple[str, ...]:
    """Where our rows were scored under another convention than the paper's."""
    return tuple(dict.fromkeys(note for table in tables for note in table.other_conventions))
