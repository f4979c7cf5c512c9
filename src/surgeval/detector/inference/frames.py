"""`detect_frames`: frames decoded ahead by threads, looked at in batches, given back in order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

import torch

from surgeval.arrays import Image
from surgeval.detector.geometry import Fit
from surgeval.detector.inference.look import Looker, Pending
from surgeval.detector.interface import Network
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
    # The next batch is on its way to a GPU while this one is looked at; a CPU would do one after the other anyway.
    most = 1 if network.device.type == "cuda" else 0
    going: deque[tuple[list[Frame], Pending]] = deque()

    def begin(ready: list[tuple[Frame, Fit, Image]]) -> None:
        squares, fits = [square for _, _, square in ready], [fit for _, fit, _ in ready]
        with _memory(network, batch):
            going.append(([frame for frame, _, _ in ready], looker.submit_squares(squares, fits, batch=batch)))

    def end() -> Iterator[tuple[Frame, Found]]:
        looked, pending = going.popleft()
        with _memory(network, batch):
            detections = looker.finish(pending)
        yield from zip(looked, detections, strict=True)

    prepared = _prepared(frames, network, batch, workers, on_skip)
    while ready := list(islice(prepared, batch)):
        begin(ready)
        while len(going) > most:
            yield from end()
    while going:
        yield from end()


@contextmanager
def _memory(network: Network, batch: int) -> Iterator[None]:
    """Say what helps where a device has too little memory."""
    try:
        yield
    except torch.OutOfMemoryError:
        found = f"no memory for {batch} frames at a time on {network.device}"
        raise RunError(f"{network.name}: found {found}, expected a smaller batch") from None


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
            raise DataError(frame.video, "found no image, expected one to look at", record=f"frame {frame.name}")
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
