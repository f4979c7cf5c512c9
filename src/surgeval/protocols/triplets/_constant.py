"""The constant predictor: it says the same for every frame, so whatever it scores was not earned by looking.

It knows the scored labels' frequencies and typical boxes, which makes it the best of its kind: a floor for any model
and a measure of how much of a score the class distribution gives away.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from surgeval.datasets.predictions import GroundTruth

__all__ = ["constant_detections", "constant_recognition"]


def constant_recognition(truth: GroundTruth) -> pl.DataFrame:
    """In every frame, every class with the share of frames that show it; the AP of a class is then that share."""
    share = truth.labels.mean(axis=0) if len(truth.labels) else np.zeros(truth.labels.shape[1])
    return truth.scored.with_columns(scores=pl.lit(share.tolist(), dtype=pl.List(pl.Float64)))


def constant_detections(truth: GroundTruth) -> pl.DataFrame:
    """In every frame, every class that occurs at its median box, scored with the share of frames that show it."""
    component, column = ("ivt", "triplet") if truth.space.triplets else ("i", "instrument")
    ids, frames = truth.boxes.classes[component], truth.boxes.frame
    rows = []
    for k in np.unique(ids[ids >= 0]).tolist():
        mine = ids == k
        x, y, w, h = np.median(truth.boxes.xywh[mine], axis=0).tolist()
        rows.append((k, len(np.unique(frames[mine])) / truth.n_frames, x, y, w, h))
    schema = {column: pl.Int32, **dict.fromkeys(("score", "x", "y", "w", "h"), pl.Float64)}
    return truth.scored.join(pl.DataFrame(rows, schema=schema, orient="row"), how="cross")
