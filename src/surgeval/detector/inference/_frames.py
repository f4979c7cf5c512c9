"""`detect_frames`: frames decoded ahead by threads, looked at in batches, given back in order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeAlias

import torch

from surgeval.arrays import Image
from surgeval.detector.geometry import Fit
from surgeval.detector.inference._look import Looker
from surgeval.detector.inference._network import Network
from surgeval.detector.nms import Found, Selecting
from surgeval.errors import BadInput, DataError, RunError

if TYPE_CHECKING:
    from surgeval.records import Frame

__all__ = ["detect_frames"]

OnSkip: TypeAlias = Callable[["Frame", DataError], None]
_AHEAD = 3  # batches that may wait, decoded and made square, for the network
_MOST_WORKERS = 8


def _stop(frame: Frame, error: DataError) -> None:
    raise error


def detect_frames(
    network: Network,
    frames: Iterable[Frame],
    *,
    selecting: Selecting | None = None,
    batch: int = 16,
    workers: int | None = None,
    on_skip: OnSkip = _stop,
) -> Iterator[tuple[Frame, Found]]:
    """Look at frames and give back each with its boxes, in pixels of the frame, in the order given.

    Frames of a film are decoded one after the other by one thread, image files by several. Never more than a few
    batches are in memory. A frame that cannot be read raises `DataError`, or goes to `on_skip` and is left out.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> from surgeval.datasets import open_images
    >>> from surgeval.detector import Classes, Loaded, build_tdnet
    >>> from surgeval.detector.inference import TDNetDetector
    >>> from surgeval.vocab import load_labels
    >>> classes = Classes.of(load_labels("cholec80"))
    >>> detector = TDNetDetector(Loaded(build_tdnet("p", classes), classes, "p", 64, {}))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("a", "b"):
    ...         Image.new("RGB", (64, 48)).save(f"{folder}/{name}.png")
    ...     images = open_images(folder)
    ...     seen = list(detect_frames(detector, images.frames(Path(folder).name)))
    >>> [frame.name for frame, found in seen]
    ['a', 'b']
    """
    if batch < 1:
        raise BadInput(f"batch: found {batch}, expected at least 1")
    looker = Looker(network, selecting)
    side = network.image_size
    pinned = network.device.type == "cuda"
    # Batches keep one shape, so that a GPU has its kernels ready; the rows of an incomplete one are looked at in vain.
    squares = torch.zeros(batch, side, side, 3, dtype=torch.uint8, pin_memory=pinned)
    waiting: list[tuple[Frame, Fit]] = []

    def looked() -> Iterator[tuple[Frame, Found]]:
        rows = squares if pinned else squares[: len(waiting)]
        try:
            chosen = looker.look_at(rows.to(network.device, non_blocking=True), [fit for _, fit in waiting])
        except torch.OutOfMemoryError:
            found = f"no memory for {batch} frames at a time on {network.device}"
            raise RunError(f"{network.name}: found {found}, expected a smaller batch") from None
        yield from zip((frame for frame, _ in waiting), chosen, strict=True)
        waiting.clear()

    for frame, fit, square in _prepared(frames, network, batch, workers, on_skip):
        squares[len(waiting)] = torch.from_numpy(square)
        waiting.append((frame, fit))
        if len(waiting) == batch:
            yield from looked()
    if waiting:
        yield from looked()


def _prepared(
    frames: Iterable[Frame], network: Network, batch: int, workers: int | None, on_skip: OnSkip
) -> Iterator[tuple[Frame, Fit, Image]]:
    """Frames as squares, prepared ahead of their use; at most `_AHEAD` batches of them are held."""
    from surgeval.datasets import read_image

    side, fill = network.image_size, network.fill

    def made_square(pixels: Image) -> tuple[Fit, Image]:
        fit = Fit.of(pixels.shape[0], pixels.shape[1], side)
        return fit, fit.image(pixels, fill)

    def from_file(frame: Frame) -> tuple[Fit, Image]:
        return made_square(_pixels(frame))

    def from_film(frame: Frame) -> Future[tuple[Fit, Image]]:
        return pool.submit(made_square, _pixels(frame))

    def _pixels(frame: Frame) -> Image:
        if frame.image is None:
            raise DataError(frame.video, record=f"frame {frame.name}", found="no image", expected="one to look at")
        return read_image(frame.image)

    count = workers or min(_MOST_WORKERS, os.cpu_count() or 1)
    ahead: deque[tuple[Frame, Future[tuple[Fit, Image]] | Future[Future[tuple[Fit, Image]]]]] = deque()

    def next_one() -> Iterator[tuple[Frame, Fit, Image]]:
        frame, future = ahead.popleft()
        try:
            ready = future.result()
            fit, square = ready.result() if isinstance(ready, Future) else ready
        except DataError as error:
            on_skip(frame, error)
            return
        yield frame, fit, square

    pool, film = ThreadPoolExecutor(count, "frames"), ThreadPoolExecutor(1, "film")
    try:
        for frame in frames:
            filmed = frame.image is not None and frame.image.frame is not None
            # Decoders are kept by thread, and a film is decoded forward: a second thread would decode it all again.
            ahead.append((frame, film.submit(from_film, frame) if filmed else pool.submit(from_file, frame)))
            if len(ahead) > _AHEAD * batch:
                yield from next_one()
        while ahead:
            yield from next_one()
    finally:
        film.shutdown(cancel_futures=True)
        pool.shutdown(cancel_futures=True)
