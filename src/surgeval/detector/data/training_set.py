"""`TrainingSet`: the labelled frames of any dataset as a detector learns them.

Labels are held as arrays in pixels of the detector's input; pictures are held as far as memory allows. What a sample
looks like depends on (seed, epoch, index) and the settings alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from surgeval.arrays import Bools, Floats, Image, Ints, Singles
from surgeval.detector.data.augment import PLAIN, Augment, Sampling, Tile, compose, draw
from surgeval.detector.data.labels import Rows, head_labels, memberships
from surgeval.detector.data.pictures import CACHE_BYTES, Read, ScaledPictures, decode_all, frame_pictures
from surgeval.detector.data.problems import Problems
from surgeval.detector.data.reading import FrameReader
from surgeval.detector.data.sampling import repeat_factors
from surgeval.detector.data.source import read_labels
from surgeval.detector.geometry import Fit
from surgeval.errors import BadInput
from surgeval.records import Frame

if TYPE_CHECKING:
    from surgeval.datasets import Dataset
    from surgeval.detector.classes import Classes

__all__ = ["TOLERANCE", "TrainingPicture", "TrainingSet"]

TOLERANCE = 0.05  # share of frames that may be unreadable before training is refused
GREY, BLACK = 114, 0
MAX_SIZE = 4096


@dataclass(frozen=True, slots=True)
class TrainingPicture:
    """One picture as the network sees it."""

    image: Image  # (S, S, 3) RGB
    boxes: Singles  # (n, 4) corners in its pixels
    labels: dict[str, Bools]  # by head, (n, classes)


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """Labelled frames with their boxes in input pixels; `problems` counts what was left out or cut.

    >>> from surgeval.detector.classes import Classes
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
    pictures: ScaledPictures = field(repr=False)
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

        Kept: labelled frames, those that show nothing as background. Boxes are cut at the frame's edge; instances of
        one instrument on the same box become one box with several classes; outlines give boxes where there are none.

        Left out and counted in `problems`: frames without labels, frames with an instrument that has no box, frames
        whose image is missing, broken or of another size than the labels say; boxes without area, boxes of a triplet or
        instrument that the detector does not know (found by name where the label spaces differ). What the dataset's
        reader says is counted beside it.

        Refused: more than `tolerance` labels or images that cannot be read, and data without a single box.

        `fill` is the grey of the padding: by default black for ProstaTD's labels, whose frames come padded in black,
        else 114. Scaled pictures stay in memory up to `cache_bytes`. `read` gives a frame's pixels (its labels taken
        off), by default those of its image or video file.
        """
        if fill is not None and not 0 <= fill <= 255:
            raise BadInput(f"fill: found {fill}, expected 0 to 255")
        check_size(image_size)
        labelled = read_labels(source, classes, videos)
        fits = [Fit.of(frame.height, frame.width, image_size) for frame in labelled.frames]
        pictures = frame_pictures(labelled.frames, fits, read or FrameReader())
        broken = set()
        for number, error in decode_all(pictures, fits, cache_bytes, workers):
            labelled.left_out(number, error)
            broken.add(number)
        good = [number for number in range(len(fits)) if number not in broken]
        labelled.refuse_broken(len(good), tolerance)
        data = cls(
            classes=classes,
            image_size=image_size,
            fill=fill if fill is not None else BLACK if labelled.space.name == "prostatd" else GREY,
            videos=tuple(labelled.frames[number].video for number in good),
            names=tuple(labelled.frames[number].name for number in good),
            fits=tuple(fits[number] for number in good),
            offsets=np.cumsum([0, *(len(labelled.rows[number].boxes) for number in good)]),
            boxes=_placed([(labelled.rows[number], fits[number]) for number in good], image_size),
            main=np.concatenate([_no_rows(classes), *(labelled.rows[number].main for number in good)]),
            numbers=np.array(good, dtype=np.int64),
            pictures=pictures,
        )
        if not len(data.boxes):
            labelled.refuse_boxless(len(good), classes)
        return replace(data, problems=labelled.tally.problems())._with_absent_classes()

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def counts(self) -> Ints:
        """Boxes of each main class."""
        return np.asarray(self.main.sum(axis=0), dtype=np.int64)

    @cached_property
    def present(self) -> Bools:
        """(frames, main classes): which classes a frame shows."""
        frame = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        rows, classes = np.nonzero(self.main)
        shown = np.zeros((len(self), self.main.shape[1]), dtype=bool)
        shown[frame[rows], classes] = True
        return shown

    @cached_property
    def labels_per_box(self) -> int:
        """The most classes that one head marks on one box."""
        marks = head_labels(self.main, self._heads).values()
        return max((int(rows.sum(axis=1).max(initial=1)) for rows in marks), default=1)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of what is learned: frames, boxes, classes and geometry; of the pictures only name and size."""
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
        """Some of the frames, in this order, with the same pictures in memory.

        Its `problems` are those of the whole, but for the classes that have no box here.
        """
        wanted = np.asarray(indices, dtype=np.int64)
        rows = [np.arange(self.offsets[k], self.offsets[k + 1]) for k in wanted]
        picked = np.concatenate([np.zeros(0, np.int64), *rows])
        part = replace(
            self,
            videos=tuple(self.videos[k] for k in wanted),
            names=tuple(self.names[k] for k in wanted),
            fits=tuple(self.fits[k] for k in wanted),
            offsets=np.cumsum([0, *(len(row) for row in rows)]),
            boxes=self.boxes[picked],
            main=self.main[picked],
            numbers=self.numbers[wanted],
        )
        return part._with_absent_classes()

    def _with_absent_classes(self) -> TrainingSet:
        names = zip(self.classes.heads[self.classes.main], self.counts, strict=True)
        absent = [name for name, count in names if not count]
        return replace(self, problems=self.problems.having("class-absent", absent))

    def of_videos(self, videos: Iterable[str]) -> TrainingSet:
        """The frames of some videos: a fold, without reading anything again."""
        wanted = set(videos)
        unknown = wanted - set(self.videos)
        if unknown:
            raise BadInput(f"videos: found {sorted(unknown)[0]!r}, expected videos with labelled frames")
        return self.subset([k for k, video in enumerate(self.videos) if video in wanted])

    def sample(
        self, index: int, epoch: int = 0, seed: int = 0, augment: Augment = PLAIN, repeat: int = 0
    ) -> TrainingPicture:
        """One picture, augmented; `repeat` counts how often the epoch has shown this frame before."""
        drawn = draw(augment, seed, epoch, index, repeat)
        numbers = [index]
        if drawn.mosaic:
            places = np.searchsorted(self._places(augment.partners, augment.threshold), drawn.partners, side="right")
            numbers += np.minimum(places, len(self) - 1).tolist()
        tiles = [self._tile(number) for number in numbers]
        image, boxes, main = compose(tiles, drawn, augment, self.image_size, self.fill)
        return TrainingPicture(image, boxes, head_labels(main, self._heads))

    def _tile(self, index: int) -> Tile:
        fit, rows = self.fits[index], slice(self.offsets[index], self.offsets[index + 1])
        return Tile(self.pictures[int(self.numbers[index])], self._tile_boxes[rows], self.main[rows],
                    (fit.left, fit.top))  # fmt: skip

    def _places(self, sampling: Sampling, threshold: float) -> Floats:
        """Cumulated shares of all frames: where a number in [0, 1) falls, that frame is chosen."""
        key = (sampling, threshold)
        if key not in self._cumulated:
            factors = np.cumsum(repeat_factors(self.present, sampling, threshold=threshold))
            self._cumulated[key] = factors / factors[-1]
        return self._cumulated[key]

    @cached_property
    def _tile_boxes(self) -> Singles:
        """Boxes in pixels of the scaled frame, before it is padded."""
        corners = np.array([(fit.left, fit.top) * 2 for fit in self.fits], dtype=np.float32).reshape(-1, 4)
        return self.boxes - np.repeat(corners, np.diff(self.offsets), axis=0)

    @cached_property
    def _heads(self) -> dict[str, Bools | None]:
        return memberships(self.classes)

    @cached_property
    def _cumulated(self) -> dict[tuple[str, float], Floats]:
        return {}


def check_size(image_size: int) -> None:
    """The network halves its input five times."""
    if not 32 <= image_size <= MAX_SIZE or image_size % 32:
        raise BadInput(f"image size: found {image_size}, expected a multiple of 32 from 32 to {MAX_SIZE}")


def _placed(parts: Sequence[tuple[Rows, Fit]], size: int) -> Singles:
    """All boxes in input pixels."""
    boxes = [fit.forward(rows.boxes) for rows, fit in parts]
    return np.concatenate([np.zeros((0, 4)), *boxes]).clip(0, size).astype(np.float32)


def _no_rows(classes: Classes) -> Bools:
    return np.zeros((0, len(classes.heads[classes.main])), dtype=bool)
