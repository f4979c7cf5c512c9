"""Where the frames of a question are: in the dataset itself, in a folder of videos, or in files that an item names.

A video that is not there is an error before the first question is asked: text without its pictures would be another
question.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

import numpy as np

from surgeval.arrays import Floats
from surgeval.asking.question import Question, Timed
from surgeval.asking.sampling import FrameTimeline
from surgeval.datasets import Dataset, check_media, media_paths, video_index
from surgeval.datasets.io import SUFFIXES, video_files
from surgeval.errors import BadInput, DataError
from surgeval.records import ImageRef, IntentQuestion

__all__ = ["DatasetFrames", "ItemFiles", "Media", "VideoFiles"]

_MOST = 1000  # pictures of one item


class Media(Protocol[Question]):
    """Where the frames of questions are."""

    @property
    def identity(self) -> str:
        """What the frames are, wherever they lie."""

    def timeline(self, question: Question) -> FrameTimeline:
        """The frames of a question's video or item, and the window that it is about."""


class DatasetFrames:
    """The frames that a dataset stores with their times."""

    def __init__(self, dataset: Dataset, videos: Iterable[str]) -> None:
        self._frames: dict[str, tuple[Floats, tuple[ImageRef, ...]]] = {}
        known = {video.name for video in dataset.videos()}
        digest = hashlib.sha256()
        for video in sorted(set(videos)):
            if video not in known:
                raise DataError(dataset.root, "found no such video, expected its frames", record=f"video {video}")
            frames = [(frame.time, frame.image) for frame in dataset.frames(video)]
            timed = sorted(
                ((time, image) for time, image in frames if time is not None and image), key=lambda two: two[0]
            )
            if not timed:
                raise DataError(dataset.root, "found no frame with a time, expected some", record=f"video {video}")
            self._frames[video] = np.array([time for time, _ in timed]), tuple(image for _, image in timed)
            for time, image in timed:
                digest.update(f"{video}\0{time!r}\0{image.path.name}\0{_size(image.path)}\0{image.frame}\n".encode())
        self.identity = f"dataset {digest.hexdigest()[:16]}"

    def timeline(self, question: Timed) -> FrameTimeline:
        """The stored frames."""
        return FrameTimeline(*self._frames[question.video], (question.start, question.end))


class VideoFiles:
    """Video files of a folder, called after the questions' videos.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "v1.mp4").write_bytes(b"a film")
    ...     VideoFiles(folder, ["v1"]).identity
    'video files ...'
    >>> VideoFiles("no/such/folder", ["v1"])
    Traceback (most recent call last):
    surgeval.errors.BadInput: media no/such/folder: found no such folder, expected one with a file for every video
    """

    def __init__(self, folder: str | Path, videos: Iterable[str]) -> None:
        folder = Path(folder)
        if not folder.is_dir():
            raise BadInput(f"media {folder}: found no such folder, expected one with a file for every video")
        self._files: dict[str, Path] = {}
        digest = hashlib.sha256()
        files = video_files(folder)
        by_name = {file.stem: file for file in files} | {file.name: file for file in files}
        for video in sorted(set(videos)):
            if video not in by_name:
                expected = f"{video}{SUFFIXES[0]} or another video file of this name"
                raise DataError(folder, f"found no such file, expected {expected}", record=f"video {video}")
            self._files[video] = by_name[video]
            digest.update(f"{video}\0{_size(by_name[video])}\n".encode(errors="backslashreplace"))
        self.identity = f"video files {digest.hexdigest()[:16]}"

    def timeline(self, question: Timed) -> FrameTimeline:
        """The film's own presentation times."""
        film = self._files[question.video]
        return FrameTimeline(video_index(film).times, film, (question.start, question.end))


class ItemFiles:
    """The pictures, or the one video, that each item names; files outside the dataset's folder are refused.

    Pictures of a list were taken evenly from the item's start to its end, the only one at its end; without a start they
    have no times. Of a video the window is from start to end, and all of it where the item names none.
    """

    def __init__(self, dataset: Dataset, items: Iterable[IntentQuestion]) -> None:
        self._dataset = dataset
        digest = hashlib.sha256()
        for item in items:
            check_media(dataset, item)
            for name, path in zip(item.media, media_paths(dataset, item), strict=False):
                digest.update(f"{item.id}\0{name}\0{_size(path)}\n".encode(errors="backslashreplace"))
        self.identity = f"item files {digest.hexdigest()[:16]}"

    def timeline(self, question: IntentQuestion) -> FrameTimeline:
        """The pictures of the list, or the frames of the video."""
        check_media(self._dataset, question)  # a file may have become a link since
        paths = media_paths(self._dataset, question)
        films = [path for path in paths if path.suffix.lower() in SUFFIXES]
        where = f"item {question.id}"
        if (films and len(paths) > 1) or not 1 <= len(paths) <= _MOST:
            found = f"a video among {len(paths)} files" if films else f"{len(paths)} files"
            expected = f"1 to {_MOST} pictures, or one video"
            raise DataError(self._dataset.root, f"found {found}, expected {expected}", record=where, field="media")
        if films:
            times = video_index(films[0]).times
            start = 0.0 if question.start is None else question.start
            return FrameTimeline(
                times, films[0], (start, float(times[-1]) if question.end is None else question.end), question.gaze
            )
        refs = tuple(ImageRef(path) for path in paths)
        end = question.start if question.end is None else question.end
        if question.start is None or end is None:
            places = np.arange(len(refs), dtype=np.float64)
            return FrameTimeline(places, refs, (0.0, float(places[-1])), question.gaze, timed=False, listed=True)
        first = question.start if len(refs) > 1 else end
        return FrameTimeline(np.linspace(first, end, len(refs)), refs, (first, end), question.gaze, listed=True)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1  # told when it is read
