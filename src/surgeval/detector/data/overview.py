"""What a training set holds, before an hour is spent on it: a picture of labelled frames, and a table of classes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import cv2
import numpy as np

from surgeval.arrays import Image
from surgeval.detector.data.augment import PLAIN, Augment
from surgeval.detector.data.training_set import TrainingPicture, TrainingSet
from surgeval.errors import BadInput

__all__ = ["ClassRow", "class_table", "label_mosaic", "told_problems"]

# One colour per class in turn, bright against red tissue (RGB).
_COLOURS = ((0, 255, 255), (255, 255, 0), (0, 255, 80), (80, 160, 255), (255, 120, 255), (255, 255, 255),
            (255, 170, 0), (160, 255, 160), (190, 140, 255), (0, 200, 200))  # fmt: skip
_MOST = 400  # frames in one picture
_NAMED = 5  # classes named in a sentence


@dataclass(frozen=True, slots=True)
class ClassRow:
    """One class: how many boxes it has, in how many frames of how many videos."""

    name: str
    boxes: int
    frames: int
    videos: int


def class_table(data: TrainingSet) -> list[ClassRow]:
    """A row for every class of the main head, in the order of its ids; classes without a box are there too.

    >>> from surgeval.detector.data import toy_set
    >>> class_table(toy_set(5, videos=2))[1:3]
    [ClassRow(name='Bipolar', boxes=0, frames=0, videos=0), ClassRow(name='Hook', boxes=5, frames=5, videos=2)]
    """
    _, video = np.unique(np.array(data.videos), return_inverse=True)
    rows = []
    for number, name in enumerate(data.classes.heads[data.classes.main]):
        shown = data.present[:, number]
        rows.append(ClassRow(name, int(data.counts[number]), int(shown.sum()), len(np.unique(video[shown]))))
    return rows


def told_problems(train: TrainingSet, validation: TrainingSet | None = None) -> list[str]:
    """What was left out, cut or found odd in both sets, a sentence each, and which classes only validation shows.

    >>> from surgeval.detector.data import toy_set
    >>> told_problems(toy_set(2))
    ['6 classes without a box: the detector cannot learn them (Grasper, Bipolar, Scissors, Clipper, Irrigator, …)']
    """
    told = list(train.problems.lines())
    if validation is None:
        return told
    told += [f"validation: {line}" for line in validation.problems.having("class-absent", ()).lines()]
    heads = train.classes.heads[train.classes.main]
    strange = [heads[number] for number in np.flatnonzero((validation.counts > 0) & (train.counts == 0)).tolist()]
    if strange:
        names = ", ".join(strange[:_NAMED]) + (", …" if len(strange) > _NAMED else "")
        told.append(
            f"classes that only the validation videos show: {len(strange)} ({names}); they cannot be learnt and lower "
            "its mAP"
        )
    return told


def label_mosaic(data: TrainingSet, count: int = 16, *, augment: Augment = PLAIN, seed: int = 0) -> Image:
    """`count` frames as the network sees them, with their boxes and class names, in one RGB picture.

    They are spread evenly over the data; frames with boxes come first. With an augmentation they show what it does.

    >>> from surgeval.detector.data import toy_set
    >>> label_mosaic(toy_set(5), 4).shape
    (128, 128, 3)
    """
    if not 1 <= count <= _MOST:
        raise BadInput(f"label mosaic: found {count} frames, expected 1 to {_MOST}")
    boxed = np.flatnonzero(np.diff(data.offsets))
    pool = boxed if len(boxed) >= count else np.arange(len(data))
    indices = pool[np.unique(np.linspace(0, len(pool) - 1, min(count, len(pool))).round().astype(np.int64))]
    columns = math.ceil(math.sqrt(len(indices)))
    size = data.image_size
    sheet = np.zeros((math.ceil(len(indices) / columns) * size, columns * size, 3), dtype=np.uint8)
    for position, index in enumerate(indices.tolist()):
        row, column = divmod(position, columns)
        tile = _drawn(data.sample(index, 0, seed, augment), data)
        _text(tile, data.name(index), (4, size - 6), size, (255, 255, 255))
        sheet[row * size : (row + 1) * size, column * size : (column + 1) * size] = tile
    return sheet


def _drawn(sample: TrainingPicture, data: TrainingSet) -> Image:
    canvas, names = sample.image.copy(), data.classes.heads[data.classes.main]
    for box, marks in zip(sample.boxes, sample.labels[data.classes.main], strict=True):
        numbers = np.flatnonzero(marks).tolist()
        colour = _COLOURS[numbers[0] % len(_COLOURS)]
        x1, y1, x2, y2 = (round(float(value)) for value in box)
        cv2.rectangle(canvas, (x1, y1), (x2 - 1, y2 - 1), colour, max(1, data.image_size // 320))
        _text(canvas, " + ".join(names[number] for number in numbers), (x1 + 2, max(y1 - 3, 10)),
              data.image_size, colour)  # fmt: skip
    return canvas


def _text(canvas: Image, text: str, at: tuple[int, int], size: int, colour: tuple[int, int, int]) -> None:
    """Text large enough to be read where sixteen tiles share a page, moved left where it would leave its tile."""
    plain, scale = text.encode("ascii", "replace").decode(), max(0.3, size / 1000)
    thin = max(1, round(size / 400))
    (length, _), _ = cv2.getTextSize(plain, cv2.FONT_HERSHEY_SIMPLEX, scale, thin)
    start = (max(2, min(at[0], size - length - 2)), at[1])
    for shade, width in (((0, 0, 0), thin + 2), (colour, thin)):
        cv2.putText(canvas, plain, start, cv2.FONT_HERSHEY_SIMPLEX, scale, shade, width, cv2.LINE_AA)
