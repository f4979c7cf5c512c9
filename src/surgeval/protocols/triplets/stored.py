"""The files of a scored folder as plain values: written whole, and read as files of strangers.

`scores.json` holds settings, notes, thresholds and headline numbers; `details.json` the tables, curves and confusion
matrices behind the page; `replicates.parquet` what every number was without each video. Whatever a file lacks
or bends is a `DataError` that names it, so everything past these functions may rely on what they return.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from surgeval.errors import DataError
from surgeval.figures import Curve
from surgeval.files import read_json_object
from surgeval.metrics import Confusion

__all__ = ["MOST_CLASSES", "Confusions", "details_json", "expect", "is_number", "read_details"]

Confusions = Mapping[str, tuple[Confusion, tuple[str, ...]]]
MOST_CLASSES = 4096  # of a label space: a confusion matrix has their square
_KINDS: dict[str, type[pl.DataType]] = {
    "Boolean": pl.Boolean, "Float64": pl.Float64, "Int64": pl.Int64, "String": pl.String,
}  # fmt: skip


def expect(fits: bool, path: Path, where: str, found: object, expected: str) -> None:
    """Raise a DataError about a part of a file unless it fits."""
    if not fits:
        raise DataError(path, f"found {repr(found)[:80]}, expected {expected}", field=where[:120])


def is_number(value: object) -> bool:
    """Whether a JSON value is a finite number; `true` is none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


def details_json(
    sheets: Mapping[str, pl.DataFrame], curves: Mapping[str, Sequence[Curve]], confusions: Confusions
) -> dict[str, Any]:
    """What `read_details` reads back; of a confusion matrix, the cells that hold something."""
    return {
        "sheets": {
            name: {
                column.name: {"type": str(column.dtype), "values": column.to_list()} for column in sheet.get_columns()
            }
            for name, sheet in sheets.items()
        },
        "curves": {
            component: [{"name": c.name, "note": c.note, "heavy": c.heavy, "x": c.x, "y": c.y} for c in lines]
            for component, lines in curves.items()
        },
        "confusions": {
            component: {
                "names": names,
                "cells": [[*at, int(confusion.counts[*at])] for at in np.argwhere(confusion.counts).tolist()],
            }
            for component, (confusion, names) in confusions.items()
        },
    }


def read_details(path: Path) -> tuple[dict[str, pl.DataFrame], dict[str, tuple[Curve, ...]], Confusions]:
    """Tables, curves and confusion matrices by name."""
    data = read_json_object(path, finite=True)
    for part in ("sheets", "curves", "confusions"):
        expect(isinstance(data.get(part), dict), path, part, data.get(part), "an object")
    return (
        {name: _sheet(path, name, columns) for name, columns in data["sheets"].items()},
        {component: _curves(path, component, lines) for component, lines in data["curves"].items()},
        {component: _confusion(path, component, matrix) for component, matrix in data["confusions"].items()},
    )


def _sheet(path: Path, name: str, columns: Any) -> pl.DataFrame:
    expect(isinstance(columns, dict), path, f"sheets.{name}", columns, "an object of columns")
    series: list[pl.Series] = []
    for head, column in columns.items():
        where = f"sheets.{name}.{head}"
        expect(isinstance(column, dict) and isinstance(column.get("values"), list), path, where, column, "a column")
        kind, values = column.get("type"), column["values"]
        expect(isinstance(kind, str) and kind in _KINDS, path, where, kind, f"one of {', '.join(_KINDS)}")
        first = len(series[0]) if series else len(values)
        expect(len(values) == first, path, where, f"{len(values)} values", f"{first} as in the first column")
        try:
            series.append(pl.Series(head, values, dtype=_KINDS[kind], strict=True))
        except (pl.exceptions.PolarsError, TypeError, ValueError, OverflowError) as error:
            raise DataError(path, f"found {str(error)[:80]}, expected values of {kind}", field=where[:120]) from error
    return pl.DataFrame(series)


def _curves(path: Path, component: str, lines: Any) -> tuple[Curve, ...]:
    where = f"curves.{component}"
    expect(isinstance(lines, list), path, where, lines, "a list of curves")
    for line in lines:
        expect(isinstance(line, dict), path, where, line, "a curve")
        texts = [line.get(key) for key in ("name", "note")]
        expect(all(isinstance(text, str) for text in texts), path, where, texts, "a name and a note")
        expect(isinstance(line.get("heavy"), bool), path, where, line.get("heavy"), "true or false")
        for axis in ("x", "y"):
            values = line.get(axis)
            inside = isinstance(values, list) and all(is_number(v) and 0 <= v <= 1 for v in values)
            expect(inside, path, f"{where}.{axis}", values, "numbers from 0 to 1")
        sizes = [len(line[axis]) for axis in ("x", "y")]
        expect(sizes[0] == sizes[1], path, where, sizes, "as many x as y")
    return tuple(
        Curve(line["name"], tuple(line["x"]), tuple(line["y"]), line["note"], heavy=line["heavy"]) for line in lines
    )


def _confusion(path: Path, component: str, matrix: Any) -> tuple[Confusion, tuple[str, ...]]:
    where = f"confusions.{component}"
    expect(isinstance(matrix, dict), path, where, matrix, "an object")
    names, cells = matrix.get("names"), matrix.get("cells")
    named = isinstance(names, list) and len(names) <= MOST_CLASSES and all(isinstance(name, str) for name in names)
    expect(named, path, f"{where}.names", names, f"at most {MOST_CLASSES} class names")
    expect(isinstance(cells, list), path, f"{where}.cells", cells, "a list of cells")
    counts = np.zeros((len(names) + 1, len(names) + 1), np.int64)
    for cell in cells:
        whole = isinstance(cell, list) and len(cell) == 3 and all(type(value) is int for value in cell)
        inside = whole and max(cell[:2]) <= len(names) and min(cell) >= 0 and cell[2] < 2**53
        expect(inside, path, f"{where}.cells", cell, "predicted class, true class and count")
        counts[cell[0], cell[1]] = cell[2]
    return Confusion(component, counts), tuple(names)
