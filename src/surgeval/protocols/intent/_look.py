"""What a model is shown of an item: its pictures, small enough to send, with the gaze drawn where it is to be seen.

The circle is drawn on the frame as it is, then the frame is made smaller. Every picture is recorded by its frame, size
and the hash of its bytes, so that two runs can be proven to have shown the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import cv2
import numpy as np

from surgeval.arrays import Image
from surgeval.asking import ShownFrame
from surgeval.datasets import Dataset, media_paths, read_image, video_index
from surgeval.datasets.io import SUFFIXES
from surgeval.errors import BadInput, DataError
from surgeval.protocols.intent._cases import split_id
from surgeval.protocols.intent._gaze import GAZE_MODES, GazeMode, GazeStyle, Spot, draw_circle, draw_path, spot_at
from surgeval.protocols.intent._scene import Moved, Scene, moved_gaze
from surgeval.records import ImageRef, IntentQuestion

__all__ = ["Eyes", "Picture", "Seeing", "shown_record"]

_MOST = 100  # pictures of one item


@dataclass(frozen=True, slots=True)
class Seeing:
    """How pictures are shown; all of it is recorded with a run.

    >>> Seeing(quality=0)
    Traceback (most recent call last):
    surgeval.errors.BadInput: JPEG quality: found 0, expected 1 to 100
    """

    frames: int = 8  # of a clip at most, evenly spaced; a list of pictures is shown whole
    longest_edge: int = 1024
    quality: int = 90
    gaze: GazeMode = "mark"
    style: GazeStyle = field(default_factory=GazeStyle)

    def __post_init__(self) -> None:
        ranges = (("frames", self.frames, 1, _MOST), ("longest edge", self.longest_edge, 32, 8192),
                  ("JPEG quality", self.quality, 1, 100))  # fmt: skip
        for name, value, low, high in ranges:
            if not low <= value <= high:
                raise BadInput(f"{name}: found {value}, expected {low} to {high}")
        if self.gaze not in GAZE_MODES:
            raise BadInput(f"gaze: found {self.gaze!r}, expected one of {', '.join(GAZE_MODES)}")


@dataclass(frozen=True, slots=True)
class Picture(ShownFrame):
    """A picture as it was sent: which frame it is, its size, and where the gaze in it is said to be."""

    frame: int
    timed: bool
    width: int
    height: int
    spot: Spot | None = None


def shown_record(pictures: Sequence[Picture]) -> str:
    """What was shown, as the text that a case keeps.

    >>> shown_record([Picture(2.0, b"JPEG", 50, True, 448, 256)])[:62]
    '[{"frame": 50, "time": 2.0, "width": 448, "height": 256, "sha2'
    """
    rows = [
        {
            "frame": picture.frame, "time": picture.time if picture.timed else None, "width": picture.width,
            "height": picture.height, "sha256": hashlib.sha256(picture.jpeg).hexdigest(),
            **({"gaze": [round(picture.spot.x, 4), round(picture.spot.y, 4)]} if picture.spot else {}),
        }
        for picture in pictures
    ]  # fmt: skip
    return json.dumps(rows)


@dataclass(frozen=True, slots=True)
class _Moment:
    """A picture of an item before it is read: the file, its number, and when it was taken."""

    ref: ImageRef
    number: int
    time: float | None


class Eyes:
    """The pictures of posed items: their condition, part of the id, says what is shown."""

    def __init__(self, dataset: Dataset, seeing: Seeing) -> None:
        self.dataset, self.seeing = dataset, seeing
        self._scene = Scene(dataset)
        self._image = lru_cache(maxsize=32)(read_image)  # an item is asked several times in a row

    def __call__(self, question: IntentQuestion) -> tuple[Picture, ...]:
        """The pictures of a posed item, in order; a picture that cannot be read is a `DataError`."""
        if split_id(question.id)[1] == "text-only":
            return ()
        moments = self._moments(question)
        images = [self._image(moment.ref) for moment in moments]
        spots = [None if moved is None else moved.spot for moved in self.gaze(question)]
        return tuple(
            self._shown(question, moment, image, spot)
            for moment, image, spot in zip(moments, images, spots, strict=True)
        )

    def gaze(self, question: IntentQuestion) -> list[Moved | None]:
        """Where the gaze is said to be in each picture of a posed item: nowhere, there, or in a wrong place."""
        moments, condition = self._moments(question), split_id(question.id)[1]
        if condition not in ("gaze", "wrong-gaze"):
            return [None] * len(moments)
        spots = [spot_at(question.gaze, moment.time) for moment in moments]
        if condition == "gaze":
            return [None if spot is None else Moved(spot) for spot in spots]
        tips = [self._scene.tips(question.cluster, moment.ref.path) for moment in moments]
        sizes = [self._image(moment.ref).shape[1::-1] for moment in moments]
        return moved_gaze(spots, tips, [(width, height) for width, height in sizes])

    def _moments(self, question: IntentQuestion) -> list[_Moment]:
        paths = media_paths(self.dataset, question)
        films = [path for path in paths if path.suffix.lower() in SUFFIXES]
        if films and len(paths) > 1:
            found = f"a video among {len(paths)} files"
            raise DataError(films[0], record=f"item {question.id}", field="media", found=found,
                            expected="pictures, or one video")  # fmt: skip
        if len(paths) > _MOST:
            raise DataError(paths[0], record=f"item {question.id}", field="media", found=f"{len(paths)} pictures",
                            expected=f"at most {_MOST}")  # fmt: skip
        if films:
            return _of_clip(films[0], question, self.seeing.frames)
        return [
            _Moment(ImageRef(path), number, time)
            for number, (path, time) in enumerate(zip(paths, _times(question, len(paths)), strict=True))
        ]

    def _shown(self, question: IntentQuestion, moment: _Moment, image: Image, spot: Spot | None) -> Picture:
        if spot is not None and self.seeing.gaze in ("mark", "both"):
            image = draw_circle(image, spot, self.seeing.style)
        elif spot is not None and self.seeing.gaze == "trail":
            image = draw_path(image, [*self._path(question, moment), spot], self.seeing.style)
        small = _fitted(image, self.seeing.longest_edge)
        height, width = small.shape[:2]
        options = [cv2.IMWRITE_JPEG_QUALITY, self.seeing.quality]
        jpeg = bytes(cv2.imencode(".jpg", small[..., ::-1], options)[1].tobytes())
        time = moment.time
        return Picture(0.0 if time is None else time, jpeg, moment.number, time is not None, width, height, spot)

    def _path(self, question: IntentQuestion, moment: _Moment) -> list[Spot]:
        """The fixations before the one that is circled; of a wrong gaze there is no path."""
        if split_id(question.id)[1] == "wrong-gaze":
            return []
        ordered = sorted(question.gaze, key=lambda fixation: fixation.t)
        return [Spot(fix.x, fix.y) for fix in ordered if moment.time is None or fix.t <= moment.time]


def _times(question: IntentQuestion, count: int) -> list[float | None]:
    """When the pictures of a list were taken: evenly from start to end; a single one in the middle."""
    start, end = question.start, question.end if question.end is not None else question.start
    if start is None or end is None:
        return [None] * count
    if count == 1:
        return [(start + end) / 2]
    return [float(time) for time in np.linspace(start, end, count)]


def _of_clip(path: Path, question: IntentQuestion, most: int) -> list[_Moment]:
    times = video_index(path).times
    start = question.start if question.start is not None else 0.0
    end = question.end if question.end is not None else float(times[-1])
    if start > times[-1] + 1.0:
        found = f"{float(times[-1]):.2f} s of video"
        raise DataError(path, record=f"item {question.id}", found=found, expected=f"it to reach {start:g} s")
    inside = np.flatnonzero((times >= start - 1e-6) & (times <= end + 1e-6))
    if not inside.size:  # between two frames: the one on screen
        inside = np.array([max(int(np.searchsorted(times, start)) - 1, 0)])
    numbers = inside[np.unique(np.linspace(0, len(inside) - 1, min(most, len(inside))).round().astype(int))]
    return [_Moment(ImageRef(path, int(number)), int(number), float(times[number])) for number in numbers]


def _fitted(image: Image, longest: int) -> Image:
    height, width = image.shape[:2]
    scale = longest / max(width, height)
    if scale >= 1:
        return image
    size = max(1, round(width * scale)), max(1, round(height * scale))
    return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.uint8)
