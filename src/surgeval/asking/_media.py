"""The frames that a question is about, as a model is shown them.

Frames come from the dataset itself or from a folder of video files, one `VIDEO.mp4` per video. A question about a
moment gets the frame on screen then; one about a window up to `frames` of them, evenly spaced. A video that is not
there is an error before the first question is asked: text without its pictures would be another question.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import cv2
import numpy as np
import numpy.typing as npt

from surgeval.asking._answerers import ShownFrame
from surgeval.asking._question import Timed
from surgeval.datasets import Dataset, read_image, video_index, with_clock
from surgeval.datasets.io import SUFFIXES, video_files
from surgeval.errors import BadInput, DataError
from surgeval.records import ImageRef

__all__ = ["DatasetFrames", "Media", "Shown", "VideoFiles", "pictures"]

_JPEG_QUALITY = 95
_SLACK = 1e-6  # seconds: times that differ by rounding are the same


class Media(Protocol):
    """Where the frames of videos are."""

    @property
    def identity(self) -> str:
        """What the frames are, wherever they lie."""

    def timeline(self, video: str) -> tuple[npt.NDArray[np.float64], tuple[ImageRef, ...] | Path]:
        """The times of a video's frames in order, and the frames or the film that holds them."""


@dataclass(frozen=True, slots=True)
class Shown:
    """How frames are shown: at most so many, and whether the time is burnt in.

    >>> Shown(frames=0)
    Traceback (most recent call last):
    surgeval.errors.BadInput: frames: found 0, expected 1 to 1000
    """

    frames: int = 8
    overlay: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.frames <= 1000:
            raise BadInput(f"frames: found {self.frames}, expected 1 to 1000")


class DatasetFrames:
    """The frames that a dataset stores with their times."""

    def __init__(self, dataset: Dataset, videos: Iterable[str]) -> None:
        self._frames: dict[str, tuple[npt.NDArray[np.float64], tuple[ImageRef, ...]]] = {}
        known = {video.name for video in dataset.videos()}
        digest = hashlib.sha256()
        for video in sorted(set(videos)):
            if video not in known:
                raise DataError(dataset.root, record=f"video {video}", found="no such video", expected="its frames")
            frames = [(frame.time, frame.image) for frame in dataset.frames(video)]
            timed = sorted(
                ((time, image) for time, image in frames if time is not None and image), key=lambda two: two[0]
            )
            if not timed:
                raise DataError(dataset.root, record=f"video {video}", found="no frame with a time", expected="some")
            self._frames[video] = np.array([time for time, _ in timed]), tuple(image for _, image in timed)
            for time, image in timed:
                digest.update(f"{video}\0{time!r}\0{image.path.name}\0{_size(image.path)}\0{image.frame}\n".encode())
        self.identity = f"dataset {digest.hexdigest()[:16]}"

    def timeline(self, video: str) -> tuple[npt.NDArray[np.float64], tuple[ImageRef, ...] | Path]:
        """The stored frames."""
        return self._frames[video]


class VideoFiles:
    """Video files of a folder, called after the questions' videos.

    >>> VideoFiles(Path("no/such/folder"), ["v1"])
    Traceback (most recent call last):
    surgeval.errors.BadInput: media no/such/folder: found no such folder, expected one with a file for every video
    """

    def __init__(self, folder: Path, videos: Iterable[str]) -> None:
        if not folder.is_dir():
            raise BadInput(f"media {folder}: found no such folder, expected one with a file for every video")
        self._files: dict[str, Path] = {}
        digest = hashlib.sha256()
        files = video_files(folder)
        by_name = {file.stem: file for file in files} | {file.name: file for file in files}
        for video in sorted(set(videos)):
            if video not in by_name:
                expected = f"{video}{SUFFIXES[0]} or another video file of this name"
                raise DataError(folder, record=f"video {video}", found="no such file", expected=expected)
            self._files[video] = by_name[video]
            digest.update(f"{video}\0{_size(by_name[video])}\n".encode(errors="backslashreplace"))
        self.identity = f"video files {digest.hexdigest()[:16]}"

    def timeline(self, video: str) -> tuple[npt.NDArray[np.float64], tuple[ImageRef, ...] | Path]:
        """The film's own presentation times."""
        return video_index(self._files[video]).times, self._files[video]


def pictures(media: Media, question: Timed, shown: Shown) -> tuple[ShownFrame, ...]:
    """The frames of the question's window; a window outside the video, or a damaged frame, is a `DataError`.

    >>> import tempfile
    >>> from surgeval.records import VqaQuestion
    >>> class OneFrame:
    ...     identity = "one frame"
    ...     def timeline(self, video):
    ...         return np.array([3.0]), (ImageRef(picture),)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     picture = Path(folder) / "frame.png"
    ...     _ = cv2.imwrite(str(picture), np.zeros((8, 8, 3), np.uint8))
    ...     question = VqaQuestion("q", "v", 3, 3, "", "Is a clip visible?", "1a", "binary", "Yes")
    ...     [shown.time for shown in pictures(OneFrame(), question, Shown())]
    [3.0]
    """
    times, source = media.timeline(question.video)
    made = []
    for number in _chosen(times, question, shown.frames):
        ref = ImageRef(source, number) if isinstance(source, Path) else source[number]
        time = float(times[number])
        made.append(ShownFrame(time, _jpeg(ref, time if shown.overlay else None)))
    return tuple(made)


def _chosen(times: npt.NDArray[np.float64], question: Timed, most: int) -> list[int]:
    last = float(times[-1])
    step = float(times[-1] - times[-2]) if len(times) > 1 else 0.0
    if question.start > last + max(step, 1.0) + _SLACK:  # the last frame stays on screen for a while
        found = f"{last:.2f} s of video"
        raise DataError(f"video {question.video}", found=found, expected=f"it to reach {question.start:g} s")
    first, after = np.searchsorted(times, [question.start - _SLACK, question.end + _SLACK])
    inside = np.arange(first, after)
    if not inside.size:  # between two frames: the one on screen
        return [max(int(first) - 1, 0)]
    if most == 1:
        return [int(inside[len(inside) // 2])]
    return sorted({int(number) for number in inside[np.linspace(0, len(inside) - 1, most).round().astype(int)]})


@lru_cache(maxsize=64)  # neighbouring questions are about the same frames
def _jpeg(ref: ImageRef, time: float | None) -> bytes:
    image = read_image(ref)
    if time is not None:
        image = with_clock(image, time)
    return bytes(cv2.imencode(".jpg", image[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, _JPEG_QUALITY])[1].tobytes())


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1  # told when it is read
