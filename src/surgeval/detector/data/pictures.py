"""The frames' pixels, scaled to the detector's input: kept in memory as far as a budget of bytes goes, else read again.

Every image is decoded once when the training set is made. That finds the broken ones before training starts, and fills
the memory: decoding and scaling a frame costs several times what augmenting it does, and a fast accelerator would wait.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from surgeval.arrays import Image
from surgeval.detector.data.threads import one_thread_each
from surgeval.detector.geometry import Fit
from surgeval.errors import DataError
from surgeval.progress import advance, start_phase
from surgeval.records import Frame

__all__ = ["CACHE_BYTES", "Read", "ScaledPictures", "decode_all", "frame_pictures"]

CACHE_BYTES = 4 << 30
_RUN = 32  # frames that one thread reads in a row: neighbours in a video file are decoded from one key frame
Read = Callable[[Frame], Image]


@dataclass
class ScaledPictures:
    """Frames scaled to the input, without the letterbox's padding; `read` reads one, `cached` holds those in memory."""

    read: Callable[[int], Image]
    cached: dict[int, Image] = field(default_factory=dict)

    def __getitem__(self, number: int) -> Image:
        image = self.cached.get(number)
        return self.read(number) if image is None else image


def frame_pictures(frames: Sequence[Frame], fits: Sequence[Fit], read: Read) -> ScaledPictures:
    """Pictures of frames; those of another size than their labels say raise `DataError`."""

    def scaled(number: int) -> Image:
        frame = frames[number]
        pixels = read(frame)
        if pixels.shape != (frame.height, frame.width, 3):
            size = " × ".join(str(side) for side in pixels.shape[1::-1])
            raise DataError(
                frame.image.path if frame.image else frame.video,
                f"found an image of {size} pixels, expected {frame.width} × {frame.height} as its labels say",
                record=None if frame.image is not None and frame.image.frame is None else f"frame {frame.name}",
                field="size",
                code="image-size",
            )
        return scaled_only(pixels, fits[number])

    return ScaledPictures(scaled)


def scaled_only(pixels: Image, fit: Fit) -> Image:
    """A frame scaled as the letterbox does, without its padding."""
    height, width = fit.resized_hw
    square = fit.image(pixels, 0)  # the one way in which frames are scaled, for training and detection alike
    return np.ascontiguousarray(square[fit.top : fit.top + height, fit.left : fit.left + width])


def decode_all(
    pictures: ScaledPictures, fits: Sequence[Fit], cache_bytes: int, workers: int | None
) -> Iterator[tuple[int, DataError]]:
    """Read every picture once, keep the first ones up to the budget, and yield the unreadable ones in order."""
    sizes = np.array([3 * fit.resized_hw[0] * fit.resized_hw[1] for fit in fits], dtype=np.int64)
    within = np.cumsum(sizes) <= cache_bytes

    def read(first: int) -> list[tuple[int, DataError]]:
        broken = []
        for number in range(first, min(first + _RUN, len(fits))):
            try:
                image = pictures.read(number)
            except DataError as error:
                broken.append((number, error))
            else:
                if within[number]:
                    pictures.cached[number] = image
            advance("frames")
        return broken

    start_phase("reading frames", frames=len(fits))
    threads = workers if workers is not None else min(16, os.cpu_count() or 1)
    with one_thread_each(), ThreadPoolExecutor(max(1, threads), "surgeval-decode") as pool:
        for broken in pool.map(read, range(0, len(fits), _RUN)):
            yield from broken
