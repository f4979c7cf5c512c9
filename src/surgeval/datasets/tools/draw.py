"""Frames with their labels drawn on them: the quickest way to see that boxes sit where they should."""

from __future__ import annotations

import math

import cv2
import numpy as np

from surgeval.arrays import Image
from surgeval.datasets.base import Dataset
from surgeval.datasets.io.images import read_image
from surgeval.datasets.io.outline import parts_of
from surgeval.errors import DataError
from surgeval.files import Location, OnProblem, raise_errors
from surgeval.records import UNKNOWN, Frame, Instance
from surgeval.vocab import LabelSpace

__all__ = ["contact_sheet", "draw_frame"]

# One colour per instrument, bright against red tissue (RGB).
_COLOURS = ((0, 255, 255), (255, 255, 0), (0, 255, 80), (80, 160, 255), (255, 120, 255), (255, 255, 255),
            (255, 170, 0), (160, 255, 160), (190, 140, 255), (0, 200, 200))  # fmt: skip

_HELD = 24  # frames of a video among which those for the sheet are chosen


def draw_frame(image: Image, frame: Frame, space: LabelSpace) -> Image:
    """A copy of the image with the boxes, outlines and names of its instances.

    >>> from surgeval.records import Box, Triplet
    >>> from surgeval.vocab import load_labels
    >>> hook = Instance(Triplet(3), Box(20, 20, 60, 40))
    >>> black = np.zeros((120, 160, 3), np.uint8)
    >>> drawn = draw_frame(black, Frame("VID01", "000012", 12, None, None, 160, 120, (hook,)), load_labels("cholec80"))
    >>> bool(drawn[20, 50].any()), bool(drawn[40, 50].any()), bool(black.any())
    (True, False, False)
    """
    canvas = np.ascontiguousarray(image).copy()
    scale = max(canvas.shape[1] / 640, 0.5)
    for instance in frame.instances:
        colour = _COLOURS[instance.triplet.instrument % len(_COLOURS)]
        if instance.mask and (instance.mask.height, instance.mask.width) == canvas.shape[:2]:
            inside = instance.mask.to_array()
            canvas[inside] = (0.75 * canvas[inside] + 0.25 * np.asarray(colour)).astype(np.uint8)
        for part in parts_of(instance):
            cv2.polylines(canvas, [np.rint(np.asarray(part)).astype(np.int32)], True, colour, 1, cv2.LINE_AA)
        if instance.box:
            x1, y1, x2, y2 = (round(value) for value in instance.box.corners)
            cv2.rectangle(canvas, (x1, y1), (x2, y2), colour, max(1, round(1.5 * scale)))
            _text(canvas, _name(instance, space), (max(x1, 0) + 2, max(y1 - 4, 12)), 0.42 * scale, colour)
    return canvas


def _name(instance: Instance, space: LabelSpace) -> str:
    triplet = instance.triplet
    parts = [names[number] for names, number in ((space.instruments, triplet.instrument), (space.verbs, triplet.verb),
                                                 (space.targets, triplet.target)) if number != UNKNOWN]  # fmt: skip
    return " ".join(parts)


def _text(canvas: Image, text: str, at: tuple[int, int], size: float, colour: tuple[int, ...]) -> None:
    plain = text.encode("ascii", "replace").decode()
    for shade, width in (((0, 0, 0), 3), (colour, 1)):
        cv2.putText(canvas, plain, at, cv2.FONT_HERSHEY_SIMPLEX, size, shade, width, cv2.LINE_AA)


def contact_sheet(
    dataset: Dataset, n: int = 12, *, columns: int = 4, width: int = 400, on_problem: OnProblem = raise_errors
) -> Image:
    """Frames spread over the videos, labels drawn, in one picture. Frames with instances are preferred.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import PIL.Image
    >>> from surgeval.datasets import MemoryDataset
    >>> from surgeval.records import ImageRef
    >>> from surgeval.vocab import load_labels
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     PIL.Image.new("RGB", (160, 120), (90, 20, 20)).save(f"{folder}/12.png")
    ...     frame = Frame("VID01", "12", 12, None, ImageRef(Path(folder) / "12.png"), 160, 120)
    ...     contact_sheet(MemoryDataset(load_labels("cholec80"), [frame]), 1, columns=1, width=80).shape
    (60, 80, 3)
    """
    videos = [video.name for video in dataset.videos(on_problem)]
    tiles: list[Image] = []
    for number, video in enumerate(videos):
        share = n // len(videos) + (number < n % len(videos))
        # The golden ratio moves the moment from video to video: one frame each still shows every part of the operation.
        phase = (0.5 + 0.618034 * number) % 1
        frames = _spread(dataset, video, share, phase, on_problem) if share else []
        for frame in frames:
            try:
                tiles.append(_tile(frame, dataset.space, width))
            except DataError as error:  # a sheet with a gap is better than none
                place = Location(error.path, on_problem, f"{frame.video} frame {frame.name}")
                place.error("image-broken", error.sentence)
    if not tiles:
        return np.zeros((width, width, 3), dtype=np.uint8)
    height = max(tile.shape[0] for tile in tiles)
    columns = min(columns, len(tiles))
    sheet = np.zeros((math.ceil(len(tiles) / columns) * height, columns * width, 3), dtype=np.uint8)
    for number, tile in enumerate(tiles):
        row, column = divmod(number, columns)
        sheet[row * height : row * height + tile.shape[0], column * width : (column + 1) * width] = tile
    return sheet


def _spread(dataset: Dataset, video: str, count: int, phase: float, on_problem: OnProblem) -> list[Frame]:
    """`count` frames evenly over a video, the first at `phase` of its share; only a few more are in memory."""
    with_labels, others = _Evenly(count), _Evenly(count)
    for frame in dataset.frames(video, on_problem):
        if frame.image is not None:
            (with_labels if frame.instances else others).offer(frame)
    return with_labels.chosen(phase) or others.chosen(phase)


class _Evenly:
    """Keeps every k-th of a stream; k doubles whenever too many are held."""

    def __init__(self, count: int) -> None:
        self._count, self._step, self._met = count, 1, 0
        self._kept: list[Frame] = []

    def offer(self, frame: Frame) -> None:
        if self._met % self._step == 0:
            self._kept.append(frame)
            if len(self._kept) > 2 * max(self._count, _HELD):
                self._kept, self._step = self._kept[::2], self._step * 2
        self._met += 1

    def chosen(self, phase: float) -> list[Frame]:
        count = min(self._count, len(self._kept))
        return [self._kept[int((k + phase) * len(self._kept) / count)] for k in range(count)]


def _tile(frame: Frame, space: LabelSpace, width: int) -> Image:
    assert frame.image is not None  # noqa: S101 (the caller looked)
    drawn = draw_frame(read_image(frame.image), frame, space)
    height = max(1, round(drawn.shape[0] * width / drawn.shape[1]))
    tile: Image = cv2.resize(drawn, (width, height), interpolation=cv2.INTER_AREA)
    _text(tile, f"{frame.video} {frame.name}", (6, height - 8), 0.45, (255, 255, 255))
    return tile
