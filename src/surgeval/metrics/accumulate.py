"""Accumulators for streaming batches: they hold what was seen and call the functions when asked.

Feed them from a data loader in any batch size; the numbers do not depend on how frames were batched, nor on whether
videos arrive whole or interleaved.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from surgeval.arrays import AnyArray, Ints
from surgeval.errors import BadInput
from surgeval.metrics.boxes import Boxes, DetectionSet
from surgeval.metrics.detection import DetectionResult, evaluate_detection
from surgeval.metrics.recognition import RecognitionResult, evaluate_recognition
from surgeval.metrics.visit import Convention, Ties
from surgeval.vocab import LabelSpace

__all__ = ["DetectionAccumulator", "RecognitionAccumulator"]

FrameVideos: TypeAlias = list[Any] | AnyArray


class RecognitionAccumulator:
    """Per-frame labels and scores of one label space, batch by batch.

    >>> metric = RecognitionAccumulator()
    >>> metric.update(np.array([[0.9, 0.2], [0.3, 0.8]]), np.array([[1, 0], [0, 1]]), "VID68")
    >>> metric.compute()["ivt"].mAP
    1.0
    """

    def __init__(self, space: LabelSpace | None = None, components: Sequence[str] = ("ivt",)) -> None:
        self.space, self.components = space, tuple(components)
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self._videos: dict[Hashable, int] = {}
        self._parts: list[tuple[Ints, AnyArray, AnyArray]] = []

    @property
    def videos(self) -> tuple[Hashable, ...]:
        """Names of the videos seen, in order of first appearance: the rows of `per_video`."""
        return tuple(self._videos)

    def update(self, predictions: npt.ArrayLike, targets: npt.ArrayLike, videos: Hashable | FrameVideos) -> None:
        """Add frames × classes scores and labels; `videos` is the one that all frames are of, or a list of each's."""
        labels, values = np.atleast_2d(np.asarray(targets)), np.atleast_2d(np.asarray(predictions))
        if labels.shape != values.shape or (self._parts and labels.shape[1] != self._parts[0][1].shape[1]):
            raise BadInput(
                f"found predictions {values.shape} and targets {labels.shape}, "
                "expected two arrays of the same shape and as many classes as before"
            )
        self._parts.append((_numbered(videos, len(labels), self._videos), labels, values))

    def compute(self) -> dict[str, RecognitionResult]:
        """Results of all components over what was seen so far."""
        if not self._parts:
            raise BadInput("recognition: found no frames, expected update() before compute()")
        return evaluate_recognition(
            np.concatenate([part[2] for part in self._parts]),
            np.concatenate([part[1] for part in self._parts]),
            np.concatenate([part[0] for part in self._parts]),
            space=self.space,
            components=self.components,
        )


class DetectionAccumulator:
    """Boxes frame by frame; `n_classes` maps each scored component to its number of classes.

    >>> metric = DetectionAccumulator({"i": 7})
    >>> box = Boxes.of([0], {"i": [2]}, [[0, 0, 10, 10]])
    >>> metric.update(box, box, "psiv1")
    >>> metric.compute()["i"].overall.mAP
    1.0
    """

    def __init__(self, n_classes: Mapping[str, int]) -> None:
        self.n_classes = dict(n_classes)
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self._videos: dict[Hashable, int] = {}
        self._frame_video: list[int] = []
        self._targets: list[Boxes] = []
        self._predictions: list[Boxes] = []

    @property
    def videos(self) -> tuple[Hashable, ...]:
        """Names of the videos seen, in order of first appearance."""
        return tuple(self._videos)

    def update(
        self, predictions: Boxes, targets: Boxes, videos: Hashable | FrameVideos, *, n_frames: int | None = None
    ) -> None:
        """Add a batch of new frames, which the boxes number from 0.

        `videos` is the one that all of them are of, or a list of each frame's. `n_frames` says how many frames the
        batch has when its last ones may be without any box.
        """
        needed = 1 + max(int(targets.frame.max(initial=-1)), int(predictions.frame.max(initial=-1)))
        listed = len(videos) if isinstance(videos, list | np.ndarray) else needed
        frames = listed if n_frames is None else n_frames
        if frames < needed:
            raise BadInput(f"found a box in frame {needed - 1}, expected fewer than {frames} frames")
        offset = len(self._frame_video)
        self._frame_video += _numbered(videos, frames, self._videos).tolist()
        for store, boxes in ((self._targets, targets), (self._predictions, predictions)):
            store.append(boxes.take(np.arange(len(boxes)), boxes.frame + offset))

    def data(self) -> DetectionSet:
        """Everything seen so far as one table."""
        return DetectionSet.of(
            self._joined(self._predictions),
            self._joined(self._targets),
            np.array(self._frame_video, dtype=np.int64),
            n_videos=len(self._videos),
        )

    def compute(
        self, convention: Convention | None = None, *, ties: Ties | None = None, **options: Any
    ) -> DetectionResult:
        """`evaluate` over what was seen so far."""
        return evaluate_detection(self.data(), self.n_classes, convention=convention, ties=ties, **options)

    def _joined(self, parts: list[Boxes]) -> Boxes:
        nothing = Boxes.of([], dict.fromkeys(self.n_classes, ()), [])
        full = [part for part in parts if len(part)]
        for part in full:
            missing = set(self.n_classes) - set(part.classes)
            if missing:
                raise BadInput(f"boxes: found no classes for {', '.join(sorted(missing))}, expected one id per box")
        if not full:
            return nothing
        return Boxes(
            np.concatenate([part.frame for part in full]),
            {name: np.concatenate([part.classes[name] for part in full]) for name in self.n_classes},
            np.concatenate([part.score for part in full]),
            np.concatenate([part.xywh for part in full]),
        )


def _numbered(videos: Hashable | FrameVideos, frames: int, seen: dict[Hashable, int]) -> Ints:
    """The number of each frame's video; one that was not seen before gets the next."""
    each = list(videos) if isinstance(videos, list | np.ndarray) else [videos] * frames
    if len(each) != frames:
        raise BadInput(f"videos: found {len(each)}, expected one for each of the {frames} frames")
    try:
        for name in dict.fromkeys(each):
            seen.setdefault(name, len(seen))
    except TypeError as error:
        raise BadInput("videos: found what is no name, expected one, or a list with one for each frame") from error
    return np.array([seen[name] for name in each], dtype=np.int64)
