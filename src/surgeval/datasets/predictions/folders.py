"""Detections as folders of one file per frame (`yolo`) or per video (`cholect50`), boxes as fractions of the frame."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from surgeval.datasets.predictions.cholect50 import frame_name
from surgeval.datasets.predictions.names import FrameNames
from surgeval.datasets.predictions.truth import GroundTruth
from surgeval.datasets.predictions.yolo import yolo_lines
from surgeval.errors import BadInput
from surgeval.files import DistinctNames, Location

__all__ = ["write_cholect50", "write_yolo"]

_KEYS = ["video", "frame"]
_LONGEST = 240  # bytes of a file name without suffix
_NO_BOX = [-1.0, -1.0, -1.0, -1.0]


def write_yolo(
    table: pl.DataFrame, empty: pl.DataFrame | None, truth: GroundTruth, folder: Path, losses: dict[str, int]
) -> int:
    """`VIDEO_FRAME.txt` files of six fields, or of nine where a class is not a whole triplet; returns the boxes."""
    if not table["score"].is_between(0, 1).all():
        raise BadInput("yolo: found a score outside 0 to 1, expected scores that a YOLO line can hold")
    names = FrameNames(truth)
    sized = table.join(truth.frames, on=_KEYS, how="left", maintain_order="left")
    edges = {"x": "width", "y": "height"}
    spans = [(pl.col(a) / pl.col(size), (pl.col(a) + pl.col(side)) / pl.col(size))
             for (a, size), side in zip(edges.items(), ("w", "h"), strict=True)]  # fmt: skip
    fits = pl.all_horizontal(*(((low + high) / 2).is_between(0, 1) & (high - low).is_between(0, 1)
                               for low, high in spans))  # fmt: skip
    whole = sized.select(fits.alias("fits"))["fits"]
    losses["{n} boxes beyond the frame's edge were cut to the frame"] = int((~whole).sum())
    # Every box is written: one that the format cannot hold is cut, since leaving it out would flatter the detector.
    cut = [(low.clip(0, 1), pl.max_horizontal(low.clip(0, 1), high.clip(0, 1))) for low, high in spans]
    parts = [
        (pl.when(fits).then((low + high) / 2).otherwise((a + b) / 2), pl.when(fits).then(high - low).otherwise(b - a))
        for (low, high), (a, b) in zip(spans, cut, strict=True)
    ]
    sized = sized.with_columns(cx=parts[0][0], cy=parts[1][0], w=parts[0][1], h=parts[1][1])
    nine = bool(truth.space.triplets) and bool((table["triplet"] < 0).any())
    files: dict[tuple[str, str], list[str]] = {}
    for video, frame, line in yolo_lines(sized, nine, truth.class_kind):
        files.setdefault((video, frame), []).append(line)
    files |= {(video, frame): [] for video, frame in (empty.iter_rows() if empty is not None else ())}
    taken = DistinctNames(longest=_LONGEST)
    for (video, frame), lines in files.items():
        stem = taken.claim(f"{video}_{frame}")
        if stem != f"{video}_{frame}" or names.find(f"{stem}.txt", Location("", lambda _: None), "") != (video, frame):
            raise BadInput(f"yolo: found video {video!r} and frame {frame!r}, expected names that make one file name "
                           "for one frame")  # fmt: skip
        (folder / f"{stem}.txt").write_text("".join(lines), encoding="utf-8")
    return len(table)


def write_cholect50(table: pl.DataFrame, empty: pl.DataFrame | None, truth: GroundTruth, folder: Path) -> None:
    """`labels/VIDEO.json` with rows of 15 items; what a row has no value for is −1."""
    keys = _frame_keys(truth)
    videos: dict[str, dict[str, list[list[float]]]] = {}
    for video, frame, row in _cholect50_rows(table, truth):
        videos.setdefault(video, {}).setdefault(keys[video, frame], []).append(row)
    for video, frame in empty.iter_rows() if empty is not None else ():
        videos.setdefault(video, {}).setdefault(keys[video, frame], [])
    (folder / "labels").mkdir()
    files = DistinctNames(longest=_LONGEST)
    for video, frames in videos.items():
        if files.claim(video) != video:
            expected = "a name that a file can have and no other video's file has"
            raise BadInput(f"cholect50: found video {video!r}, expected {expected}")
        document = {"video": video, "num_frames": len(frames), "annotations": frames}
        (folder / "labels" / f"{video}.json").write_text(json.dumps(document), encoding="utf-8")


def _cholect50_rows(table: pl.DataFrame, truth: GroundTruth) -> Iterator[tuple[str, str, list[float]]]:
    sized = table.join(truth.frames, on=_KEYS, how="left", maintain_order="left").with_columns(
        pl.col("x") / pl.col("width"), pl.col("y") / pl.col("height"),
        pl.col("w") / pl.col("width"), pl.col("h") / pl.col("height"),
    )  # fmt: skip
    columns = ("triplet", "instrument", "score", "x", "y", "w", "h", "verb", "target")
    for video, frame, *row in sized.select(*_KEYS, *columns).iter_rows():
        yield video, frame, [*row, -1.0, *_NO_BOX, -1]


def _frame_keys(truth: GroundTruth) -> dict[tuple[str, str], str]:
    """By video and frame the frame's number where it leads back to this frame, else its name."""
    keys = {}
    for video, frame, index in truth.frames.select("video", "frame", "index").iter_rows():
        keys[video, frame] = str(index) if frame_name(truth, video, str(index)) == frame else frame
    return keys
