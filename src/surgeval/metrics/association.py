"""Association of boxes with triplet ids: seven counts per frame, summed per video (ivtmetrics' TAS).

Localised and matched (lm), partially localised and matched (plm), identity switch (ids), identity miss (idm), missed
localisation (mil), false positives (fp), false negatives (fn). `ivtd-legacy` keeps two defects of the reference: a
switch or missed localisation is not counted when the ground truth is the first one left, and predictions of classes
absent from the frame vanish when no other prediction is left. An identity miss does not use its ground truth up,
which also counts as fn.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surgeval.arrays import Floats, Ints
from surgeval.metrics.boxes import DetectionSet
from surgeval.metrics.match import count_associations, match_groups
from surgeval.metrics.mean import mean_along
from surgeval.metrics.visit import Convention, Ties, Visits, choose_convention, visits

__all__ = ["ASSOCIATION_COUNTS", "Association", "associate"]

ASSOCIATION_COUNTS = ("lm", "plm", "ids", "idm", "mil", "fp", "fn")


@dataclass(frozen=True)
class Association:
    """Counts per video, in the order of `ASSOCIATION_COUNTS`."""

    counts: Ints  # (V, 7)

    def overall(self) -> Floats:
        """Fractions of the summed counts; nan when there are none."""
        return _fractions(self.counts.sum(axis=0))

    def per_video(self) -> Floats:
        """Fractions inside each video."""
        return _fractions(self.counts)

    def video_wise(self) -> Floats:
        """Mean over videos of their fractions."""
        return mean_along(self.per_video(), axis=0, any_order=True) if len(self.counts) else np.full(7, np.nan)


def _fractions(counts: Ints) -> Floats:
    total = counts.sum(axis=-1, keepdims=True)
    return np.asarray(np.where(total > 0, counts / np.maximum(total, 1), np.nan), dtype=np.float64)


def associate(
    data: DetectionSet,
    convention: Convention | None = None,
    *,
    ties: Ties | None = None,
    iou: float = 0.5,
    order: Visits | None = None,
) -> Association:
    """Count, frame by frame, what became of every prediction and ground truth by triplet id.

    Convention and ties decide in which order boxes of equal score are visited, and `ivtd-legacy` keeps the defects.
    With free ties the localised and matched boxes are those of the order-free matching.

    >>> from surgeval.metrics import Boxes
    >>> truth = Boxes.of([0], {"ivt": [3]}, [[0, 0, 10, 10]])
    >>> far = Boxes.of([0], {"ivt": [3]}, [[50, 50, 10, 10]], score=[0.9])
    >>> dict(zip(ASSOCIATION_COUNTS, associate(DetectionSet.of(far, truth, [0])).counts[0].tolist()))
    {'lm': 0, 'plm': 0, 'ids': 0, 'idm': 0, 'mil': 1, 'fp': 0, 'fn': 0}
    """
    name, chosen = choose_convention(convention, ties)
    order = order or visits(data, name, chosen)
    sides = order.sides(data.targets.classes["ivt"], data.predictions.classes["ivt"])
    matched = np.zeros(0, np.int64)
    if order.ties == "free":
        every = np.ones(len(data.predictions), np.bool_)
        _, _, matched, _ = match_groups(*sides, data.predictions.score, every, np.array([iou]), True, 0)
    counts = count_associations(data.videos, data.n_videos, *sides, iou, name == "ivtd-legacy", matched)
    return Association(counts)
