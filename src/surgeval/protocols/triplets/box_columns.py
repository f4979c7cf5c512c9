"""Boxes that come as columns from Python: checked, their frames numbered, their classes given to every component.

Columns are arrays, lists or the series of a polars frame; what does not fit is refused with table, row and column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import polars as pl

from surgeval.arrays import Floats, Ints
from surgeval.errors import BadInput, bounded
from surgeval.metrics import Boxes
from surgeval.protocols.triplets.stored import MOST_CLASSES
from surgeval.vocab import LabelSpace, load_labels

__all__ = [
    "BoxColumns",
    "BoxFormat",
    "Columns",
    "class_counts",
    "known_space",
    "number_frames",
    "plain_values",
    "read_boxes",
    "require_same_unit",
    "scored_components",
]

Columns: TypeAlias = Mapping[str, Any] | pl.DataFrame
BoxFormat: TypeAlias = Literal["xywh", "xyxy", "cxcywh"]
_PARTS = ("i", "v", "t", "ivt")
_FRACTION, _PIXELS = 1.5, 16  # boxes that end below the first are fractions of a frame, beyond the second pixels


@dataclass(frozen=True)
class BoxColumns:
    """One table: `rows` has `video` and `frame`; the classes are those of the column `class`."""

    name: str
    rows: pl.DataFrame
    classes: Ints
    boxes: Boxes  # without frame numbers

    def to_boxes(self, frame: Ints, space: LabelSpace | None, components: Sequence[str]) -> Boxes:
        """The same with frame numbers and a class in each component."""
        if space is None or not space.triplets:
            classes = dict.fromkeys(components, self.classes)
        else:
            classes = {component: space.component_ids(component)[self.classes] for component in components}
        return Boxes(frame, classes, self.boxes.score, self.boxes.xywh)


def read_boxes(table: Columns, name: str, box_format: str) -> BoxColumns:
    """Check the columns of one table; only predictions have scores."""
    if box_format not in get_args(BoxFormat):
        raise BadInput(f"box_format {box_format!r}: expected one of {', '.join(get_args(BoxFormat))}")
    if not isinstance(table, Mapping | pl.DataFrame):
        raise BadInput(f"{name}: found {type(table).__name__}, expected columns by name: a mapping or a polars frame")
    known = list(table.columns if isinstance(table, pl.DataFrame) else table)
    wanted = ["video", "frame", "class", *(["box"] if "box" in known else ["x", "y", "w", "h"])]
    wanted += ["score"] if name == "predictions" else []
    for column in wanted:
        if column not in known:
            raise BadInput(f"{name}: found {', '.join(known) or 'no column'}, expected a column {column!r}")
    columns = {column: plain_values(table[column]) for column in wanted}
    for column, values in columns.items():
        if not hasattr(values, "__len__") or getattr(values, "shape", None) == ():
            raise BadInput(f"{name}: {column}: found {type(values).__name__}, expected a column")
    count = len(columns["video"])
    for column, values in columns.items():
        if len(values) != count:
            raise BadInput(f"{name}: {column}: found {len(values)} rows, expected {count} as in video")
    raw = columns["box"] if "box" in columns else [list(row) for row in zip(*(columns[c] for c in "xywh"), strict=True)]
    boxes = Boxes.of(np.zeros(count, np.int64), {"class": columns["class"]}, raw, columns.get("score"), name=name)
    xywh = _to_xywh(boxes.xywh, box_format if "box" in columns else "xywh")
    odd = np.flatnonzero((xywh[:, 2:] < 0).any(axis=1))
    if len(odd):
        row = int(odd[0])
        raise BadInput(f"{name}: row {row}: box: found {boxes.xywh[row].tolist()}, expected no negative size")
    rows = pl.DataFrame([_ids(columns["video"], name, "video").cast(pl.String), _ids(columns["frame"], name, "frame")])
    return BoxColumns(name, rows, boxes.classes["class"], Boxes(boxes.frame, {}, boxes.score, xywh))


def plain_values(column: Any) -> Any:
    """Lists of a series, and tensors without the record of their gradients."""
    if isinstance(column, pl.Series):
        return column.to_list()
    return column.detach().cpu() if hasattr(column, "detach") else column


def _ids(values: Any, name: str, column: str) -> pl.Series:
    """Names or whole numbers; an empty column fits both."""
    plain = isinstance(values, np.ndarray) and values.dtype != object
    if not plain and any(hasattr(value, "__len__") and not isinstance(value, str) for value in values):
        raise BadInput(f"{name}: {column}: found lists or the like, expected whole numbers or text")  # polars panics
    try:
        series = pl.Series(column, values)
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError) as error:
        raise BadInput(f"{name}: {column}: found mixed values, expected whole numbers or text") from error
    if not len(series):
        return series.cast(pl.String)
    if series.null_count() or not (series.dtype == pl.String or series.dtype.is_integer()):
        found = "an empty value" if series.null_count() else str(series.dtype)
        raise BadInput(f"{name}: {column}: found {found}, expected whole numbers or text")
    return series if series.dtype == pl.String else series.cast(pl.Int64)


def _to_xywh(boxes: Floats, box_format: str) -> Floats:
    first, second = boxes[:, :2], boxes[:, 2:]
    if box_format == "xyxy":
        second = second - first
    elif box_format == "cxcywh":
        first = first - second / 2
    return np.concatenate([first, second], axis=1)


def require_same_unit(truth: BoxColumns, predictions: BoxColumns) -> None:
    """Refuse fractions of a frame beside pixels: no box would overlap another."""
    both = [(float(np.abs(table.boxes.xywh).max()), table.name) for table in (truth, predictions) if len(table.boxes)]
    if len(both) == 2 and min(both)[0] <= _FRACTION and max(both)[0] > _PIXELS:
        raise BadInput(f"{min(both)[1]}: box: found fractions of a frame, expected the unit of the other table")


def number_frames(
    truth: BoxColumns, predictions: BoxColumns, videos: Sequence[str] | None
) -> tuple[tuple[str, ...], Ints, tuple[Ints, Ints]]:
    """The videos by name, the video of each frame, and the frame of each row of both tables.

    Frames of a video stand in the order of their ids, which is the order in which tied scores are ranked.
    """
    kinds = {table.rows.schema["frame"] for table in (truth, predictions) if len(table.rows)}
    if len(kinds) > 1:
        raise BadInput("frame: found whole numbers in one table and text in the other, expected the same ids in both")
    kind = kinds.pop() if kinds else pl.String()
    rows = [table.rows.with_columns(pl.col("frame").cast(kind)) for table in (truth, predictions)]
    together = pl.concat(rows)
    seen = together["video"].unique(maintain_order=True).to_list()
    names = tuple(map(str, videos)) if videos is not None else tuple(seen)
    missing = [video for video in seen if video not in names]
    if missing or len(set(names)) != len(names) or not names:
        found = f"no video {missing[0]!r}" if missing else "a video twice" if names else "no video"
        raise BadInput(f"videos: found {found}, expected each video of the tables once")
    order = pl.DataFrame({"video": names, "at": range(len(names))}, schema={"video": pl.String, "at": pl.Int64})
    frames = together.unique().join(order, on="video").sort("at", "frame").with_row_index("number")
    numbers = [
        table.join(frames, on=["video", "frame"], how="left", maintain_order="left")["number"].cast(pl.Int64).to_numpy()
        for table in rows
    ]
    return names, frames["at"].to_numpy(), (numbers[0], numbers[1])


def class_counts(
    tables: Sequence[BoxColumns], space: LabelSpace | None, components: Sequence[str] | None
) -> dict[str, int]:
    """The number of classes of each scored component, after a look at every class id."""
    main = "ivt" if space is None or space.triplets else "i"
    highest = max((int(table.classes.max(initial=-1)) for table in tables), default=-1)
    count = space.num_classes(main) if space else highest + 1
    for table in tables:
        wrong = np.flatnonzero((table.classes < 0) | (table.classes >= min(count, MOST_CLASSES)))
        if wrong.size:
            row, most = int(wrong[0]), min(count, MOST_CLASSES) - 1
            expected = f"an id from 0 to {most}" if most >= 0 else "an id from 0"
            raise BadInput(f"{table.name}: row {row}: class: found {table.classes[row]}, expected {expected}")
    known = {main: count}
    if space is not None and space.triplets:
        known = {component: space.num_classes(component) for component in (*_PARTS, "iv", "it", "vt")}
    usual = tuple(component for component in _PARTS if component in known)
    return {component: known[component] for component in scored_components(components, tuple(known), usual)}


def scored_components(
    components: Sequence[str] | None, known: tuple[str, ...], usual: tuple[str, ...]
) -> tuple[str, ...]:
    """The components that are asked for, each one of those known; the usual ones where none is."""
    if components is None:
        return usual
    if isinstance(components, str) or not isinstance(components, Sequence):
        raise BadInput(f"components: found {bounded(repr(components))}, expected a list of {', '.join(known)}")
    for component in components:
        if component not in known:
            raise BadInput(f"component {component!r}: expected one of {', '.join(known)}")
    return tuple(components) or usual


def known_space(space: LabelSpace | str | None) -> LabelSpace | None:
    """The label space, or the one of this name."""
    if space is not None and not isinstance(space, LabelSpace | str):
        raise BadInput(f"space: found {type(space).__name__}, expected a label space or the name of one")
    return load_labels(space) if isinstance(space, str) else space
