"""The frames that a model is shown: where they are, which of them are chosen, how they are encoded and recorded.

No frame after a question's window is shown, because a question about what comes next would answer itself. A missing
video is an error before the first question is asked: without its frames a question is a different question.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Literal, Protocol, TypeAlias, get_args

import cv2
import numpy as np

from surgeval.arrays import Floats, Image, Ints
from surgeval.asking.answerer import ModelFrame, Question, TimedQuestion
from surgeval.datasets import Dataset, check_media, media_paths, read_image, video_index, with_clock
from surgeval.datasets.io import SUFFIXES, video_files
from surgeval.errors import BadInput, DataError
from surgeval.records import Gaze, ImageRef, IntentQuestion

__all__ = ["DatasetFrames", "Decorate", "FrameOptions", "FrameSampling", "FrameTimeline", "ItemFiles", "Media",
           "SelectedFrame", "VideoFiles", "describe_frames", "encode_frame", "encode_frames",
           "select_frames"]  # fmt: skip

FrameSampling: TypeAlias = Literal["uniform", "gaze", "question"]
_POLICIES: tuple[FrameSampling, ...] = get_args(FrameSampling)
_TOLERANCE = 1e-6  # seconds: times that differ by rounding are the same
_LIMITS = {"frames": (1, 1000), "longest_edge": (16, 16384), "quality": (1, 100)}
_MAX_IMAGES = 1000  # of one item


@dataclass(frozen=True, slots=True)
class FrameOptions:
    """How many frames are shown, which, how large, and whether the time is burnt in. Part of a run's settings.

    `sampling` is `uniform` (evenly spaced over the window), `gaze` (within `reach` seconds of a fixation) or `question`
    (the last `reach` seconds up to the end of the window); at most `frames` in each case. Without gaze the frames are
    evenly spaced. `longest_edge` is the most pixels of a side (None: original size), `quality` that of the JPEG.

    >>> FrameOptions(frames=4, sampling="question", reach=2.0).overlay
    False
    >>> FrameOptions(frames=0)
    Traceback (most recent call last):
    surgeval.errors.BadInput: frames: 0 is not between 1 and 1000.
    """

    frames: int = 8
    overlay: bool = False
    sampling: FrameSampling = "uniform"
    reach: float = 1.0
    longest_edge: int | None = None
    quality: int = 95

    def __post_init__(self) -> None:
        for name, (low, high) in _LIMITS.items():
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                raise BadInput(f"{name.replace('_', ' ')}: {value} is not between {low} and {high}.")
        if self.sampling not in _POLICIES:
            raise BadInput(f"Unknown sampling {self.sampling!r}. Use one of {', '.join(_POLICIES)}.")
        if not 0 <= self.reach <= 3600:
            raise BadInput(f"reach: {self.reach:g} is not between 0 and 3600 seconds.")


@dataclass(frozen=True, eq=False, slots=True)
class FrameTimeline:
    """The frames that a question may be shown: times in order, the images or the video, and the question's window.

    `timed` is False if the times of the images are unknown; `times` are then their positions. `listed` is True if the
    author of the question chose the images: all of them are shown, unless a policy picks some.
    """

    times: Floats
    frames: tuple[ImageRef, ...] | Path
    window: tuple[float, float]
    gaze: Sequence[Gaze] = field(default=())
    timed: bool = True
    listed: bool = False


class Media(Protocol[Question]):
    """Where the frames of questions are stored."""

    @property
    def identity(self) -> str:
        """A digest of the frames that does not depend on the folder."""

    def timeline(self, question: Question) -> FrameTimeline:
        """Return the frames of a question's video or item, and its window."""


class DatasetFrames:
    """The frames that a dataset stores with their times."""

    def __init__(self, dataset: Dataset, videos: Iterable[str]) -> None:
        self._frames: dict[str, tuple[Floats, tuple[ImageRef, ...]]] = {}
        known = {video.name for video in dataset.videos()}
        digest = hashlib.sha256()
        for video in sorted(set(videos)):
            if video not in known:
                raise DataError(dataset.root, "the dataset has no such video", record=f"video {video}")
            frames = [(frame.time, frame.image) for frame in dataset.frames(video)]
            timed = sorted(
                ((time, image) for time, image in frames if time is not None and image), key=lambda pair: pair[0]
            )
            if not timed:
                raise DataError(dataset.root, "no frame of this video has a time", record=f"video {video}")
            self._frames[video] = np.array([time for time, _ in timed]), tuple(image for _, image in timed)
            for time, image in timed:
                digest.update(f"{video}\0{time!r}\0{image.path.name}\0{_size(image.path)}\0{image.frame}\n".encode())
        self.identity = f"dataset {digest.hexdigest()[:16]}"

    def timeline(self, question: TimedQuestion) -> FrameTimeline:
        """Return the stored frames of the question's video."""
        return FrameTimeline(*self._frames[question.video], (question.start, question.end))


