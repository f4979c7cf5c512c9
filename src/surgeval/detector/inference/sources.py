"""What a detector is shown: a labelled dataset, video files, a folder of images, one image; all of it or a part."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from surgeval.datasets import Dataset, OnProblem, is_dataset, open_dataset, open_images, open_video, raise_errors
from surgeval.datasets.io import SUFFIXES, video_files
from surgeval.errors import BadInput
from surgeval.records import Frame, Question, Video
from surgeval.vocab import LabelSpace

__all__ = ["Source", "open_source"]

Tell = Callable[[str], None]
_UNTIMED = 1.0  # seconds between frames of which nobody knows the times, as in most datasets of frames


@dataclass(frozen=True)
class Source:
    """Frames to look at. `dataset` names them all; looked at is every `every`-th, or `fps` of them a second."""

    dataset: Dataset
    every: int = 1
    fps: float | None = None
    only: tuple[str, ...] = ()  # the videos to look at, where not all of them
    foreign: bool = False  # the dataset is labelled with other classes than the detector's

    def __post_init__(self) -> None:
        if self.every < 1:
            raise BadInput(f"every: found {self.every}, expected at least 1")
        if self.fps is not None and not (0 < self.fps < math.inf):
            raise BadInput(f"fps: found {self.fps:g}, expected more than 0")
        if self.fps is not None and self.every != 1:
            raise BadInput(f"every: found {self.every} and {self.fps:g} frames a second as well, expected one of them")

    def videos(self, announce: Tell) -> tuple[Video, ...]:
        """The videos that can be read; what is wrong with others is told."""
        known = self.dataset.videos(_problems(announce))
        names = [video.name for video in known]
        for name in self.only:
            if name not in names:
                raise BadInput(f"{self.dataset.root}: found no video {name!r}, expected one of {', '.join(names)}")
        return tuple(video for video in known if not self.only or video.name in self.only)

    def frames(self, video: str, announce: Tell) -> Iterator[Frame]:
        """The frames to look at, in time order; records that cannot be read are told and left out."""
        tick: int | None = None
        for number, frame in enumerate(self.dataset.frames(video, _problems(announce))):
            if self.fps is None:
                if number % self.every == 0:
                    yield frame
                continue
            if frame.time is None:
                raise BadInput(f"{self.dataset.root}: found frames without times, expected some where a rate is given")
            now = math.floor(frame.time * self.fps + 1e-6)
            if tick is None or now > tick:
                tick = now
                yield frame

    def seconds(self, frame: Frame, number: int, video: Video) -> float:
        """When a frame is shown, by the best that is known: its time, else its place at the video's rate."""
        if frame.time is not None:
            return frame.time
        return number * (_UNTIMED if not video.fps else self.every / video.fps)


def open_source(
    path: str | Path,
    space: LabelSpace,
    *,
    every: int = 1,
    fps: float | None = None,
    videos: Sequence[str] = (),
    format: str | None = None,
) -> Source:
    """Open what lies at a path for a detector that speaks `space`; `videos` names those to look at.

    >>> import tempfile
    >>> from PIL import Image
    >>> from surgeval.vocab import load_labels
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("RGB", (64, 48)).save(f"{folder}/000001.png")
    ...     source = open_source(folder, load_labels("cholec80"))
    ...     [(frame.name, frame.width) for video in source.videos(print) for frame in source.frames(video.name, print)]
    [('000001', 64)]
    >>> from surgeval.vocab import load_labels
    >>> open_source("nowhere", load_labels("cholec80"))
    Traceback (most recent call last):
    surgeval.errors.BadInput: nowhere: found no such file or folder, expected frames to look at
    """
    target = Path(path)
    if not target.exists():
        raise BadInput(f"{target}: found no such file or folder, expected frames to look at")
    dataset, foreign = _opened(target, space, format)
    return Source(dataset, every, fps, tuple(videos), foreign)


def _opened(path: Path, space: LabelSpace, format: str | None) -> tuple[Dataset, bool]:
    """The dataset in the detector's label space, and whether it is labelled in another."""
    film = path.is_file() and path.suffix.lower() in SUFFIXES
    if format is None and (film or _only_films(path)):
        return open_video(path, labels=space), False
    if format is None and not is_dataset(path):
        return open_images(path, space), False
    dataset = open_dataset(path, format)
    if dataset.format == "video":
        return open_video(path, labels=space), False
    if _same(dataset.space, space):
        return dataset, False
    return _Relabelled(dataset, space), True


def _only_films(folder: Path) -> bool:
    return folder.is_dir() and bool(video_files(folder)) and open_dataset(folder).format == "video"


def _same(data: LabelSpace, detector: LabelSpace) -> bool:
    """Whether the ids that a detector says mean the same: triplets with their parts, or instruments where it has none.

    An instrument beside the triplets (the phantom's bag) is never said, so it makes no difference.
    """
    if not detector.triplets:
        return data.instruments == detector.instruments
    return data.triplets == detector.triplets and data.triplet_names == detector.triplet_names


class _Relabelled:
    """A dataset's frames without its labels, whose ids would mean something else in the detector's classes."""

    format: ClassVar[str] = "frames"

    def __init__(self, dataset: Dataset, space: LabelSpace) -> None:
        self._dataset = dataset
        self.root, self.space = dataset.root, space

    def videos(self, on_problem: OnProblem = raise_errors) -> tuple[Video, ...]:
        return self._dataset.videos(on_problem)

    def frames(self, video: str, on_problem: OnProblem = raise_errors) -> Iterator[Frame]:
        for frame in self._dataset.frames(video, on_problem):
            yield replace(frame, instances=(), labelled=False)

    def questions(self, on_problem: OnProblem = raise_errors) -> Iterator[Question]:
        return iter(())


def _problems(tell: Tell) -> OnProblem:
    return lambda problem: tell(str(problem)) if problem.level == "error" else None
