"""Finding the frame of the dataset that each row is about, by video and frame name and by nothing else.

A name that the dataset does not have is an error with the name that was probably meant: joining "12" to "000012" by
itself would also join it to a frame "0012" of another numbering.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from surgeval.arrays import Bools, Ints
from surgeval.datasets.predictions.hint import did_you_mean
from surgeval.datasets.predictions.raw import RawTable
from surgeval.datasets.predictions.truth import GroundTruth
from surgeval.files import Location, format_value

__all__ = ["ELSEWHERE", "locate", "rows_of"]

ELSEWHERE = -2  # in a video of the dataset that was not chosen
_UNKNOWN = -1
_KEYS = ["video", "frame"]


def rows_of(names: pl.DataFrame, truth: GroundTruth) -> Ints:
    """Row of `truth.frames` for each `video`, `frame`; −2 in a video that was not chosen, −1 where there is none."""
    frames = truth.frames.select(_KEYS).with_row_index("at")
    at = names.select(_KEYS).join(frames, on=_KEYS, how="left", maintain_order="left", nulls_equal=False)["at"]
    rows = at.cast(pl.Int64).fill_null(_UNKNOWN).to_numpy().astype(np.int64)
    if truth.others:
        rows[names["video"].is_in(list(truth.others)).to_numpy().astype(bool)] = ELSEWHERE
    return rows


def locate(raw: RawTable, names: pl.DataFrame, truth: GroundTruth) -> Ints:
    """`rows_of` for a table: unknown videos are told once each, unknown frames once each, and their rows are dead."""
    rows = rows_of(names, truth)
    lost = (rows == _UNKNOWN) & raw.alive
    if lost.any():
        _tell(raw, names, lost, truth)
        raw.alive &= ~lost
    return rows


def _tell(raw: RawTable, names: pl.DataFrame, lost: Bools, truth: GroundTruth) -> None:
    groups = (
        names.with_row_index("row").filter(lost).with_columns(known=pl.col("video").is_in(list(truth.videos)))
        # An unknown video is one problem, not one for each of its frames.
        .group_by("video", pl.when("known").then("frame").alias("which"), maintain_order=True)
        .agg(pl.col("row").first(), pl.len().alias("rows"))
    )  # fmt: skip
    for video, frame, row, count in groups.iter_rows():
        more = f" in {count} rows" if count > 1 else ""
        tell_unknown(raw.place(row), video, frame, more, truth)


def tell_unknown(place: Location, video: str, frame: str | None, more: str, truth: GroundTruth) -> None:
    """Tell of a video that the dataset does not have (`frame` None), or a frame that its video does not have."""
    if frame is None:
        expected = f"a video of {truth.dataset.root}{did_you_mean(video, truth.videos + truth.others)}"
        place.error("frame-unknown", f"found {format_value(video) + more}, expected {expected}", "video")
    else:
        expected = f"a frame of video {video[:60]}{did_you_mean(frame, truth.names[video])}"
        place.error("frame-unknown", f"found {format_value(frame) + more}, expected {expected}", "frame")
