"""`TrainingSet`: the labelled frames of any dataset as a detector learns them.

Labels are held as arrays in pixels of the detector's input; pictures are held as far as memory allows. What a sample
looks like depends on (seed, epoch, index) and the settings alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from surgeval.arrays import Bools, Floats, Image, Ints, Singles
from surgeval.detector.data._augment import PLAIN, Augment, Sampling, Tile, compose, draw
from surgeval.detector.data._labels import Reading, Rows, head_labels
from surgeval.detector.data._pictures import CACHE_BYTES, Pictures, Read, decode_all, frame_pictures, read_frame
from surgeval.detector.data._problems import OWN, Problems, Tally
from surgeval.detector.data._sampling import repeat_factors
from surgeval.detector.geometry import Fit
from surgeval.errors import BadInput, DataError
from surgeval.records import Frame

if TYPE_CHECKING:
    from surgeval.datasets import Dataset, Problem
    from surgeval.detector._classes import Classes

__all__ = ["TOLERANCE", "Sample", "TrainingSet"]

TOLERANCE = 0.05  # share of frames that may be unreadable before training is refused
GREY, BLACK = 114, 0
MAX_SIZE = 4096


@dataclass(frozen=True, slots=True)
class Sample:
    """One picture as the network sees it."""

    image: Image  # (S, S, 3) RGB
    boxes: Singles  # (n, 4) corners in its pixels
    labels: dict[str, Bools]  # by head, (n, classes)


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """Labelled frames with their boxes in input pixels; `problems` counts what was left out or cut.

    >>> from surgeval.detector._classes import Classes
    >>> from surgeval.records import Box, Instance, Triplet
    >>> from surgeval.vocab import load_labels
    >>> hook = Instance(Triplet(2), Box(32, 24, 64, 48))
    >>> frames = [Frame("V1", str(k), k, None, None, 128, 96, (hook,)) for k in range(4)]
    >>> data = TrainingSet.of(frames, Classes.of(load_labels("cholec80")), image_size=64,
    ...                       read=lambda frame: np.zeros((96, 128, 3), np.uint8))
    >>> len(data), data.sample(0).boxes.tolist(), data.counts.tolist()
    (4, [[16.0, 20.0, 48.0, 44.0]], [0, 0, 4, 0, 0, 0, 0])
    """

    classes: Classes
    image_size: int
    fill: int
    videos: tuple[str, ...]  # of each frame
    names: tuple[str, ...]  # of each frame
    fits: tuple[Fit, ...]
    offsets: Ints  # rows of frame k: offsets[k] to offsets[k + 1]
    boxes: Singles  # (rows, 4) corners in input pixels
    main: Bools = field(repr=False)  # (rows, main classes)
    numbers: Ints = field(repr=False)  # picture of each frame
    pictures: Pictures = field(repr=False)
    problems: Problems = field(default_factory=Problems)

    @classmethod
    def of(
        cls,
        source: Dataset | Iterable[Frame],
        classes: Classes,
        *,
        image_size: int,
        fill: int | None = None,
        videos: Sequence[str] | None = None,
        cache_bytes: int = CACHE_BYTES,
        tolerance: float = TOLERANCE,
        workers: int | None = None,
        read: Read | None = None,
    ) -> TrainingSet:
        """Read the labels and, once, every image of a dataset (or of frames with ids of `classes.space`).

        Frames without labels are left out; frames that were labelled and show nothing are kept, as background. Class
        names decide where the dataset's label space is another than the detector's. `fill` is the grey of the padding:
        black where ProstaTD's labels are used, whose frames come padded in black, else 114. `cache_bytes` of scaled
        pictures stay in memory. More than `tolerance` unreadable frames, or no box at all, is an error.
        """
        check_size(image_size)
        space = source.space if is_dataset(source) else classes.space  # type: ignore[union-attr]
        tally = Tally()
        errors: list[str] = []
        frames, rows = _labelled(source, Reading(classes, space), videos, tally, errors)
        grey = fill if fill is not None else BLACK if space.name == "prostatd" else GREY
        fits = [Fit.of(frame.height, frame.width, image_size) for frame in frames]
        pictures = frame_pictures(frames, fits, read or read_frame)
        broken = set()
        for number, error in decode_all(pictures, fits, cache_bytes, workers):
            tally.add("image-size" if error.field == "size" else "image-broken", _name(frames[number]))
            errors.append(str(error))
            broken.add(number)
        good = [number for number in range(len(frames)) if number not in broken]
        _refuse(errors, len(good), tolerance)
        data = cls(
            classes,
            image_size,
            grey,
            tuple(frames[number].video for number in good),
            tuple(frames[number].name for number in good),
            tuple(fits[number] for number in good),
            np.cumsum([0, *(len(rows[number].boxes) for number in good)]),
            _placed([(rows[number], fits[number]) for number in good], image_size),
            np.concatenate([np.zeros((0, len(classes.heads[classes.main])), bool), *(rows[n].main for n in good)]),
            np.array(good, dtype=np.int64),
            pictures,
        )
        for name, count in zip(classes.heads[classes.main], data.counts, strict=True):
            if not count:
                tally.add("class-absent", name)
        if not len(data.boxes):
            raise DataError(
                getattr(source, "root", "frames"),
                found=f"no box with {_wanted(classes)} in {len(data)} frames ({_reasons(tally)})",
                expected="labelled boxes to learn from",
            )
        return replace(data, problems=tally.problems())

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def counts(self) -> Ints:
        """Boxes of each main class."""
        return self.main.sum(axis=0).astype(np.int64)

    @cached_property
    def present(self) -> Bools:
        """(frames, main classes): which classes a frame shows."""
        frame = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        shown = np.zeros((len(self), self.main.shape[1]), dtype=bool)
        np.logical_or.at(shown, frame, self.main)
        return shown

    @cached_property
    def fingerprint(self) -> str:
        """A hash of what is learned: frames, boxes, classes and geometry; pictures by name and size."""
        digest = hashlib.sha256(json.dumps([self.classes.to_json(), self.image_size, self.fill]).encode())
        for video, name, fit in zip(self.videos, self.names, self.fits, strict=True):
            digest.update(f"{video}\0{name}\0{fit}\n".encode("utf-8", "surrogatepass"))
        for array in (self.offsets, self.boxes, np.packbits(self.main)):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def name(self, index: int) -> str:
        """`video/frame`: how messages and batches call a frame."""
        return f"{self.videos[index]}/{self.names[index]}"

    def subset(self, indices: Sequence[int] | Ints) -> TrainingSet:
        """Some of the frames, in this order, with the same pictures in memory."""
        chosen = np.asarray(indices, dtype=np.int64)
        rows = [np.arange(self.offsets[k], self.offsets[k + 1]) for k in chosen]
        picked = np.concatenate([np.zeros(0, np.int64), *rows])
        return replace(
            self,
            videos=tuple(self.videos[k] for k in chosen),
            names=tuple(self.names[k] for k in chosen),
            fits=tuple(self.fits[k] for k in chosen),
            offsets=np.cumsum([0, *(len(row) for row in rows)]),
            boxes=self.boxes[picked],
            main=self.main[picked],
            numbers=self.numbers[chosen],
        )

    def of_videos(self, videos: Iterable[str]) -> TrainingSet:
        """The frames of some videos: a fold, without reading anything again."""
        wanted = set(videos)
        unknown = wanted - set(self.videos)
        if unknown:
            raise BadInput(f"videos: found {sorted(unknown)[0]!r}, expected videos with labelled frames")
        return self.subset([k for k, video in enumerate(self.videos) if video in wanted])

    def sample(self, index: int, epoch: int = 0, seed: int = 0, augment: Augment = PLAIN, repeat: int = 0) -> Sample:
        """One picture, augmented; `repeat` counts how often the epoch has shown this frame before."""
        drawn = draw(augment, seed, epoch, index, repeat)
        chosen = [index]
        if drawn.mosaic:
            places = np.searchsorted(self._places(augment.partners, augment.threshold), drawn.partners, side="right")
            chosen += np.minimum(places, len(self) - 1).tolist()
        tiles = [self._tile(number) for number in chosen]
        image, boxes, main = compose(tiles, drawn, augment, self.image_size, self.fill)
        return Sample(image, boxes, head_labels(main, self.classes))

    def _tile(self, index: int) -> Tile:
        fit, rows = self.fits[index], slice(self.offsets[index], self.offsets[index + 1])
        corner = np.array([fit.left, fit.top] * 2, dtype=np.float32)
        return Tile(self.pictures[int(self.numbers[index])], self.boxes[rows] - corner, self.main[rows],
                    (fit.left, fit.top))  # fmt: skip

    def _places(self, sampling: Sampling, threshold: float) -> Floats:
        """Cumulated shares of all frames: where a number in [0, 1) falls, that frame is chosen."""
        key = (sampling, threshold)
        if key not in self._cumulated:
            factors = np.cumsum(repeat_factors(self.present, sampling, threshold=threshold))
            self._cumulated[key] = factors / factors[-1]
        return self._cumulated[key]

    @cached_property
    def _cumulated(self) -> dict[tuple[str, float], Floats]:
        return {}


def is_dataset(source: object) -> bool:
    """Whether this is a dataset rather than frames."""
    return hasattr(source, "videos") and hasattr(source, "space")


def check_size(image_size: int) -> None:
    """The network halves its input five times."""
    if not 32 <= image_size <= MAX_SIZE or image_size % 32:
        raise BadInput(f"image size: found {image_size}, expected a multiple of 32 from 32 to {MAX_SIZE}")


def _labelled(
    source: Dataset | Iterable[Frame],
    reading: Reading,
    videos: Sequence[str] | None,
    tally: Tally,
    errors: list[str],
) -> tuple[list[Frame], list[Rows]]:
    """The frames that can be learned from, and their rows."""

    def note(problem: Problem) -> None:
        if problem.kind not in OWN:
            tally.add(problem.kind, problem.record or problem.file)
        if problem.level == "error":
            errors.append(str(problem))

    frames, rows = [], []
    for frame in _frames(source, videos, note):
        if not frame.labelled:
            tally.add("frame-unlabelled", _name(frame))
            continue
        found = reading.rows(frame, tally)
        if found is not None:
            frames.append(frame)
            rows.append(found)
    return frames, rows


def _frames(
    source: Dataset | Iterable[Frame], videos: Sequence[str] | None, note: Callable[[Problem], None]
) -> Iterator[Frame]:
    if not is_dataset(source):
        wanted = None if videos is None else set(videos)
        yield from (frame for frame in source if wanted is None or frame.video in wanted)  # type: ignore[union-attr]
        return
    known = [video.name for video in source.videos(note)]  # type: ignore[union-attr]
    for video in known if videos is None else videos:
        if video not in known:
            raise BadInput(f"{source.root}: found no video {video!r}, expected one of {', '.join(known)}")  # type: ignore[union-attr]
        yield from source.frames(video, note)  # type: ignore[union-attr]


def _name(frame: Frame) -> str:
    return f"{frame.video}/{frame.name}"


def _placed(parts: Sequence[tuple[Rows, Fit]], size: int) -> Singles:
    """All boxes in input pixels."""
    boxes = [fit.forward(found.boxes) for found, fit in parts]
    return np.concatenate([np.zeros((0, 4)), *boxes]).clip(0, size).astype(np.float32)


def _refuse(errors: Sequence[str], good: int, tolerance: float) -> None:
    """Too much that cannot be read is no dataset to train on."""
    if errors and len(errors) > tolerance * (good + len(errors)):
        raise BadInput(
            f"training data: found {len(errors)} unreadable labels or images beside {good} good frames, expected at "
            f"most {tolerance:.0%}; the first: {'; '.join(errors[:3])}"
        )


def _wanted(classes: Classes) -> str:
    return "a known triplet" if classes.main == "ivt" else "a known instrument"


def _reasons(tally: Tally) -> str:
    lines = [line for line in tally.problems().lines() if not line.endswith("cannot learn them")]
    return "; ".join(line.split(" (")[0] for line in lines) or "every frame is labelled as empty"
