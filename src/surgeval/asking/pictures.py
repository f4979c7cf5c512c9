"""Frames as a model is shown them: read, drawn on where a protocol wants it, made smaller, packed as JPEG, recorded.

The record names every picture by its frame, its size and the hash of its bytes, so that two runs can be proven to have
shown the same pictures.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

import cv2
import numpy as np

from surgeval.arrays import Image
from surgeval.asking.answerers import ShownFrame
from surgeval.asking.media import Media
from surgeval.asking.question import Question
from surgeval.asking.sampling import Shown, sample
from surgeval.datasets import read_image, with_clock
from surgeval.records import ImageRef

__all__ = ["Decorate", "Moment", "moments", "picture", "pictures", "shown_record"]

Decorate: TypeAlias = Callable[[Image, "float | None"], Image]  # draws on a copy of the frame at this time


@dataclass(frozen=True, slots=True)
class Moment:
    """A frame before it is read: where its pixels are, its number in the film or list, its time where that is known.

    >>> Moment(ImageRef(Path("a.jpg")), 0, 2.5).time
    2.5
    """

    ref: ImageRef
    frame: int
    time: float | None


def moments(media: Media[Question], question: Question, shown: Shown) -> tuple[Moment, ...]:
    """The frames that a question is shown, by the policy; a window outside the video is a `DataError`.

    >>> from surgeval.asking import FrameTimeline
    >>> from surgeval.records import VqaQuestion
    >>> class Film:
    ...     identity = "a film"
    ...     def timeline(self, question):
    ...         return FrameTimeline(np.arange(100) / 10, Path("film.mp4"), (question.start, question.end))
    >>> question = VqaQuestion("q", "v", 2, 6, "", "Is a clip visible?", "1a", "binary", "Yes")
    >>> [moment.frame for moment in moments(Film(), question, Shown(frames=3))]
    [20, 40, 60]
    """
    line = media.timeline(question)
    refs = line.frames
    return tuple(
        Moment(
            ImageRef(refs, number) if isinstance(refs, Path) else refs[number],
            number,
            float(line.times[number]) if line.timed else None,
        )
        for number in sample(line, shown, question.video)
    )


def picture(image: Image, moment: Moment, shown: Shown) -> ShownFrame:
    """Pixels as a model is shown them: the time burnt in where wanted, no larger than wanted, as JPEG.

    >>> moment = Moment(ImageRef(Path("a.jpg")), 7, 1.5)
    >>> made = picture(np.zeros((90, 160, 3), np.uint8), moment, Shown(longest_edge=80))
    >>> made.frame, made.width, made.height
    (7, 80, 45)
    """
    small = _fitted(image, shown.longest_edge)
    if shown.overlay and moment.time is not None:
        small = with_clock(small, moment.time)
    height, width = small.shape[:2]
    coded = cv2.imencode(".jpg", small[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, shown.quality])[1]
    return ShownFrame(moment.time, coded.tobytes(), moment.frame, width, height)


def pictures(
    media: Media[Question], question: Question, shown: Shown, decorate: Decorate | None = None
) -> tuple[ShownFrame, ...]:
    """The pictures of a question; a window outside the video, or a damaged frame, is a `DataError`.

    `decorate` draws on each frame before it is made smaller. It is given the pixels and the time (None where nobody
    knows it) and returns new ones: the pixels it is given are kept for the next question.

    >>> import tempfile
    >>> from surgeval.asking import FrameTimeline
    >>> from surgeval.records import VqaQuestion
    >>> class OneFrame:
    ...     identity = "one frame"
    ...     def timeline(self, question):
    ...         return FrameTimeline(np.array([3.0]), (ImageRef(file),), (question.start, question.end))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "frame.png"
    ...     _ = cv2.imwrite(str(file), np.zeros((8, 8, 3), np.uint8))
    ...     question = VqaQuestion("q", "v", 3, 3, "", "Is a clip visible?", "1a", "binary", "Yes")
    ...     [seen.time for seen in pictures(OneFrame(), question, Shown())]
    [3.0]
    """
    seen = moments(media, question, shown)
    if decorate is None:
        return tuple(_plain(moment, shown) for moment in seen)
    return tuple(picture(decorate(_pixels(moment.ref), moment.time), moment, shown) for moment in seen)


def shown_record(frames: Sequence[ShownFrame]) -> str:
    """What was shown, as the text that a case keeps.

    >>> shown_record([ShownFrame(2.0, b"JPEG", 50, 448, 256)])[:62]
    '[{"frame": 50, "time": 2.0, "width": 448, "height": 256, "sha2'
    """
    return json.dumps([
        {"frame": frame.frame, "time": frame.time, "width": frame.width, "height": frame.height,
         "sha256": hashlib.sha256(frame.jpeg).hexdigest()}
        for frame in frames
    ])  # fmt: skip


@lru_cache(maxsize=64)  # neighbouring questions are about the same frames
def _plain(moment: Moment, shown: Shown) -> ShownFrame:
    return picture(read_image(moment.ref), moment, shown)


@lru_cache(maxsize=16)
def _pixels(ref: ImageRef) -> Image:
    pixels = read_image(ref)
    pixels.setflags(write=False)
    return pixels


def _fitted(image: Image, longest: int | None) -> Image:
    height, width = image.shape[:2]
    if longest is None or max(height, width) <= longest:
        return image
    scale = longest / max(height, width)
    size = max(1, round(width * scale)), max(1, round(height * scale))
    return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.uint8)
