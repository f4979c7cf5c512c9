"""Films of what was found, made from the stored blocks: every frame that was looked at, one box per instrument."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import polars as pl

from surgeval.arrays import Bools, Floats, Image
from surgeval.datasets import read_image
from surgeval.detector.classes import Classes
from surgeval.detector.inference.film import DrawnBox, draw_boxes, write_film
from surgeval.detector.inference.parts import BLOCK, Block, Parts
from surgeval.detector.inference.sources import Source
from surgeval.detector.inference.tracking import one_each
from surgeval.errors import BadInput, DataError
from surgeval.files import DistinctNames
from surgeval.records import Frame, Video

__all__ = ["boxes_to_draw", "film_paths", "write_films"]

_COLUMNS = ("frame", "triplet", "instrument", "score", "x", "y", "w", "h", "track")
_SAME = 0.6  # overlap from which two boxes of one instrument are one for the eye


def film_paths(source: Source, film: Path) -> dict[str, Path]:
    """Where the film of each video goes; refused where that is the video itself, or one file for several videos."""
    videos = source.videos(lambda _text: None)
    if film.suffix and film.suffix.lower() != ".mp4":
        raise BadInput(f"{film}: found suffix {film.suffix!r}, expected .mp4 or a folder")
    if film.suffix and len(videos) > 1:
        raise BadInput(f"{film}: found {len(videos)} videos to film, expected a folder for them instead of one file")
    names = DistinctNames()
    paths = {video.name: film if film.suffix else film / names.claim(video.name, ".mp4") for video in videos}
    for name, path in paths.items():
        first = next(source.frames(name, lambda _text: None), None) if path.exists() else None
        if first is not None and first.image is not None and first.image.path.samefile(path):
            raise BadInput(f"{path}: found the video to look at, expected another place for the film")
    return paths


def write_films(
    parts: Parts, source: Source, classes: Classes, paths: Mapping[str, Path], show: float,
    advance: Callable[[int], None] = lambda _count: None,
) -> Iterator[Path]:  # fmt: skip
    """One film per video; boxes are drawn from the score `show` on."""
    for video, blocks in parts.by_video():
        shown = _counted(_pictures(source, video, blocks, classes, show), advance)
        if write_film(paths[video.name], shown):
            yield paths[video.name]


def _counted(pictures: Iterator[tuple[float, Image]], advance: Callable[[int], None]) -> Iterator[tuple[float, Image]]:
    for picture in pictures:
        yield picture
        advance(1)


def _pictures(
    source: Source, video: Video, blocks: list[Block], classes: Classes, show: float
) -> Iterator[tuple[float, Image]]:
    """The frames of a video with what was found on them."""
    by_frame: dict[str, pl.DataFrame] = {}
    stored = iter(blocks)
    for number, frame in enumerate(source.frames(video.name, lambda _text: None)):
        if number % BLOCK == 0:
            rows = next(stored).scan()
            columns = [name for name in _COLUMNS if name in rows.collect_schema().names()]
            sure = rows.select(columns).filter(pl.col("score") >= show).collect()
            by_frame = {str(name): group for (name,), group in sure.group_by("frame", maintain_order=True)}
        pixels = _pixels(frame)
        if pixels is not None:
            drawn = boxes_to_draw(by_frame[frame.name], classes) if frame.name in by_frame else []
            yield source.seconds(frame, number, video), draw_boxes(pixels, drawn)


def _pixels(frame: Frame) -> Image | None:
    """The picture; none where it cannot be read, which was told when it was to be looked at."""
    try:
        return read_image(frame.image) if frame.image is not None else None
    except DataError:
        return None


def boxes_to_draw(rows: pl.DataFrame, classes: Classes) -> list[DrawnBox]:
    """One box per instrument and place, the surest first, with its triplet and score.

    >>> from surgeval.vocab import load_labels
    >>> row = {"triplet": -1, "instrument": 3, "score": 0.876, "x": 1.0, "y": 2.0, "w": 30.0, "h": 40.0, "track": 2}
    >>> [drawn.text for drawn in boxes_to_draw(pl.DataFrame([row, row]), Classes.of(load_labels("cholec80")))]
    ['#2 Scissors 0.88']
    """
    rows = rows.sort("score", descending=True, maintain_order=True)
    x, y, w, h = (rows[name].to_numpy() for name in "xywh")
    boxes, scores, kinds = np.stack([x, y, x + w, y + h], 1), rows["score"].to_numpy(), rows["instrument"].to_numpy()
    space, drawn = classes.space, []
    best = {row for kind in np.unique(kinds).tolist() for row in _leaders(kinds == kind, boxes, scores)}
    for row in sorted(best):
        triplet, instrument = int(rows["triplet"][row]), int(kinds[row])
        words = space.triplet_name(triplet).replace(",", " ") if triplet >= 0 else space.instruments[instrument]
        track = rows["track"][row] if "track" in rows.columns else None
        number = f"#{track} " if track is not None else ""
        drawn.append(DrawnBox(boxes[row], f"{number}{words} {scores[row]:.2f}", instrument))
    return drawn


def _leaders(mine: Bools, boxes: Floats, scores: Floats) -> list[int]:
    rows = np.flatnonzero(mine)
    return [int(rows[k]) for k in np.unique(one_each(boxes[rows], scores[rows], _SAME))]
