"""A training set of a few frames, made in a moment: to try a function, a folder or a training on."""

from __future__ import annotations

import numpy as np

from surgeval.detector.classes import Classes
from surgeval.detector.data.training_set import TrainingSet
from surgeval.errors import BadInput
from surgeval.records import Box, Frame, Instance, Triplet
from surgeval.vocab import load_labels

__all__ = ["toy_set"]

_WIDTH, _HEIGHT = 128, 96


def toy_set(frames: int = 5, *, videos: int = 1, image_size: int = 64) -> TrainingSet:
    """Plain frames, each a shade lighter than the one before, with a hook in the middle: Cholec80's classes.

    >>> data = toy_set(5, videos=2)
    >>> data.videos, data.counts.tolist()
    (('V1', 'V2', 'V1', 'V2', 'V1'), [0, 0, 5, 0, 0, 0, 0])
    """
    if not (0 <= frames <= 256 and videos >= 1):
        raise BadInput(f"toy set: found {frames} frames of {videos} videos, expected at most 256 of at least 1")
    hook = Instance(Triplet(2), Box(32, 24, 64, 48))
    shown = [Frame(f"V{k % videos + 1}", str(k), k, None, None, _WIDTH, _HEIGHT, (hook,)) for k in range(frames)]
    return TrainingSet.of(
        shown, Classes.of(load_labels("cholec80")), image_size=image_size,
        read=lambda frame: np.full((_HEIGHT, _WIDTH, 3), frame.index, np.uint8),
    )  # fmt: skip
