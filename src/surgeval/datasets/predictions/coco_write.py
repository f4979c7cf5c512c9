"""Detections as COCO: a results list with the ids of the dataset's own COCO file, or a file that names everything."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import polars as pl

from surgeval.datasets.predictions.coco import category_ids, image_ids
from surgeval.datasets.predictions.truth import GroundTruth
from surgeval.records import UNKNOWN

__all__ = ["write_coco"]

Key = tuple[str, str]
_NO_CLASS = "{n} boxes without a category were left out"
_PARTIAL = "verbs and targets of {n} boxes without a triplet are not kept"
_EMPTY = "{n} frames in which nothing was found are not kept"


def write_coco(
    table: pl.DataFrame, empty: pl.DataFrame | None, truth: GroundTruth, path: Path, losses: dict[str, int]
) -> int:
    """Write one record at a time; returns the number of boxes written."""
    ids = {frame: number for number, frame in image_ids(truth).items() if frame is not None}
    frames: list[Key] = list(table.select("video", "frame").unique(maintain_order=True).iter_rows())
    with path.open("w", encoding="utf-8") as stream:
        if ids and all(frame in ids for frame in frames):
            losses[_EMPTY] = 0 if empty is None else len(empty)
            return _list(stream, _results(table, ids, category_ids(truth), losses))
        frames += list(empty.iter_rows()) if empty is not None else []
        stream.write('{"categories": ')
        _list(stream, ({"id": k, "name": name} for k, name in enumerate(_names(truth), start=1)))
        stream.write(', "images": ')
        _list(stream, _images(frames, truth))
        stream.write(', "annotations": ')
        numbers = {frame: number for number, frame in enumerate(frames, start=1)}
        results = _results(table, numbers, _classes(truth), losses)
        rows = _list(stream, ({"id": k, **row} for k, row in enumerate(results, start=1)))
        stream.write("}\n")
    return rows


def _list(stream: IO[str], records: Iterable[Mapping[str, Any]]) -> int:
    count = 0
    stream.write("[")
    for count, record in enumerate(records, start=1):
        stream.write((",\n" if count > 1 else "\n") + json.dumps(record))
    stream.write("]")
    return count


def _names(truth: GroundTruth) -> list[str]:
    """Categories: every triplet, then every instrument for boxes that have no triplet."""
    return [name.replace(",", "_") for name in truth.space.triplet_names] + list(truth.space.instruments)


def _classes(truth: GroundTruth) -> dict[tuple[int, int], int]:
    space = truth.space
    triplets = {(k, row[0]): k + 1 for k, row in enumerate(space.triplets)}
    return triplets | {(UNKNOWN, i): len(space.triplets) + i + 1 for i in range(len(space.instruments))}


def _images(frames: list[Key], truth: GroundTruth) -> Iterator[dict[str, Any]]:
    columns = truth.frames.select("video", "frame", "width", "height").iter_rows()
    sizes = {(video, frame): (width, height) for video, frame, width, height in columns}
    for number, (video, frame) in enumerate(frames, start=1):
        width, height = sizes[video, frame]
        yield {"id": number, "file_name": f"{video}/{frame}.jpg", "width": width, "height": height}


def _results(
    table: pl.DataFrame, images: Mapping[Key, int | str], classes: Mapping[tuple[int, int], int], losses: dict[str, int]
) -> Iterator[dict[str, Any]]:
    for row in table.iter_rows(named=True):
        category = classes.get((row["triplet"], row["instrument"]))
        if category is None:
            losses[_NO_CLASS] = losses.get(_NO_CLASS, 0) + 1
            continue
        if row["triplet"] == UNKNOWN and max(row["verb"], row["target"]) > UNKNOWN:
            losses[_PARTIAL] = losses.get(_PARTIAL, 0) + 1
        result = {"image_id": images[row["video"], row["frame"]], "category_id": category,
                  "bbox": [row["x"], row["y"], row["w"], row["h"]], "score": row["score"]}  # fmt: skip
        if row.get("track") is not None:
            result["track_id"] = row["track"]
        yield result