class VideoFiles:
    """Video files of a folder, named after the questions' videos.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "v1.mp4").write_bytes(b"a film")
    ...     VideoFiles(folder, ["v1"]).identity
    'video files ...'
    >>> VideoFiles("no/such/folder", ["v1"])
    Traceback (most recent call last):
    surgeval.errors.BadInput: The media folder no/such/folder does not exist.
    """

    def __init__(self, folder: str | Path, videos: Iterable[str]) -> None:
        folder = Path(folder)
        if not folder.is_dir():
            raise BadInput(f"The media folder {folder} does not exist.")
        self._files: dict[str, Path] = {}
        digest = hashlib.sha256()
        files = video_files(folder)
        by_name = {file.stem: file for file in files} | {file.name: file for file in files}
        for video in sorted(set(videos)):
            if video not in by_name:
                missing = f"there is no video file of this name; add {video}{SUFFIXES[0]} or another video format"
                raise DataError(folder, missing, record=f"video {video}")
            self._files[video] = by_name[video]
            digest.update(f"{video}\0{_size(by_name[video])}\n".encode(errors="backslashreplace"))
        self.identity = f"video files {digest.hexdigest()[:16]}"

    def timeline(self, question: TimedQuestion) -> FrameTimeline:
        """Return the frames of the question's video file, by their presentation times."""
        file = self._files[question.video]
        return FrameTimeline(video_index(file).times, file, (question.start, question.end))


