"""What became of every labelled and every predicted object: the rows behind the evidence of a scored file.

Boxes are matched as convention coco does at IoU 0.5: class by class, the highest score first. What is left is matched
whatever its class (*confused*), then divided: a second box on a matched label is a *duplicate*, the right class that
overlaps its label by 0.1 to 0.5 stands in the *wrong place*, any other box is a *false positive*, and a label without
a match is *missed*. Recognition has no boxes: of as many classes as are labelled, those with the highest scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, TypeAlias

import numpy as np
import polars as pl
from pydantic import Field

from surgeval.arrays import AnyArray, Floats, Ints
from surgeval.files import StoredTable
from surgeval.metrics import Boxes, DetectionSet, match_boxes
from surgeval.protocols.triplets.scoring.recognition import FrameScores

__all__ = ["ERRORS", "ObjectRow", "box_objects", "label_objects"]

OBJECTS = "objects.parquet"
ERRORS = ("missed", "confused", "false positive", "wrong place", "duplicate")  # the worst first
_IOU, _NEAR = 0.5, 0.1
_Pixels: TypeAlias = Annotated[float, Field(gt=-1e9, lt=1e9)]
_Side: TypeAlias = Annotated[int, Field(ge=0, le=1 << 20)]


class ObjectRow(StoredTable, name="objects.parquet"):
    """A labelled or predicted object, or a frame without any; `partner` is the class that it was confused with."""

    video: str
    frame: str
    width: _Side
    height: _Side
    side: Literal["", "label", "said"]
    class_name: Annotated[str, Field(alias="class")]
    score: _Pixels
    x: _Pixels
    y: _Pixels
    w: _Pixels
    h: _Pixels
    outcome: Literal["", "matched", "missed", "confused", "false positive", "wrong place", "duplicate"]
    partner: str


def box_objects(
    frames: pl.DataFrame, data: DetectionSet, component: str, names: Sequence[str], thresholds: Floats
) -> pl.DataFrame:
    """A row per label and per prediction at or above its video's threshold; `frames` are the scored ones in order."""
    cut = np.where(np.isnan(thresholds), -np.inf, thresholds)[data.videos]
    predictions = data.predictions.take(data.predictions.score >= cut[data.predictions.frame])
    above = DetectionSet.of(predictions, data.targets, data.videos, n_videos=data.n_videos)
    truth, reported = above.targets, above.predictions
    hit = match_boxes(above, iou=_IOU, same_class=component)
    truth_partner, reported_partner = np.full(len(truth), -1), np.full(len(reported), -1)
    truth_outcome = np.full(len(truth), "missed", dtype=object)
    reported_outcome = np.full(len(reported), "false positive", dtype=object)
    reported_outcome[hit >= 0], truth_outcome[hit[hit >= 0]] = "matched", "matched"
    left, over = np.flatnonzero(truth_outcome == "missed"), np.flatnonzero(hit < 0)
    rest = DetectionSet.of(reported.take(over), truth.take(left), data.videos, n_videos=data.n_videos)
    crossed = match_boxes(rest, iou=_IOU)
    both = np.flatnonzero(crossed >= 0)
    crossing, other = over[both], left[crossed[both]]
    reported_outcome[crossing], truth_outcome[other] = "confused", "confused"
    reported_partner[crossing], truth_partner[other] = (
        truth.classes[component][other],
        reported.classes[component][crossing],
    )
    alone = np.flatnonzero(reported_outcome == "false positive")
    overlap = _best_overlap(reported.take(alone), truth, component)
    reported_outcome[alone[overlap >= _NEAR]] = "wrong place"
    reported_outcome[alone[overlap >= _IOU]] = "duplicate"
    sides = [
        _rows("label", truth, component, names, truth_outcome, truth_partner),
        _rows("said", reported, component, names, reported_outcome, reported_partner),
    ]
    return _table(frames, pl.concat(sides))


