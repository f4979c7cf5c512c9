"""How good a detector is on a set of labelled frames: mAP50 and mAP50:95 of triplets, instruments, verbs and targets.

The protocol is one for every detector: confidence from 0.001, several classes per box, NMS at 0.7 by class, at most 300
boxes. Instrument, verb and target of a box follow from its triplet. The matching and averaging are those of
`surgeval.metrics` (convention `coco`), over all frames together.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch

from surgeval.arrays import Ints
from surgeval.detector._classes import Classes
from surgeval.detector.assign import Truth
from surgeval.detector.data import PLAIN, TrainingSet, batches
from surgeval.detector.inference import Raw
from surgeval.detector.nms import Found, Selecting, select
from surgeval.metrics import Boxes, DetectionSet, mean_of, pooled, rank_detections

__all__ = ["Evaluated", "Look", "evaluate", "fitness"]

Look = Callable[[torch.Tensor], Raw]  # bytes (B, 3, S, S) on the device → every candidate box
_COLUMN = {"i": 0, "v": 1, "t": 2}


@dataclass(frozen=True)
class Evaluated:
    """The means over classes, by component; nan where a component has no ground truth."""

    main: str
    mAP50: Mapping[str, float]
    mAP50_95: Mapping[str, float]
    frames: int
    boxes: int  # predicted
    seconds: float

    @property
    def fitness(self) -> float:
        """What the best epoch is chosen by: 0.1 · mAP50 + 0.9 · mAP50:95 of the main component."""
        return fitness(self.mAP50[self.main], self.mAP50_95[self.main])

    def row(self) -> dict[str, float]:
        """The numbers by name: those of the main component first, the others with their letter before them."""
        named = {"mAP50": self.mAP50[self.main], "mAP50:95": self.mAP50_95[self.main]}
        for part in self.mAP50:
            if part != self.main:
                named |= {f"{part} mAP50": self.mAP50[part], f"{part} mAP50:95": self.mAP50_95[part]}
        return named


def fitness(map50: float, map50_95: float) -> float:
    """0.1 · mAP50 + 0.9 · mAP50:95; 0 where there is nothing to find.

    >>> round(fitness(0.5, 0.25), 3), fitness(float("nan"), float("nan"))
    (0.275, 0.0)
    """
    value = 0.1 * map50 + 0.9 * map50_95
    return value if value == value else 0.0


def evaluate(
    look: Look,
    data: TrainingSet,
    classes: Classes,
    *,
    device: torch.device | str = "cpu",
    selecting: Selecting | None = None,
    batch: int = 16,
    workers: int | None = None,
    advance: Callable[[int], None] = lambda _count: None,
) -> Evaluated:
    """Show a detector every frame of a set, as it is, and score what it finds.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from surgeval.detector.data.examples import coloured_frames
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     data = coloured_frames(Path(folder), frames=4)
    ...     heads = {head: len(names) for head, names in data.classes.heads.items()}
    ...     blind = lambda images: Raw(torch.zeros(len(images), 1, 4),
    ...                                {head: torch.zeros(len(images), 1, n) for head, n in heads.items()})
    ...     evaluate(blind, data, data.classes).row()["mAP50"]
    0.0
    """
    began = time.perf_counter()
    chosen, parts = selecting or Selecting(), torch.as_tensor(classes.parts.copy(), device=device)
    truths: list[Truth] = []
    found: list[Found] = []
    order = np.arange(len(data))
    for part in batches(data, batch=batch, epoch=0, seed=0, augment=PLAIN, order=order, workers=workers):
        with torch.inference_mode():
            raw = look(part.images.to(device, non_blocking=True))
            for one in select(raw.boxes, dict(raw.probabilities), classes.main, parts, chosen):
                found.append(Found(one.boxes.cpu(), one.scores.cpu(), one.classes.cpu(), {}))
        truths.append(part.truth)
        advance(len(part.frames))
    scores = _score(list(_frames(truths)), found, classes)
    count = sum(len(one.scores) for one in found)
    return Evaluated(
        classes.main, {name: pair[0] for name, pair in scores.items()}, {name: pair[1] for name, pair in scores.items()},
        len(found), count, time.perf_counter() - began,
    )  # fmt: skip


def _frames(truths: list[Truth]) -> Iterator[tuple[torch.Tensor, Mapping[str, torch.Tensor]]]:
    """Boxes and labels of each frame, without the padding."""
    for truth in truths:
        for row, mask in enumerate(truth.mask):
            yield truth.boxes[row][mask], {head: values[row][mask] for head, values in truth.labels.items()}


def _score(
    truths: list[tuple[torch.Tensor, Mapping[str, torch.Tensor]]], found: list[Found], classes: Classes
) -> dict[str, tuple[float, float]]:
    components = [name for name in ("ivt", "i", "v", "t") if name in classes.heads]
    corners = np.concatenate([one.boxes.double().numpy().reshape(-1, 4) for one in found] or [np.zeros((0, 4))])
    frame = np.repeat(np.arange(len(found)), [len(one.scores) for one in found])
    score = np.concatenate([one.scores.double().numpy() for one in found] or [np.zeros(0)])
    main = np.concatenate([one.classes.numpy() for one in found] or [np.zeros(0, np.int64)]).astype(np.int64)
    result = {}
    for component in components:
        labels = main if component == classes.main else classes.parts[main, _COLUMN[component]]
        known = labels >= 0
        predicted = Boxes(frame[known], {component: labels[known]}, score[known], _sizes(corners[known]))
        data = DetectionSet.of(np.zeros(len(found), np.int64), _truth_boxes(truths, component), predicted)
        ranked = rank_detections(data, component, len(classes.heads[component]), "coco")
        ap, _ = pooled(ranked, np.ones(ranked.n_videos), "coco")
        result[component] = mean_of(ap[:, 0]), mean_of(ap[:, list(ranked.averaged)].mean(axis=1))
    return result


def _truth_boxes(truths: list[tuple[torch.Tensor, Mapping[str, torch.Tensor]]], component: str) -> Boxes:
    """A row for every class that holds on a box."""
    frames, ids, rows = [], [], []
    for number, (boxes, labels) in enumerate(truths):
        which, names = np.nonzero(labels[component].numpy())
        frames.append(np.full(len(which), number, dtype=np.int64))
        ids.append(names.astype(np.int64))
        rows.append(boxes.double().numpy()[which].reshape(-1, 4))
    empty: Ints = np.zeros(0, dtype=np.int64)
    corners = np.concatenate([*rows, np.zeros((0, 4))])
    columns = {component: np.concatenate([*ids, empty])}
    return Boxes(np.concatenate([*frames, empty]), columns, np.ones(len(corners)), _sizes(corners))


def _sizes(corners: np.ndarray) -> np.ndarray:
    return np.concatenate([corners[:, :2], corners[:, 2:] - corners[:, :2]], axis=1)
