"""The JSON files of a scored folder, and the table of what every number is without each video.

`scores.json` holds settings, notes, thresholds and headline numbers; `details.json` the tables, curves and confusion
matrices behind the page. What these declarations let pass is used as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeAlias

import numpy as np
import polars as pl
from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from surgeval.errors import DataError
from surgeval.figures import Curve
from surgeval.files import NullableFloat, StoredFile, StoredPart, StoredTable
from surgeval.metrics import CONVENTIONS, Confusion, Convention, Ties
from surgeval.protocols.triplets.metrics import Key, check_metric, detection_metrics
from surgeval.protocols.triplets.scoring.inputs import Task
from surgeval.protocols.triplets.scoring.numbers import ScoreNumber, StoredReplicates
from surgeval.stats import Interval

__all__ = ["MOST_CLASSES", "Component", "Confusions", "DetailsFile", "ReplicateRow", "TripletsFile", "check_sheets"]

Confusions: TypeAlias = Mapping[str, tuple[Confusion, tuple[str, ...]]]
Component: TypeAlias = Literal["i", "v", "t", "iv", "it", "vt", "ivt"]
Columns: TypeAlias = dict[str, type[pl.DataType]]
MOST_CLASSES = 4096  # of a label space: a confusion matrix has their square
_TYPES: dict[str, type[pl.DataType]] = {
    "Boolean": pl.Boolean, "Float64": pl.Float64, "Int64": pl.Int64, "String": pl.String,
}  # fmt: skip


def _check_distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(names)) != len(names):
        raise ValueError("has a name twice")
    return names


Count = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
Names = Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(_check_distinct)]
Word = Annotated[str, Field(pattern=r"^[^|]*$")]  # a part of a key


class StoredNumber(StoredPart):
    """A headline number with its interval."""

    scope: Word
    component: Component | Literal["bbox"]
    metric: Annotated[str, AfterValidator(check_metric)]
    estimate: NullableFloat
    low: NullableFloat
    high: NullableFloat
    clusters: Count
    few_clusters: bool
    method: Literal["t", "bound", "none"]
    note: str

    def to_number(self) -> ScoreNumber:
        """The number that was stored."""
        key = Key(self.scope, self.component, self.metric)
        interval = Interval(
            estimate=self.estimate, low=self.low, high=self.high, method=self.method, point="statistic",
            n=self.clusters, clusters=self.clusters, name=key.text, note=self.note,
        )  # fmt: skip
        return ScoreNumber(key, interval)


class StoredScheme(StoredPart):
    """Which videos are scored together."""

    kind: Literal["all", "folds", "sources"]
    groups: dict[str, Names] = Field(min_length=1)


class StoredSettings(StoredPart):
    """The settings that numbers depend on and that code reads."""

    model_config = ConfigDict(extra="allow")

    task: Task
    data: str
    label_space: str
    videos: Names
    sizes: tuple[Annotated[int, Field(ge=0)], ...]
    scheme: StoredScheme
    components: Annotated[tuple[Component, ...], Field(min_length=1), AfterValidator(_check_distinct)]
    rare: Count
    rare_from: str
    frames: Count
    convention: Convention | None = None
    ties: Ties | None = None

    @model_serializer(mode="wrap")
    def _leave_out_defaults(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in dump(self).items() if name in self.model_fields_set}

    @model_validator(mode="after")
    def _check_videos(self) -> Self:
        if len(self.sizes) != len(self.videos) or not any(self.sizes):
            raise ValueError("sizes: expected a number for each video, some above 0")
        if not set(chain.from_iterable(self.scheme.groups.values())) <= set(self.videos):
            raise ValueError("scheme.groups: expected only videos of the settings")
        if self.task == "detection" and None in (self.convention, self.ties):
            raise ValueError("convention, ties: are missing")
        return self


class TripletsFile(StoredFile, name="scores.json", format=1, compact=True):
    """The content of scores.json; `surgeval` and `verdict` are for other programs."""

    surgeval: str
    name: str
    task: Task
    verdict: dict[str, Any] | None
    settings: StoredSettings
    notes: tuple[str, ...]
    thresholds: dict[str, float]
    numbers: tuple[StoredNumber, ...]

    def to_settings(self) -> dict[str, Any]:
        """The settings as they were stored."""
        return self.settings.model_dump(mode="json")


class _BooleanColumn(StoredPart):
    type: Literal["Boolean"]
    values: tuple[bool | None, ...]


class _FloatColumn(StoredPart):
    type: Literal["Float64"]
    values: tuple[float | None, ...]


class _IntColumn(StoredPart):
    type: Literal["Int64"]
    values: tuple[int | None, ...]


class _TextColumn(StoredPart):
    type: Literal["String"]
    values: tuple[str | None, ...]


Column = Annotated[_BooleanColumn | _FloatColumn | _IntColumn | _TextColumn, Field(discriminator="type")]


def _check_lengths(columns: dict[str, Column]) -> dict[str, Column]:
    if len({len(column.values) for column in columns.values()}) > 1:
        raise ValueError("has columns of different lengths")
    return columns


Sheet = Annotated[dict[str, Column], AfterValidator(_check_lengths)]


class StoredCurve(StoredPart):
    """Precision over recall."""

    name: str
    note: str
    heavy: bool
    x: tuple[Share, ...]
    y: tuple[Share, ...]

    @model_validator(mode="after")
    def _check_points(self) -> Self:
        if len(self.x) != len(self.y):
            raise ValueError(f"has {len(self.x)} x and {len(self.y)} y")
        return self


class StoredConfusion(StoredPart):
    """The cells of a confusion matrix that hold something: predicted class, true class and count."""

    names: Annotated[tuple[str, ...], Field(max_length=MOST_CLASSES)]
    cells: tuple[tuple[Count, Count, Count], ...]

    @model_validator(mode="after")
    def _check_cells(self) -> Self:
        if any(max(cell[:2]) > len(self.names) for cell in self.cells):
            raise ValueError("cells: has a class beyond the names")
        return self

    def to_confusion(self, component: str) -> tuple[Confusion, tuple[str, ...]]:
        """The matrix and the names of its classes."""
        counts = np.zeros((len(self.names) + 1, len(self.names) + 1), np.int64)
        for predicted, true, count in self.cells:
            counts[predicted, true] = count
        return Confusion(component, counts), self.names


class DetailsFile(StoredFile, name="details.json", format=1, limit=1 << 26, compact=True):
    """The content of details.json."""

    sheets: dict[str, Sheet]
    curves: dict[Component, tuple[StoredCurve, ...]]
    confusions: dict[Component, StoredConfusion]

    @classmethod
    def of(
        cls, sheets: Mapping[str, pl.DataFrame], curves: Mapping[str, Sequence[Curve]], confusions: Confusions
    ) -> DetailsFile:
        """What is stored of tables, curves and confusion matrices."""
        return cls.model_validate(
            {
                "sheets": {
                    name: {
                        column.name: {"type": str(column.dtype), "values": tuple(column.to_list())}
                        for column in sheet.get_columns()
                    }
                    for name, sheet in sheets.items()
                },
                "curves": {
                    component: tuple(
                        {"name": line.name, "note": line.note, "heavy": line.heavy, "x": line.x, "y": line.y}
                        for line in lines
                    )
                    for component, lines in curves.items()
                },
                "confusions": {
                    component: {
                        "names": names,
                        "cells": tuple(
                            (*at, int(confusion.counts[tuple(at)])) for at in np.argwhere(confusion.counts).tolist()
                        ),
                    }
                    for component, (confusion, names) in confusions.items()
                },
            }
        )

    def to_sheets(self) -> dict[str, pl.DataFrame]:
        """The tables by name."""
        return {
            name: pl.DataFrame([pl.Series(head, c.values, dtype=_TYPES[c.type]) for head, c in columns.items()])
            for name, columns in self.sheets.items()
        }

    def to_curves(self) -> dict[str, tuple[Curve, ...]]:
        """The curves by component."""
        return {
            component: tuple(Curve(line.name, line.x, line.y, line.note, heavy=line.heavy) for line in lines)
            for component, lines in self.curves.items()
        }

    def to_confusions(self) -> Confusions:
        """The confusion matrices by component."""
        return {component: matrix.to_confusion(component) for component, matrix in self.confusions.items()}


class ReplicateRow(StoredTable, name="replicates.parquet"):
    """What every number of scores.json, in its order, is if each video counts as often as `draw` says."""

    draw: list[Count]
    values: list[float | None]

    @classmethod
    def of(cls, replicates: StoredReplicates) -> pl.DataFrame:
        """The table of these replicates; NaN as null."""
        values = [[None if value != value else value for value in row.tolist()] for row in replicates.values.values()]
        return pl.DataFrame({"draw": [list(draw) for draw in replicates.values], "values": values}, cls.dtypes())

    @classmethod
    def to_replicates(cls, table: pl.DataFrame, keys: Sequence[Key], path: Path) -> StoredReplicates:
        """The replicates of the numbers with these keys."""
        if not (table["values"].list.len() == len(keys)).all():
            sentence = f"expected the {len(keys)} numbers of scores.json in each row; score the predictions again"
            raise DataError(path, sentence, field="values", code="wrong-shape")
        cells = np.array(table["values"].to_list(), dtype=np.float64).reshape(table.height, len(keys))
        draws = [tuple(draw) for draw in table["draw"].to_list()]
        return StoredReplicates(tuple(keys), dict(zip(draws, cells, strict=True)))


def check_sheets(
    path: Path, settings: Mapping[str, Any], sheets: Mapping[str, pl.DataFrame], numbers: Sequence[ScoreNumber]
) -> None:
    """Refuse tables without the columns that the page reads, and numbers without those that it leads with."""
    detection, components = settings["task"] == "detection", settings["components"]
    main = "ivt" if "ivt" in components else components[0]
    for name, columns in _wanted_columns(settings, sheets, main).items():
        if name not in sheets:
            raise DataError(path, f"no table {name}", field="sheets", code="key-missing")
        for column, kind in columns.items():
            values = sheets[name][column] if column in sheets[name].columns else pl.Series(dtype=pl.Null)
            if values.dtype != kind:
                sentence = f"expected a column of {kind.__name__}, got {values.dtype}"
                raise DataError(path, sentence, field=f"sheets.{name}.{column}", code="wrong-shape")
            if kind != pl.Float64 and column != "videos" and values.null_count():
                raise DataError(path, "has an empty cell", field=f"sheets.{name}.{column}", code="key-missing")
    keys = {number.key for number in numbers}
    leading = [metric.key for metric in detection_metrics(main) if metric.lead != "none"] if detection else ["mAP"]
    for metric in leading:
        if (key := Key("global", main, metric)) not in keys:
            raise DataError(path.with_name("scores.json"), f"no {key.label}", field="numbers", code="key-missing")


def _wanted_columns(settings: Mapping[str, Any], sheets: Mapping[str, pl.DataFrame], main: str) -> dict[str, Columns]:
    """The columns by table: those that every run has, and those of the tables that are there."""
    detection, kind = settings["task"] == "detection", settings["scheme"]["kind"]
    metric = "AP50" if detection else "AP"
    counts: Columns = {"name": pl.String, "class": pl.Int64, "instances": pl.Int64, metric: pl.Float64}
    wanted: dict[str, Columns] = {"components": {"component": pl.String}}
    wanted |= {f"classes_{component}": dict(counts) for component in settings["components"]}
    if kind != "all":
        wanted[kind] = {"component": pl.String, "group": pl.String, "videos": pl.Int64}
    if detection:
        names = dict.fromkeys((*CONVENTIONS, "difference"), pl.Float64)
        wanted["conventions"] = {"component": pl.String, "metric": pl.String, **names}
    else:
        wanted["components"]["constant mAP"] = pl.Float64
    if "rare" in sheets:
        wanted[f"classes_{main}"]["rare"] = pl.Boolean
    for name, column in (("components", "constant mAP50"), (f"classes_{main}", f"constant {metric}")):
        if name in sheets and column in sheets[name].columns:
            wanted[name][column] = pl.Float64
    extra: dict[str, Columns] = {
        "videos": {"video": pl.String, "alone": pl.Float64, "without": pl.Float64},
        "ties": {"component": pl.String, "class": pl.String, "metric": pl.String,
                 **dict.fromkeys(("reference", "order-free", "difference"), pl.Float64)},
        "association": {"outcome": pl.String, "meaning": pl.String, "count": pl.Int64,
                        **dict.fromkeys(("share", "share_low", "share_high"), pl.Float64)},
    }  # fmt: skip
    return wanted | {name: columns for name, columns in extra.items() if name in sheets}
