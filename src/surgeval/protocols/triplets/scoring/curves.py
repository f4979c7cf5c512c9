"""Precision over recall: the step curve whose mean over 101 recalls is COCO's AP.

Curves are drawn at IoU 0.5 from the ranking itself, so they belong to the convention that matched the boxes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from surgeval.arrays import Floats, Ints
from surgeval.figures import Curve
from surgeval.metrics import Ranked, RecognitionRanked, mean_along

__all__ = ["component_curves", "detection_precision", "recognition_precision"]


RECALLS: Floats = np.linspace(0.0, 1.0, 101)
MOST_CURVES = 5  # classes shown beside the mean


def _envelope(hits: Ints, ranked: Ints, truths: int) -> Floats:
    """Best precision at every recall or beyond; `hits` of the `ranked` were right so far."""
    if not len(hits):
        return np.zeros(len(RECALLS))
    best = np.maximum.accumulate((hits / ranked)[::-1])[::-1]
    at = np.searchsorted(hits / truths, RECALLS, side="left")
    return np.where(at < len(best), best[np.minimum(at, len(best) - 1)], 0.0)


def detection_precision(ranked: Ranked) -> Floats:
    """Precision at 101 recalls per class; nan without ground truth. Free ties are one step."""
    truths = ranked.truths.sum(axis=0)
    result = np.full((ranked.n_classes, len(RECALLS)), np.nan)
    for c in np.flatnonzero(truths).tolist():
        here = slice(ranked.start[c], ranked.start[c + 1])
        hits, score = np.cumsum(ranked.hits[here, 0], dtype=np.int64), ranked.score[here]
        steps = np.arange(len(hits))
        if ranked.ties == "free" and len(hits):
            steps = np.append(np.flatnonzero(score[1:] != score[:-1]), len(hits) - 1)
        result[c] = _envelope(hits[steps], steps + 1, int(truths[c]))
    return result


def recognition_precision(ranked: RecognitionRanked) -> Floats:
    """The same for frames ranked by class scores; tied scores are one step."""
    result = np.full((len(ranked.labels), len(RECALLS)), np.nan)
    for c, labels in enumerate(ranked.labels):
        if labels.any():
            steps = np.flatnonzero(ranked.last[c])
            result[c] = _envelope(np.cumsum(labels)[steps], steps + 1, int(labels.sum()))
    return result


def component_curves(precision: Sequence[Floats], instances: Ints, names: Sequence[str]) -> tuple[Curve, ...]:
    """The mean over classes and the most frequent classes; where there are several groups, means over them."""
    by_class = mean_along(np.stack(precision), 0)
    means = mean_along(np.stack([mean_along(by_class, 0) for by_class in precision]), 0)
    if np.isnan(means).any():
        return ()
    shown = [c for c in np.argsort(-instances, kind="stable").tolist() if instances[c] > 0][:MOST_CURVES]
    x = tuple(RECALLS.tolist())
    return (
        Curve("mean over classes", x, tuple(means.clip(0, 1).tolist()), f"{means.mean():.3f}", heavy=True),
        *(
            Curve(names[c], x, tuple(by_class[c].clip(0, 1).tolist()), f"{by_class[c].mean():.3f}")
            for c in shown
            if not np.isnan(by_class[c]).any()
        ),
    )