def label_objects(frames: pl.DataFrame, answers: FrameScores, component: str, names: Sequence[str]) -> pl.DataFrame:
    """The same without boxes, for recognition."""
    targets, scores = answers.of(component)
    many = targets.sum(axis=1)
    order = np.argsort(-scores, axis=1, kind="stable")[:, : int(many.max(initial=0))]
    top = (np.arange(order.shape[1])[None] < many[:, None]) & answers.answered[:, None]
    reported = np.zeros_like(targets)
    rows, columns = np.nonzero(top)
    reported[rows, order[rows, columns]] = True
    parts = []
    for side, cells, other, lost in (
        ("label", targets, reported, "missed"),
        ("said", reported, targets, "false positive"),
    ):
        frame, kind = np.nonzero(cells)
        outcome = np.where(other[frame, kind], "matched", lost).astype(object)
        boxes = Boxes.of(frame, {component: kind}, np.zeros((len(frame), 4)), scores[frame, kind].astype(np.float64))
        parts.append(_rows(side, boxes, component, names, outcome, np.full(len(frame), -1)))
    return _table(frames, pl.concat(parts))


def _best_overlap(reported: Boxes, truth: Boxes, component: str) -> Floats:
    """The largest IoU of each box with a label of its class in its frame."""
    columns = {"frame": pl.Int64, "class": pl.Int64, "x": pl.Float64, "y": pl.Float64, "w": pl.Float64, "h": pl.Float64}

    def table(boxes: Boxes) -> pl.DataFrame:
        values = [boxes.frame, boxes.classes[component], *boxes.xywh.T]
        return pl.DataFrame(dict(zip(columns, values, strict=True)), schema=columns)

    pairs = table(reported).with_row_index("row").join(table(truth), on=["frame", "class"], suffix="_2")
    wide = pl.min_horizontal(pl.col("x") + pl.col("w"), pl.col("x_2") + pl.col("w_2")) - pl.max_horizontal("x", "x_2")
    tall = pl.min_horizontal(pl.col("y") + pl.col("h"), pl.col("y_2") + pl.col("h_2")) - pl.max_horizontal("y", "y_2")
    shared = pl.max_horizontal(wide, 0.0) * pl.max_horizontal(tall, 0.0)
    iou = shared / (pl.col("w") * pl.col("h") + pl.col("w_2") * pl.col("h_2") - shared)
    best = pairs.select("row", iou.fill_nan(0.0).alias("iou")).group_by("row").agg(pl.col("iou").max())
    result = np.zeros(len(reported))
    result[best["row"].to_numpy()] = best["iou"].to_numpy()
    return result


def _rows(
    side: str, boxes: Boxes, component: str, names: Sequence[str], outcome: AnyArray, partner: Ints
) -> pl.DataFrame:  # fmt: skip
    known = np.array([*names, ""], dtype=object)
    return pl.DataFrame(
        {"number": boxes.frame, "side": [side] * len(boxes), "class": known[boxes.classes[component]],
         "score": boxes.score, **dict(zip("xywh", boxes.xywh.T, strict=True)), "outcome": outcome,
         "partner": known[partner]},
        schema={"number": pl.Int64, **{name: kind for name, kind in ObjectRow.dtypes().items()
                                       if name not in ("video", "frame", "width", "height")}},
    )  # fmt: skip


def _table(frames: pl.DataFrame, objects: pl.DataFrame) -> pl.DataFrame:
    """Every scored frame, also one without objects."""
    numbered = frames.select("video", "frame", "width", "height").with_columns(pl.int_range(pl.len()).alias("number"))
    rows = numbered.join(objects, on="number", how="left", maintain_order="left_right").drop("number")
    texts = pl.col("side", "class", "outcome", "partner").fill_null("")
    return rows.with_columns(texts, pl.col("score", "x", "y", "w", "h").fill_null(0.0)).select(*ObjectRow.dtypes())