class ItemFiles:
    """The images, or the one video, that each item names. Files outside the dataset's folder are refused.

    Images of a list are taken as evenly spaced from the item's start to its end, a single image as taken at the end.
    Without a start they have no times. Of a video the window is from start to end, or all of it if the item has none.
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
        """Return the images of the list, or the frames of the video."""
        check_media(self._dataset, question)  # a file may have become a link since
        paths = media_paths(self._dataset, question)
        videos = [path for path in paths if path.suffix.lower() in SUFFIXES]
        if (videos and len(paths) > 1) or not 1 <= len(paths) <= _MAX_IMAGES:
            listed = f"a video among {len(paths)} files" if videos else f"{len(paths)} files"
            sentence = f"the item names {listed}, but it needs 1 to {_MAX_IMAGES} images or one video"
            raise DataError(self._dataset.root, sentence, record=f"item {question.id}", field="media")
        if videos:
            times = video_index(videos[0]).times
            start = 0.0 if question.start is None else question.start
            return FrameTimeline(
                times, videos[0], (start, float(times[-1]) if question.end is None else question.end), question.gaze
            )
        refs = tuple(ImageRef(path) for path in paths)
        end = question.start if question.end is None else question.end
        if question.start is None or end is None:
            positions = np.arange(len(refs), dtype=np.float64)
            return FrameTimeline(positions, refs, (0.0, float(positions[-1])), question.gaze, timed=False, listed=True)
        first = question.start if len(refs) > 1 else end
        return FrameTimeline(np.linspace(first, end, len(refs)), refs, (first, end), question.gaze, listed=True)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1  # reported when the file is read


@dataclass(frozen=True, slots=True)
class SelectedFrame:
    """A frame before it is read: where its pixels are, its number in the video or list, its time if that is known.

    >>> SelectedFrame(ImageRef(Path("a.jpg")), 0, 2.5).time
    2.5
    """

    ref: ImageRef
    frame: int
    time: float | None


def select_frames(media: Media[Question], question: Question, options: FrameOptions) -> tuple[SelectedFrame, ...]:
    """Choose the frames that a question is shown. A window beyond the end of the video is a `DataError`.

    >>> from surgeval.asking import FrameTimeline
    >>> from surgeval.records import VqaQuestion
    >>> class Film:
    ...     identity = "a film"
    ...     def timeline(self, question):
    ...         return FrameTimeline(np.arange(100) / 10, Path("film.mp4"), (question.start, question.end))
    >>> question = VqaQuestion("q", "v", 2, 6, "", "Is a clip visible?", "1a", "binary", "Yes")
    >>> [selected.frame for selected in select_frames(Film(), question, FrameOptions(frames=3))]
    [20, 40, 60]
    """
    line = media.timeline(question)
    refs = line.frames
    return tuple(
        SelectedFrame(
            ImageRef(refs, number) if isinstance(refs, Path) else refs[number],
            number,
            float(line.times[number]) if line.timed else None,
        )
        for number in _sample_positions(line, options, question.video)
    )


def _sample_positions(line: FrameTimeline, options: FrameOptions, video: str) -> list[int]:
    start, end = line.window
    last = float(line.times[-1])
    step = last - float(line.times[-2]) if len(line.times) > 1 else 0.0
    if start > last + max(step, 1.0) + _TOLERANCE:  # the last frame stays on screen for a while
        raise DataError(f"video {video}", f"it ends at {last:.2f} s, but the question is about {start:g} s")
    if options.sampling == "question" and line.timed:
        start = max(end - options.reach, start) if end > start else end - options.reach
    first, after = np.searchsorted(line.times, [start - _TOLERANCE, end + _TOLERANCE])
    inside: Ints = np.arange(first, after)
    if not inside.size:  # between two frames: the one on screen
        return [max(int(first) - 1, 0)]
    if options.sampling == "gaze" and line.timed:
        near = inside[_near_fixations(line.times[inside], line.gaze, options.reach)]
        inside = near if near.size else inside
    if line.listed and options.sampling == "uniform":
        return [int(number) for number in inside]
    if options.frames == 1:
        return [int(inside[len(inside) // 2])]
    spread = np.linspace(0, len(inside) - 1, options.frames).round().astype(int)
    return sorted({int(number) for number in inside[spread]})


def _near_fixations(times: Floats, gaze: Sequence[Gaze], reach: float) -> list[bool]:
    return [any(fix.t - reach <= time <= fix.t + fix.duration + reach for fix in gaze) for time in times]


Decorate: TypeAlias = Callable[[Image, "float | None"], Image]  # draws on a copy of the frame at this time


def encode_frame(image: Image, selected: SelectedFrame, options: FrameOptions) -> ModelFrame:
    """Scale pixels down to the longest edge, burn in the time if asked for, and encode them as JPEG.

    >>> selected = SelectedFrame(ImageRef(Path("a.jpg")), 7, 1.5)
    >>> encoded = encode_frame(np.zeros((90, 160, 3), np.uint8), selected, FrameOptions(longest_edge=80))
    >>> encoded.frame, encoded.width, encoded.height
    (7, 80, 45)
    """
    small = _scale_down(image, options.longest_edge)
    if options.overlay and selected.time is not None:
        small = with_clock(small, selected.time)
    height, width = small.shape[:2]
    coded = cv2.imencode(".jpg", small[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, options.quality])[1]
    return ModelFrame(selected.time, coded.tobytes(), selected.frame, width, height)


def encode_frames(
    media: Media[Question], question: Question, options: FrameOptions, decorate: Decorate | None = None
) -> tuple[ModelFrame, ...]:
    """Choose, read and encode the frames of a question. A window beyond the video or a damaged frame is a `DataError`.

    `decorate` draws on each frame before it is scaled down. It gets the pixels and the time (None if unknown) and
    returns new pixels; those that it gets are read-only and kept for the next question.

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
    ...     [frame.time for frame in encode_frames(OneFrame(), question, FrameOptions())]
    [3.0]
    """
    frames = select_frames(media, question, options)
    if decorate is None:
        return tuple(_read_and_encode(selected, options) for selected in frames)
    return tuple(
        encode_frame(decorate(_read_pixels(selected.ref), selected.time), selected, options) for selected in frames
    )


def describe_frames(frames: Sequence[ModelFrame]) -> str:
    """Write number, time, size and SHA-256 of each frame as the JSON text that a case keeps.

    Two runs whose texts agree were shown the same images.

    >>> describe_frames([ModelFrame(2.0, b"JPEG", 50, 448, 256)])[:62]
    '[{"frame": 50, "time": 2.0, "width": 448, "height": 256, "sha2'
    """
    return json.dumps([
        {"frame": frame.frame, "time": frame.time, "width": frame.width, "height": frame.height,
         "sha256": hashlib.sha256(frame.jpeg).hexdigest()}
        for frame in frames
    ])  # fmt: skip


@lru_cache(maxsize=64)  # neighbouring questions share frames
def _read_and_encode(selected: SelectedFrame, options: FrameOptions) -> ModelFrame:
    return encode_frame(read_image(selected.ref), selected, options)


@lru_cache(maxsize=16)
def _read_pixels(ref: ImageRef) -> Image:
    pixels = read_image(ref)
    pixels.setflags(write=False)
    return pixels


def _scale_down(image: Image, longest: int | None) -> Image:
    height, width = image.shape[:2]
    if longest is None or max(height, width) <= longest:
        return image
    scale = longest / max(height, width)
    size = max(1, round(width * scale)), max(1, round(height * scale))
    return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.uint8)
