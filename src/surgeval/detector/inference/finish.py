"""From stored blocks to what was asked for: tracks, counts by class, and the file itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from surgeval.arrays import Ints
from surgeval.datasets.predictions import Detections, write_detections
from surgeval.detector.classes import Classes
from surgeval.detector.inference.parts import Block, Parts
from surgeval.detector.inference.sources import Source
from surgeval.detector.inference.tables import table_schema
from surgeval.detector.inference.tracking import NO_TRACK, Tracker, Tracking
from surgeval.files import write_parquet_file

__all__ = ["SURE", "count_classes", "track_video", "write_rows"]

SURE = 0.25  # score from which a box counts as sure in the summary
_NAMES = ("video", "frame")
_TIE = 1e-6  # seconds by which a frame at the time of the one before is put later


def track_video(blocks: list[Block], settings: Tracking) -> int:
    """Give every box of a video its track; the number of tracks."""
    tracker, most, last = Tracker(settings), 0, -np.inf
    for block in blocks:
        table = block.scan().collect()
        numbers: Ints = np.full(len(table), NO_TRACK, dtype=np.int64)
        rows = table.select(*_NAMES, "seconds", "instrument", "score", "x", "y", "w", "h").with_row_index("row")
        detections = rows.filter(pl.col("score").is_not_null())
        for (seconds,), frame in detections.sort("seconds", maintain_order=True).group_by(
            "seconds", maintain_order=True
        ):
            x, y, w, h = (frame[name].to_numpy() for name in "xywh")
            now = max(float(seconds), last + _TIE)
            last = now
            tracks = tracker.step(now, np.stack([x, y, x + w, y + h], 1), frame["score"].to_numpy(),
                                 frame["instrument"].to_numpy().astype(np.int64))  # fmt: skip
            numbers[frame["row"].to_numpy()] = tracks
        most = max(most, int(numbers.max(initial=0)))
        track = pl.Series("track", numbers)
        block.write_tracks(table.with_columns(pl.when(track != NO_TRACK).then(track).alias("track")))
    return most


def _stored(parts: Parts) -> pl.LazyFrame:
    """All rows, read when they are needed. Blocks in which nothing could be read lack the lists of probabilities."""
    scans = [block.scan() for block in parts.blocks]
    if not scans:
        return pl.LazyFrame(schema=table_schema("ivt"))
    return pl.concat(scans, how="diagonal_relaxed").drop("seconds")


def count_classes(parts: Parts, classes: Classes) -> pl.DataFrame:
    """Boxes by main class, the most frequent sure ones first."""
    main = "triplet" if classes.task == "triplets" else "instrument"
    counted = (
        _stored(parts)
        .filter(pl.col("score").is_not_null())
        .group_by(main)
        .agg(
            pl.len().alias("boxes"),
            (pl.col("score") >= SURE).sum().alias("sure"),
            pl.struct(*_NAMES).n_unique().alias("frames"),
            pl.col("score").max().alias("best"),
        )
        .collect(engine="streaming")
        .sort("sure", "boxes", main, descending=[True, True, False])
    )
    names = classes.heads[classes.main]
    named = pl.Series("class", [names[number] for number in counted[main]], dtype=pl.String)
    return counted.drop(main).insert_column(0, named)


def write_rows(parts: Parts, target: Path, source: Source) -> tuple[str, ...]:
    """The file that was asked for; a table as Parquet goes there in pieces, whatever its size."""
    rows = _stored(parts)
    if target.suffix.lower() == ".parquet":
        write_parquet_file(rows, target)
        return ()
    table = rows.collect()
    boxes = table.filter(pl.col("score").is_not_null())
    empty = table.filter(pl.col("score").is_null()).select(_NAMES)
    videos = tuple(video.name for video in source.videos(lambda _text: None))
    detections = Detections(boxes, "table", videos, empty=empty)
    format = None if target.suffix else "yolo"
    return write_detections(detections, target, format, dataset=source.dataset).losses
