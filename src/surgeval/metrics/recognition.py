"""Recognition: average precision of per-frame class scores, for triplets and their components.

AP is the sum over distinct scores of (recall gained) × precision, without interpolation; tied scores are one
threshold, so the order of frames never matters. A class without positives is nan by definition, whatever a library
does. Component scores (i, v, t, iv, it, vt) are the maximum over the triplets of that component, for labels and
scores alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from surgeval._jit import kernel
from surgeval.arrays import AnyArray, AnyFloats, Bools, Floats, Int32s, Ints, UInt64s
from surgeval.errors import BadInput
from surgeval.metrics.bars import draw_classes
from surgeval.metrics.columns import plain_numbers, video_numbers
from surgeval.metrics.mean import mean_along, mean_of
from surgeval.metrics.sort import radix_order, sort_keys
from surgeval.results import Drawing, Result, counted
from surgeval.vocab import LabelSpace

if TYPE_CHECKING:
    import polars as pl


__all__ = [
    "RecognitionRanked",
    "RecognitionResult",
    "average_precision",
    "class_max",
    "component_max",
    "evaluate_recognition",
    "prepare_recognition",
    "top_classes",
    "top_k",
    "video_average_precision",
    "weighted_average_precision",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True, repr=False)
class RecognitionResult(Result):
    """AP per class of one component: over all frames (`AP`), and inside each video (`per_video`, videos × classes)."""

    component: str
    AP: Floats
    per_video: Floats
    positives: Ints  # frames per class

    @property
    def mAP(self) -> float:
        """Mean over the classes that occur."""
        return mean_of(self.AP)

    @property
    def video_wise(self) -> Floats:
        """Per class, the mean over the videos that show it."""
        return mean_along(self.per_video, axis=0, any_order=True)

    @property
    def class_first_mAP(self) -> float:
        """Video-wise mAP as ivtmetrics has it: per class over videos, then over classes."""
        return mean_of(self.video_wise)

    @property
    def video_first_mAP(self) -> float:
        """Video-wise mAP as eq. 3 of the ProstaTD paper: per video over classes, then over videos."""
        return mean_of(mean_along(self.per_video, axis=1), any_order=True)

    def __str__(self) -> str:
        videos, classes = self.per_video.shape
        counts = f"{counted(classes, 'class', 'classes')}, {counted(videos, 'video')}"
        return f"{self.component} mAP {self.mAP:.3f} ({counts})"

    @property
    def drawings(self) -> dict[str, Drawing]:
        """`AP`: that of each class, over all frames."""
        return {"AP": draw_classes(self.component, self.AP)}

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """`classes`: in how many frames each occurs, its AP over all of them and its mean AP over videos."""
        import polars as pl

        columns = {"class": np.arange(len(self.AP)), "frames": self.positives, "AP": self.AP}
        table = pl.DataFrame({**columns, "video_wise_AP": self.video_wise})
        return {"classes": table.with_columns(pl.selectors.float().fill_nan(None))}


def average_precision(predictions: npt.ArrayLike, targets: npt.ArrayLike) -> Floats:
    """AP per class of frames × classes scores and labels (0 or 1); nan for a class without positives.

    >>> average_precision([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3]], [[1, 0], [0, 0], [1, 0]]).round(4).tolist()
    [0.8333, nan]
    """
    labels, values = _checked(targets, predictions)
    ranked = _ranked(labels, values, np.zeros(labels.shape[1], np.int32), 1)
    return _weighted(ranked.labels, ranked.videos, ranked.last, np.ones(1))


def video_average_precision(predictions: npt.ArrayLike, targets: npt.ArrayLike, videos: npt.ArrayLike) -> Floats:
    """AP per video and class; `videos[f]` is the video of frame f, a name or its number from 0.

    Videos with names are in their sorted order.

    >>> labels, scores = [[1, 0], [0, 1], [1, 0], [0, 1]], [[0.9, 0.1], [0.2, 0.8], [0.4, 0.6], [0.5, 0.7]]
    >>> video_average_precision(scores, labels, [0, 0, 1, 1]).tolist()
    [[1.0, 1.0], [0.5, 1.0]]
    """
    ranked = prepare_recognition(predictions, targets, videos)
    return _per_video(ranked.labels, ranked.videos, ranked.last, ranked.n_videos)


def component_max(values: AnyArray, component: str, space: LabelSpace) -> AnyArray:
    """Labels or scores of a component from those of the triplets (frames × triplets): the maximum over its triplets.

    >>> from surgeval.vocab import load_labels
    >>> component_max(np.eye(100)[[17]], "i", load_labels("cholect50")).tolist()
    [[1.0, 0.0, 0.0, 0.0, 0.0, 0.0]]
    """
    if values.ndim != 2 or values.shape[1] != len(space.triplets):
        expected = f"frames × {len(space.triplets)} triplets of {space.name}"
        raise BadInput(f"found an array of shape {values.shape}, expected {expected}")
    if component == "ivt":
        return values
    return class_max(values, space.component_ids(component), space.num_classes(component))


def class_max(values: AnyArray, ids: Ints, size: int) -> AnyArray:
    """By frame and class, the maximum over the columns of that class: column c belongs to class `ids[c]` of `size`.

    >>> class_max(np.array([[0.1, 0.7, 0.4]]), np.array([1, 0, 1]), 2).tolist()
    [[0.7, 0.4]]
    """
    order = np.argsort(ids, kind="stable")
    present, first = np.unique(ids[order], return_index=True)
    result = np.zeros((len(values), size), dtype=values.dtype)
    if len(values):
        result[:, present] = np.maximum.reduceat(values[:, order], first, axis=1)
    return result


def evaluate_recognition(
    predictions: AnyArray,
    targets: AnyArray,
    videos: npt.ArrayLike,
    *,
    space: LabelSpace | None = None,
    components: Sequence[str] = ("ivt",),
) -> dict[str, RecognitionResult]:
    """Global and video-wise AP of each component; without a `space` the columns are scored as they are (`ivt`).

    `videos[f]` is the video of frame f, a name or its number from 0: the rows of `per_video` are the numbers, or the
    names in their sorted order.

    >>> from surgeval.vocab import load_labels
    >>> space = load_labels("phantom")
    >>> labels = np.zeros((4, len(space.triplets)), int); labels[[0, 1, 2, 3], [0, 1, 0, 1]] = 1
    >>> scores = labels * 0.8 + 0.1
    >>> results = evaluate_recognition(scores, labels, ["a", "a", "b", "b"], space=space, components=("i", "ivt"))
    >>> {component: result.mAP for component, result in results.items()}
    {'i': 1.0, 'ivt': 1.0}
    """
    results = {}
    for component in components:
        if space is None and component != "ivt":
            raise BadInput(f"component {component!r}: expected a label space that maps triplets to components")
        labels, values = (a if space is None else component_max(a, component, space) for a in (targets, predictions))
        ranked = prepare_recognition(values, labels, videos)
        parts = ranked.labels, ranked.videos, ranked.last
        results[component] = RecognitionResult(
            component=component, AP=_weighted(*parts, np.ones(ranked.n_videos)),
            per_video=_per_video(*parts, ranked.n_videos), positives=ranked.labels.sum(axis=1),
        )  # fmt: skip
    return results


@dataclass(frozen=True)
class RecognitionRanked:
    """Frames of each class in descending score (C, N): what any resample of videos is scored from."""

    labels: Bools
    videos: Int32s
    last: Bools  # whether the frame is the last of its tied scores, where precision is read
    n_videos: int


def prepare_recognition(predictions: npt.ArrayLike, targets: npt.ArrayLike, videos: npt.ArrayLike) -> RecognitionRanked:
    """Rank once; `weighted_average_precision` then scores any resample of the videos.

    >>> labels, scores = [[1], [0], [1], [0]], [[0.9], [0.2], [0.4], [0.5]]
    >>> ranked = prepare_recognition(scores, labels, [0, 0, 1, 1])
    >>> [weighted_average_precision(ranked, np.array(drawn)).round(3).tolist() for drawn in ([1, 1], [2, 0], [0, 2])]
    [[0.833], [1.0], [0.5]]
    """
    labels, values = _checked(targets, predictions)
    number = video_numbers(videos).astype(np.int32)
    if len(number) != labels.shape[1]:
        raise BadInput(f"videos: found {len(number)}, expected one for each of the {labels.shape[1]} frames")
    return _ranked(labels, values, number, int(number.max(initial=-1)) + 1)


def _ranked(labels: Bools, values: AnyFloats, video: Int32s, n_videos: int) -> RecognitionRanked:
    ranked = RecognitionRanked(
        np.empty(labels.shape, np.bool_), np.empty(labels.shape, np.int32), np.empty(labels.shape, np.bool_), n_videos
    )
    for c in range(len(labels)):
        keys = sort_keys(values[c])
        _arrange(keys, radix_order(keys), labels[c], video, ranked.labels[c], ranked.videos[c], ranked.last[c])
    return ranked


def weighted_average_precision(ranked: RecognitionRanked, multiplicity: npt.ArrayLike) -> Floats:
    """AP per class of a resample in which video v occurs `multiplicity[v]` times; nan for a class left out by it.

    >>> r = prepare_recognition([[0.9], [0.8], [0.7]], [[1], [0], [1]], videos=[0, 0, 1])
    >>> weighted_average_precision(r, [1, 0]).tolist(), weighted_average_precision(r, [0, 2]).tolist()
    ([1.0], [1.0])
    """
    weight = np.ascontiguousarray(multiplicity, dtype=np.float64)
    if weight.shape != (ranked.n_videos,) or not np.all(np.isfinite(weight)) or np.any(weight < 0):
        raise BadInput(f"multiplicity: expected {ranked.n_videos} finite numbers ≥ 0, one per video")
    return _weighted(ranked.labels, ranked.videos, ranked.last, weight)


def top_k(predictions: npt.ArrayLike, targets: npt.ArrayLike, k: int) -> float:
    """Share of all positives that are among the k highest scores of their frame; 0 without positives.

    Equal scores rank by class id.

    >>> top_k([[0.9, 0.8, 0.1]], [[1, 0, 1]], k=2)
    0.5
    """
    labels, values = _checked(targets, predictions)
    if k < 1:
        raise BadInput(f"k: found {k}, expected at least 1")
    best = np.argsort(-values.T, axis=1, kind="stable")[:, :k]
    hits = np.take_along_axis(labels.T, best, axis=1).sum()
    return float(hits / max(int(labels.sum()), 1))


def top_classes(ap: npt.ArrayLike, k: int) -> dict[int, float]:
    """The k classes with the highest AP, best first; classes without positives (nan) come last.

    >>> top_classes([0.2, float("nan"), 0.9], k=2)
    {2: 0.9, 0: 0.2}
    """
    values = np.asarray(ap, dtype=np.float64)
    order = np.argsort(np.where(np.isnan(values), np.inf, -values), kind="stable")[:k]
    return {int(c): float(values[c]) for c in order}


def _checked(targets: npt.ArrayLike, scores: npt.ArrayLike) -> tuple[Bools, AnyFloats]:
    """Labels and scores as contiguous class-major arrays."""
    labels, values = np.asarray(targets), np.asarray(scores)
    if labels.ndim != 2 or labels.shape != values.shape:
        raise BadInput(f"found targets {labels.shape} and scores {values.shape}, expected two frames × classes arrays")
    if labels.dtype != np.bool_:
        if labels.dtype.kind not in "iuf" or not np.isin(labels, (0, 1)).all():
            raise BadInput("targets: found other values, expected only 0 and 1")
        labels = labels.astype(np.bool_)
    if values.dtype not in (np.float32, np.float64):
        values = plain_numbers(values, "scores")
    if not np.isfinite(values).all():
        frame, column = (int(n) for n in np.argwhere(~np.isfinite(values))[0])
        raise BadInput(f"scores: frame {frame}: class {column}: found {values[frame, column]}, expected a finite score")
    return np.ascontiguousarray(labels.T), np.ascontiguousarray(values.T)


@kernel
def _arrange(
    keys: UInt64s,
    order: Ints,
    labels: Bools,
    video: Int32s,
    sorted_labels: Bools,
    sorted_video: Int32s,
    last: Bools,
) -> None:
    n = len(order)
    for k in range(n):
        sorted_labels[k] = labels[order[k]]
        sorted_video[k] = video[order[k]]
        last[k] = k == n - 1 or keys[order[k]] != keys[order[k + 1]]


@kernel
def _weighted(labels: Bools, video: Int32s, last: Bools, weight: Floats) -> Floats:
    result = np.full(len(labels), np.nan)
    for c in range(len(labels)):
        area, above, hits, gained = 0.0, 0.0, 0.0, 0.0
        for k in range(labels.shape[1]):
            w = weight[video[c, k]]
            above += w
            if labels[c, k]:
                gained += w
            if last[c, k] and gained > 0:
                hits += gained
                area += gained * (hits / above)
                gained = 0.0
        if hits > 0:
            result[c] = area / hits
    return result


@kernel
def _per_video(labels: Bools, video: Int32s, last: Bools, n_videos: int) -> Floats:
    """One walk down the ranking of all videos; each keeps its own counts and reads precision at its own ties."""
    result = np.full((n_videos, len(labels)), np.nan)
    for c in range(len(labels)):
        area, above, hits = np.zeros(n_videos), np.zeros(n_videos), np.zeros(n_videos)
        gained, tie_of = np.zeros(n_videos), np.zeros(n_videos, np.int64)
        tie = 0
        for k in range(labels.shape[1]):
            v = video[c, k]
            if tie_of[v] != tie:
                if gained[v] > 0:
                    hits[v] += gained[v]
                    area[v] += gained[v] * (hits[v] / above[v])
                    gained[v] = 0.0
                tie_of[v] = tie
            above[v] += 1
            if labels[c, k]:
                gained[v] += 1
            if last[c, k]:
                tie += 1
        for v in range(n_videos):
            if gained[v] > 0:
                hits[v] += gained[v]
                area[v] += gained[v] * (hits[v] / above[v])
            if hits[v] > 0:
                result[v, c] = area[v] / hits[v]
    return result
