"""Detection of instruments, verbs, targets and triplets: mAP50, mAP50:95, AR, P/R/F1, global and video-wise.

`evaluate` is the one call. Every number belongs to a *convention* (`coco`, `ivtd`, `ivtd-legacy`) and a *scope*:
`overall` ranks all videos together; `per_video` scores each video alone and averages class-first (as the reference
packages do) or video-first (as eq. 3 of the ProstaTD paper has it). Both orders are given by name because they
differ. `ties` says how equal scores are ranked: with `free`, the default if no convention is named, no number depends
on the order of videos, frames or rows; with `reference` they keep the order of the convention's reference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from surgeval.arrays import Floats, Ints
from surgeval.metrics.ap import pooled, video_pooled
from surgeval.metrics.association import Association, associate
from surgeval.metrics.bars import draw_classes, draw_means
from surgeval.metrics.boxes import DetectionSet
from surgeval.metrics.mean import mean_along, mean_of
from surgeval.metrics.operating import operating_point
from surgeval.metrics.visit import Convention, Ranked, Ties, choose_convention, rank_detections, visits
from surgeval.results import Drawing, Result

if TYPE_CHECKING:
    import polars as pl


__all__ = ["ComponentResult", "DetectionResult", "PerVideo", "Scores", "evaluate_detection", "score_component"]

FIELDS = ("AP", "AP_5095", "AR", "precision", "recall", "F1")


@dataclass(frozen=True, kw_only=True)
class Scores:
    """Per-class numbers of one component in one scope; nan where a class has no ground truth there."""

    AP: Floats  # at the plain IoU threshold (0.5 unless chosen)
    AP_5095: Floats
    AR: Floats
    precision: Floats
    recall: Floats
    F1: Floats
    threshold: float = float("nan")  # the score threshold of P/R/F1; nan where every video has its own

    def mean(self, field: str, classes: Sequence[int] | Ints | None = None) -> float:
        """Mean of a field over the classes that have ground truth, or over those among `classes` (rare subset)."""
        values: Floats = getattr(self, field)
        return mean_of(values if classes is None else values[np.asarray(classes, dtype=np.int64)])

    @property
    def mAP(self) -> float:
        return self.mean("AP")

    @property
    def mAP_5095(self) -> float:
        return self.mean("AP_5095")

    @property
    def mAR(self) -> float:
        return self.mean("AR")

    def summary(self) -> dict[str, float]:
        """The means, by field."""
        return {field: self.mean(field) for field in FIELDS}


@dataclass(frozen=True, kw_only=True)
class PerVideo:
    """The same numbers inside each video: arrays (videos, classes)."""

    AP: Floats
    AP_5095: Floats
    AR: Floats
    precision: Floats
    recall: Floats
    F1: Floats
    threshold: Floats  # (videos,)

    @cached_property
    def _fields(self) -> Floats:
        """(fields, videos, classes): every resample averages all of them."""
        return np.stack([getattr(self, field) for field in FIELDS])

    @cached_property
    def _video_means(self) -> Floats:
        """(fields, videos): means over the classes of each video, the same in every resample."""
        return mean_along(self._fields, 2)

    def class_first(self, multiplicity: npt.ArrayLike | None = None) -> Scores:
        """Per class, the mean over the videos that have it (each counted `multiplicity` times)."""
        means = mean_along(self._fields, 1, multiplicity, any_order=True)
        return Scores(**dict(zip(FIELDS, means, strict=True)))

    def video_first(self, multiplicity: npt.ArrayLike | None = None) -> dict[str, float]:
        """Per video, the mean over its classes; then the mean over videos (eq. 3)."""
        means = mean_along(self._video_means, 1, multiplicity, any_order=True)
        return dict(zip(FIELDS, means.tolist(), strict=True))


@dataclass(frozen=True, kw_only=True, repr=False)
class ComponentResult(Result):
    """One component under one convention."""

    component: str
    convention: Convention
    overall: Scores
    per_video: PerVideo
    ranked: Ranked
    style: str = "coco"
    given_threshold: float | None = None  # the score threshold of P/R/F1, where it was not chosen on these data

    def resampled(self, multiplicity: Ints) -> Scores:
        """The `overall` scores of a resample in which video v occurs `multiplicity[v]` times, without new matching.

        The best-F1 threshold is chosen anew, as it would be on those videos. Video-wise numbers of the resample are
        `per_video.class_first(multiplicity)` and `.video_first(multiplicity)`.
        """
        ap, recall = pooled(self.ranked, multiplicity, self.style)
        point = operating_point(
            self.ranked, threshold=self.given_threshold, style=self.style, multiplicity=multiplicity
        )
        columns = list(self.ranked.averaged)
        return Scores(
            AP=ap[:, 0], AP_5095=ap[:, columns].mean(axis=1), AR=recall[:, columns].mean(axis=1),
            precision=point.precision, recall=point.recall, F1=point.f1, threshold=point.threshold,
        )  # fmt: skip

    @property
    def video_wise(self) -> Scores:
        """The class-first video-wise numbers."""
        return self.per_video.class_first()

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """`classes`: what `class_table` gives, without names."""
        return {"classes": self.class_table()}

    @property
    def drawings(self) -> dict[str, Drawing]:
        """`AP`: that of each class, over all videos."""
        return {"AP": draw_classes(self.component, self.overall.AP)}

    def __str__(self) -> str:
        return f"{self.component} mAP {self.overall.mAP:.3f}, mAP50:95 {self.overall.mAP_5095:.3f} ({self.convention})"

    def class_table(self, names: Sequence[str] | None = None) -> pl.DataFrame:
        """One row per class: how often it occurs, how often it is predicted, and what it scores overall."""
        import polars as pl

        n = self.ranked.n_classes
        columns: dict[str, npt.ArrayLike | Sequence[str]] = {"class": np.arange(n)}
        if names is not None:
            columns["name"] = list(names)
        columns |= {"instances": self.ranked.truths.sum(axis=0), "predictions": np.diff(self.ranked.start)}
        columns |= {"videos": (self.ranked.truths > 0).sum(axis=0)}
        columns |= {field: getattr(self.overall, field) for field in FIELDS}
        return pl.DataFrame(columns)


@dataclass(frozen=True, kw_only=True, repr=False)
class DetectionResult(Result):
    """All components of one dataset under one convention."""

    convention: Convention
    ties: Ties
    components: Mapping[str, ComponentResult]
    association: Association | None
    degenerate_truths: int
    degenerate_predictions: int

    def __getitem__(self, component: str) -> ComponentResult:
        return self.components[component]

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """`summary`: a row per component and scope with the headline means; `classes`: one per component and class."""
        import polars as pl

        parts = [
            part.class_table().insert_column(0, pl.lit(name).alias("component"))
            for name, part in self.components.items()
        ]
        return {"summary": self._summary(), "classes": pl.concat(parts)} if parts else {"summary": self._summary()}

    @property
    def drawings(self) -> dict[str, Drawing]:
        """`mAP` of each component over all videos, then the `AP` of each class by component."""
        means = {name: part.overall.mAP for name, part in self.components.items()}
        overall = draw_means(f"mAP ({self.convention})", means)
        return {
            "mAP": overall,
            **{f"AP {name}": draw_classes(name, part.overall.AP) for name, part in self.components.items()},
        }

    def __str__(self) -> str:
        means = ", ".join(f"{name} {part.overall.mAP:.3f}" for name, part in self.components.items())
        return f"mAP {means} ({self.convention})"

    def _summary(self) -> pl.DataFrame:
        """The convention stands in every row."""
        import polars as pl

        rows: list[dict[str, object]] = []
        for name, result in self.components.items():
            for scope, summary in (
                ("global", result.overall.summary()),
                ("video (class-first)", result.video_wise.summary()),
                ("video (video-first)", result.per_video.video_first()),
            ):
                means = {key if key in ("precision", "recall") else f"m{key}": value for key, value in summary.items()}
                rows.append({"convention": self.convention, "component": name, "scope": scope, **means})
        return pl.DataFrame(rows)


def score_component(
    ranked: Ranked, *, threshold: float | None = None, style: str = "coco", averages: bool = True
) -> ComponentResult:
    """Every number of one component from its ranked detections; `averages=False` leaves mAP50:95 and AR out (nan).

    >>> from surgeval.metrics import Boxes, rank_detections
    >>> truth = Boxes.of([0, 1], {"i": [0, 0]}, [[0, 0, 10, 10]] * 2)
    >>> found = Boxes.of([0, 1], {"i": [0, 0]}, [[0, 0, 10, 10], [0, 0, 10, 7]], score=[0.9, 0.6])
    >>> result = score_component(rank_detections(DetectionSet.of(found, truth, [0, 0]), "i", 1))
    >>> result.overall.mAP, round(result.overall.mAP_5095, 3)
    (1.0, 0.752)
    """
    cells: dict[str, Floats] = {}
    for scope, (ap, recall) in (
        ("overall", pooled(ranked, np.ones(ranked.n_videos), style)),
        ("video", video_pooled(ranked, style)),
    ):
        columns = list(ranked.averaged)
        cells[f"{scope} AP"] = ap[..., 0]
        cells[f"{scope} AP_5095"] = ap[..., columns].mean(axis=-1) if averages else np.full_like(ap[..., 0], np.nan)
        cells[f"{scope} AR"] = recall[..., columns].mean(axis=-1) if averages else np.full_like(ap[..., 0], np.nan)
        if averages and style == "11point" and ranked.convention == "ivtd-legacy":
            # There, a class that is only predicted (AP 0, not nan) has recall 0 as well.
            cells[f"{scope} AR"][np.isnan(cells[f"{scope} AR"]) & ~np.isnan(ap[..., 0])] = 0.0
    point = operating_point(ranked, threshold=threshold, style=style)
    points = [operating_point(ranked, v, threshold=threshold, style=style) for v in range(ranked.n_videos)]
    shape = (ranked.n_videos, ranked.n_classes)
    by_video = [
        np.array([getattr(p, name) for p in points], dtype=np.float64).reshape(shape)
        for name in ("precision", "recall", "f1")
    ]
    return ComponentResult(
        component=ranked.component,
        convention=ranked.convention,
        overall=Scores(
            AP=cells["overall AP"], AP_5095=cells["overall AP_5095"], AR=cells["overall AR"], precision=point.precision,
            recall=point.recall, F1=point.f1, threshold=point.threshold,
        ),
        per_video=PerVideo(
            AP=cells["video AP"], AP_5095=cells["video AP_5095"], AR=cells["video AR"], precision=by_video[0],
            recall=by_video[1], F1=by_video[2], threshold=np.array([p.threshold for p in points], dtype=np.float64),
        ),
        ranked=ranked, style=style, given_threshold=threshold,
    )  # fmt: skip


def evaluate_detection(
    data: DetectionSet,
    n_classes: Mapping[str, int],
    *,
    convention: Convention | None = None,
    ties: Ties | None = None,
    iou: float = 0.5,
    threshold: float | None = None,
    style: str = "coco",
) -> DetectionResult:
    """Score the components named in `n_classes` (component → number of classes).

    Without a `convention` boxes are matched as under `coco`, and the order of equal scores does not matter
    (`ties="free"`). A named convention keeps the order of its reference (`ties="reference"`) unless `ties` is given.
    `threshold` fixes the score threshold of P/R/F1 (chosen on other data); left out, it is the best-F1 one of the
    scored data.

    >>> from surgeval.metrics import Boxes
    >>> truth = Boxes.of([0, 1], {"i": [0, 1]}, [[0, 0, 10, 10], [5, 5, 10, 10]])
    >>> data = DetectionSet.of(truth, truth, [0, 0])
    >>> evaluate_detection(data, {"i": 3})["i"].overall.mAP
    1.0
    >>> round(evaluate_detection(data, {"i": 3}, convention="ivtd")["i"].overall.mAP, 6)
    0.995
    """
    name, chosen = choose_convention(convention, ties)
    order = visits(data, name, chosen)
    components = {
        component: score_component(
            rank_detections(data, component, size, name, iou=iou, order=order), threshold=threshold, style=style
        )
        for component, size in n_classes.items()
    }
    association = associate(data, name, iou=iou, order=order) if "ivt" in n_classes else None
    return DetectionResult(
        convention=name,
        ties=chosen,
        components=components,
        association=association,
        degenerate_truths=data.targets.degenerate,
        degenerate_predictions=data.predictions.degenerate,
    )
