"""How good a detector is on a set of labelled frames: mAP50 and mAP50:95 of triplets, instruments, verbs and targets.

The protocol is one for every detector: confidence from 0.001, several classes per box, NMS at 0.7 by class, at most 300
boxes. Instrument, verb and target of a box follow from its triplet. The matching and averaging are those of
`surgeval.metrics` where no convention is named (as `coco`, equal scores in any order), over all frames together.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from surgeval.arrays import Floats
from surgeval.detector.classes import Classes
from surgeval.detector.data import PLAIN, PictureProcesses, TrainingSet, batches
from surgeval.detector.interface import Raw
from surgeval.detector.nms import Found, Selecting, select
from surgeval.metrics import Boxes, DetectionSet, mean_of, pooled, rank_detections

__all__ = ["Evaluated", "Forward", "evaluate_detector", "fitness"]

Forward = Callable[[torch.Tensor], Raw]  # bytes (B, 3, S, S) on the device → every candidate box
_COLUMN = {"i": 0, "v": 1, "t": 2}
_MAIN = "main"


@dataclass(frozen=True)
class Evaluated:
    """The means over classes, by component; nan where a component has no ground truth."""

    main: str
    at50: Mapping[str, float]  # mAP50
    averaged: Mapping[str, float]  # mAP50:95
    frames: int
    boxes: int  # predicted
    seconds: float

    @property
    def fitness(self) -> float:
        """What the best epoch is chosen by: 0.1 · mAP50 + 0.9 · mAP50:95 of the main component."""
        return fitness(self.at50[self.main], self.averaged[self.main])

    def row(self) -> dict[str, float]:
        """The numbers by name: those of the main component first, the others with their letter before them."""
        named = {"mAP50": self.at50[self.main], "mAP50:95": self.averaged[self.main]}
        for part in self.at50:
            if part != self.main:
                named |= {f"{part} mAP50": self.at50[part], f"{part} mAP50:95": self.averaged[part]}
        return named


def fitness(map50: float, map50_95: float) -> float:
    """0.1 · mAP50 + 0.9 · mAP50:95; 0 where there is nothing to find.

    >>> round(fitness(0.5, 0.25), 3), fitness(float("nan"), float("nan"))
    (0.275, 0.0)
    """
    value = 0.1 * map50 + 0.9 * map50_95
    return value if value == value else 0.0


def evaluate_detector(
    look: Forward,
    data: TrainingSet,
    classes: Classes,
    *,
    device: torch.device | str = "cpu",
    selecting: Selecting | None = None,
    batch: int = 16,
    workers: int | PictureProcesses = 0,
    advance: Callable[[int], None] = lambda _count: None,
) -> Evaluated:
    """Show a detector every frame of a set, as it is, and score what it finds.

    >>> from surgeval.detector.data import toy_set
    >>> data = toy_set(1)
    >>> def knowing(images):  # finds the hook, which the letterbox halves and moves down
    ...     return Raw(torch.tensor([[[16.0, 20.0, 48.0, 44.0]]]), {"i": torch.eye(7)[None, 2:3]})
    >>> evaluate_detector(knowing, data, data.classes).row()
    {'mAP50': 1.0, 'mAP50:95': 1.0}
    """
    began = time.perf_counter()
    rule = selecting or Selecting()
    pinned = torch.device(device).type == "cuda"
    detections: list[Found] = []
    for part in batches(data, batch=batch, augment=PLAIN, workers=workers, pin=pinned):
        with torch.inference_mode():
            raw = look(part.images.to(device, non_blocking=pinned))
            main = {classes.main: raw.probabilities[classes.main]}
            for selected, index in zip(
                select(raw.boxes, main, classes.main, classes.parts, rule), part.indices, strict=True
            ):
                corners = data.fits[index].back(selected.boxes.cpu().double())
                detections.append(Found(corners, selected.scores.cpu(), selected.classes.cpu(), {}))
        advance(len(part.frames))
    scores = _score(data, detections, classes)
    count = sum(len(frame) for frame in detections)
    at50 = {name: pair[0] for name, pair in scores.items()}
    averaged = {name: pair[1] for name, pair in scores.items()}
    return Evaluated(classes.main, at50, averaged, len(detections), count, time.perf_counter() - began)


def _score(data: TrainingSet, detections: Sequence[Found], classes: Classes) -> dict[str, tuple[float, float]]:
    """mAP50 and mAP50:95 of each component; the frames count as one video, since they are ranked together."""
    truth, predicted = _truth(data), _predicted(detections)
    result = {}
    for component in (name for name in ("ivt", "i", "v", "t") if name in classes.heads):
        sides = [_named(boxes, component, classes) for boxes in (truth, predicted)]
        compared = DetectionSet.of(sides[1], sides[0], np.zeros(len(detections), np.int64))
        ranked = rank_detections(compared, component, len(classes.heads[component]))
        ap, _ = pooled(ranked, np.ones(ranked.n_videos), "coco")
        result[component] = mean_of(ap[:, 0]), mean_of(ap[:, list(ranked.averaged)].mean(axis=1))
    return result


def _truth(data: TrainingSet) -> Boxes:
    """A row for every main class that holds on a box, in pixels of its frame."""
    counts = np.diff(data.offsets)
    row, ids = np.nonzero(data.main)
    corners = [
        fit.back(part.astype(np.float64))
        for fit, part in zip(data.fits, np.split(data.boxes, data.offsets[1:-1]), strict=True)
    ]
    frame = np.repeat(np.arange(len(data)), counts)[row]
    return Boxes(frame, {_MAIN: ids}, np.ones(len(row)), _sizes(np.concatenate(corners)[row]))


def _predicted(detections: Sequence[Found]) -> Boxes:
    corners = np.concatenate([frame.boxes.numpy() for frame in detections]).reshape(-1, 4)
    ids = np.concatenate([frame.classes.numpy() for frame in detections]).astype(np.int64)
    score = np.concatenate([frame.scores.double().numpy() for frame in detections])
    return Boxes(
        np.repeat(np.arange(len(detections)), [len(frame) for frame in detections]),
        {_MAIN: ids},
        score,
        _sizes(corners),
    )


def _named(boxes: Boxes, component: str, classes: Classes) -> Boxes:
    """The boxes by their class in a component, which follows from the main class."""
    ids = boxes.classes[_MAIN]
    ids = ids if component == classes.main else classes.parts[ids, _COLUMN[component]]
    known = ids >= 0
    return Boxes(boxes.frame[known], {component: ids[known]}, boxes.score[known], boxes.xywh[known])


def _sizes(corners: Floats) -> Floats:
    return np.concatenate([corners[:, :2], corners[:, 2:] - corners[:, :2]], axis=1)
