"""Every number of this protocol, declared once: what it is called, means, and how it is read off ranked boxes.

A number is a *metric* of a *component* (instrument, verb, target, triplet …) in a *scope* (all videos ranked together,
or video by video). `DetectionMetric` and `RecognitionMetric` declare metrics; `number_of` gives the `Measure` of one
number. To add a metric, add one declaration to `DETECTION`: scores, tables, comparisons, index and glossary follow.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from surgeval.arrays import Floats
from surgeval.metrics import ASSOCIATION_COUNTS, OperatingPoint, Ranked
from surgeval.metrics.ordinal import WEIGHTS
from surgeval.stats import Combine, Measure

__all__ = ["COST_PARTS", "DETECTION", "MEASURES", "NAMES", "OUTCOMES", "RECOGNITION", "SCOPES", "TOP",
           "DetectionMetric", "Key", "Pool", "check_metric", "detection_keys", "detection_metrics", "number_of",
           "reading_order", "recognition_keys"]  # fmt: skip

NAMES = {"i": "I", "v": "V", "t": "T", "iv": "IV", "it": "IT", "vt": "VT", "ivt": "IVT", "bbox": "box"}
OUTCOMES = {
    "lm": "localised and matched", "plm": "right triplet, box too far off", "ids": "identity switch",
    "idm": "box right, triplet wrong", "mil": "right triplet, no overlap", "fp": "false positive", "fn": "missed",
}  # fmt: skip
SCOPES = ("global", "video (class-first)", "video (video-first)")
COST_PARTS = ("bbox", "i", "v", "t", "ivt")
TOP = (5, 10, 20)
_SCOPE_LABELS = {
    "global": "", "video (class-first)": "video-wise", "video (video-first)": "video-wise (video-first)",
    "rare, global": "rare classes", "rare, video (class-first)": "rare classes, video-wise",
}  # fmt: skip
_SCOPE_COMBINES = {
    "global": Combine(classes="mean of present"),
    "video (class-first)": Combine(videos="mean by class", classes="mean of present"),
    "video (video-first)": Combine(videos="mean", classes="mean of present in the video"),
    "rare, global": Combine(classes="mean of rare present"),
    "rare, video (class-first)": Combine(videos="mean by class", classes="mean of rare present"),
    "cost-aware": Combine(classes="mean of present"),
}
_SETTINGS = ("convention", "ties", "label_space")


class Key(NamedTuple):
    """Which number: `global` / `ivt` / `mAP50`."""

    scope: str
    component: str
    metric: str

    @property
    def text(self) -> str:
        """One string: the key of its `Measure`."""
        return "|".join(self)

    @property
    def label(self) -> str:
        """For readers.

        >>> Key("global", "ivt", "mAP50").label, Key("video (class-first)", "i", "F1").label
        ('IVT mAP50', 'I F1, video-wise')
        """
        if self.scope == "association":
            return f"boxes: {OUTCOMES.get(self.metric, self.metric)}"
        scope = _SCOPE_LABELS.get(self.scope, self.scope)
        return f"{NAMES[self.component]} {self.metric}{', ' if scope else ''}{scope}"

    @property
    def higher_is_better(self) -> bool:
        """All but the shares of boxes that went wrong."""
        return self.scope != "association" or self.metric == "lm"

    @property
    def most(self) -> float:
        """The most it can be: a part of the cost-aware F1 adds no more than its weight.

        >>> Key("cost-aware", "bbox", "F1").most, Key("cost-aware", "ivt", "F1").most, Key("global", "i", "F1").most
        (0.1, 1.0, 1.0)
        """
        return WEIGHTS.get(self.component, 1.0) if self.scope == "cost-aware" else 1.0

    @classmethod
    def parse(cls, text: str) -> Key:
        """The key of a column name."""
        scope, component, metric = text.split("|")
        return cls(scope, component, metric)


@dataclass(frozen=True, eq=False)
class Pool:
    """What is known of the classes of one component: in all videos (classes), or in each (videos, classes).

    `ap` and `recall` have a last axis of IoU thresholds. `point` holds P, R and F1 at a score threshold; without it
    (two models with videos exchanged have no common threshold) they are NaN.
    """

    ranked: Ranked
    ap: Floats
    recall: Floats
    point: OperatingPoint | None = None

    def at_iou(self, iou: float) -> Floats:
        """AP at one of the IoU thresholds 0.5, 0.55 … 0.95."""
        return self.ap[..., self._column(iou)]

    def over_ious(self, values: Floats) -> Floats:
        """The mean over the IoU thresholds 0.5, 0.55 … 0.95."""
        return np.asarray(values[..., list(self.ranked.averaged)].mean(axis=-1))

    def _column(self, iou: float) -> int:
        return int(np.argmin(np.abs(self.ranked.thresholds - iou)))

    @cached_property
    def undefined(self) -> Floats:
        """NaN for every class."""
        return np.full(self.ap.shape[:-1], np.nan)


Lead: TypeAlias = Literal["every component", "main component", "none"]


@dataclass(frozen=True, kw_only=True)
class DetectionMetric(Measure):
    """A metric of ranked boxes: `at` reads one value per class off a `Pool`, and the number is their mean.

    `components` are those it is computed for, all unless given. `lead` says for which of them it is a headline,
    `summary` whether short tables show it, `by_video` whether tables of classes show it video-wise too, and `rare`
    whether it is also taken over rare classes. One that needs no score threshold is `exchangeable`: two models are then
    compared by exchanging videos.
    """

    at: Callable[[Pool], Floats]
    combine: Combine = _SCOPE_COMBINES["global"]
    components: tuple[str, ...] = ()
    lead: Lead = "none"
    summary: bool = False
    by_video: bool = False
    rare: bool = False
    exchangeable: bool = False


def _at_point(field: str) -> Callable[[Pool], Floats]:
    return lambda pool: pool.undefined if pool.point is None else getattr(pool.point, field)


DETECTION: tuple[DetectionMetric, ...] = (
    DetectionMetric(
        key="mAP50", label="mAP50", at=lambda pool: pool.ap[..., 0], lead="every component", summary=True,
        by_video=True, rare=True, exchangeable=True, settings=_SETTINGS,
        explanation="Mean average precision where a predicted box must overlap the true one by an IoU of at least 0.5.",
    ),
    DetectionMetric(
        key="mAP50:95", label="mAP50:95", at=lambda pool: pool.over_ious(pool.ap), lead="main component", summary=True,
        by_video=True, exchangeable=True, settings=_SETTINGS,
        explanation="Mean average precision, averaged over IoU thresholds 0.5, 0.55 … 0.95: also asks how exactly the "
        "boxes fit.",
    ),
    DetectionMetric(
        key="mAP75", label="mAP75", components=("i",), at=lambda pool: pool.at_iou(0.75), lead="every component",
        summary=True, exchangeable=True, settings=_SETTINGS,
        explanation="Mean average precision at IoU 0.75, over instruments.",
    ),
    DetectionMetric(
        key="AR", label="AR", at=lambda pool: pool.over_ious(pool.recall), exchangeable=True, settings=_SETTINGS,
        explanation="Average recall: the recall averaged over IoU thresholds 0.5 to 0.95, all predictions counted.",
    ),
    DetectionMetric(
        key="P", label="P", at=_at_point("precision"), settings=_SETTINGS,
        explanation="Precision at the chosen score threshold: of what was predicted, the part that is right.",
    ),
    DetectionMetric(
        key="R", label="R", at=_at_point("recall"), settings=_SETTINGS,
        explanation="Recall at the chosen score threshold: of what is there, the part that was predicted.",
    ),
    DetectionMetric(
        key="F1", label="F1", at=_at_point("f1"), lead="main component", summary=True, settings=_SETTINGS,
        explanation="The harmonic mean of precision and recall: high only when both are.",
    ),
)  # fmt: skip
RECOGNITION: tuple[Measure, ...] = (
    Measure(
        key="mAP", label="mAP", settings=("label_space",), combine=_SCOPE_COMBINES["global"],
        explanation="Mean average precision: the mean of AP over the classes.",
    ),
    *(
        Measure(
            key=f"top-{k}", label=f"top-{k}", settings=("label_space",), combine=Combine(frames="pooled"),
            explanation=f"Of the labelled classes, the share among the {k} highest scores of their frame.",
        )
        for k in TOP
    ),
)  # fmt: skip
_COST = Measure(
    key="cost-aware F1", label="cost-aware F1", settings=_SETTINGS, combine=_SCOPE_COMBINES["cost-aware"],
    explanation="F1 in which a prediction earns a part for each of box, instrument, verb and target that is right.",
)  # fmt: skip
_ASSOCIATION = tuple(
    Measure(
        key=name, label=f"boxes: {meaning}", higher_is_better=name == "lm", settings=_SETTINGS,
        explanation=f"The share of all true and predicted boxes with this outcome: {meaning}.",
    )
    for name, meaning in OUTCOMES.items()
)  # fmt: skip
MEASURES: tuple[Measure, ...] = (*DETECTION, *RECOGNITION, _COST, *_ASSOCIATION)
_METRICS: Mapping[str, Measure] = {measure.key: measure for measure in (*DETECTION, *RECOGNITION, *_ASSOCIATION)}


def check_metric(name: str) -> str:
    """The name, if a metric of this version has it.

    >>> check_metric("mAP75")
    'mAP75'
    """
    if name not in _METRICS:
        raise ValueError(f"is not one of {', '.join(_METRICS)}")
    return name


def detection_metrics(component: str) -> tuple[DetectionMetric, ...]:
    """The metrics of a component.

    >>> [metric.key for metric in detection_metrics("v")]
    ['mAP50', 'mAP50:95', 'AR', 'P', 'R', 'F1']
    """
    return tuple(metric for metric in DETECTION if not metric.components or component in metric.components)


def number_of(key: Key, label: str = "", *, headline: bool = True) -> Measure:
    """What a number is: its metric, in the words of its component and scope.

    >>> number_of(Key("global", "i", "mAP75")).label
    'I mAP75'
    """
    metric = _COST if key.scope == "cost-aware" else _METRICS[key.metric]
    name = label or key.label
    return Measure(
        key=key.text, label=name, explanation=metric.explanation, term=metric.term or metric.label,
        higher_is_better=key.higher_is_better, bounds=(0.0, key.most), headline=headline,
        combine=_SCOPE_COMBINES.get(key.scope, Combine()), settings=metric.settings,
    )  # fmt: skip


def detection_keys(
    components: Sequence[str], rare_of: str, *, costs: bool, associations: bool, exchangeable: bool = False
) -> list[Key]:
    """The numbers of ranked boxes, in the order in which they are computed; `exchangeable` leaves the others out."""
    keys = [
        Key(scope, component, metric.key)
        for component in components
        for scope in SCOPES
        for metric in detection_metrics(component)
        if metric.exchangeable or not exchangeable
    ]
    rare = [metric.key for metric in detection_metrics(rare_of) if metric.rare]
    keys += [Key(f"rare, {scope}", rare_of, metric) for scope in SCOPES[:2] for metric in rare]
    if costs:
        keys += [Key("cost-aware", part, "F1") for part in COST_PARTS]
    if associations:
        keys += [Key("association", "ivt", name) for name in ASSOCIATION_COUNTS]
    return keys


def recognition_keys(components: Sequence[str], main: str) -> list[Key]:
    """The numbers of scored frames, in the order in which they are computed."""
    keys = [Key(scope, component, "mAP") for component in components for scope in SCOPES]
    if main in components:
        keys += [Key(f"rare, {scope}", main, "mAP") for scope in SCOPES[:2]]
    return keys + [Key("recall among the highest scores", main, f"top-{k}") for k in TOP]


def reading_order(keys: Collection[Key], main: str) -> tuple[list[Key], list[Key]]:
    """The numbers to read first, in that order, and the rest; `main` is the component that matters most.

    >>> keys = [Key("global", component, metric) for component in ("i", "ivt") for metric in ("AR", "mAP50", "F1")]
    >>> [key.label for key in reading_order(keys, "ivt")[0]]
    ['IVT mAP50', 'IVT F1', 'I mAP50']
    """
    by_component = ["mAP", *(metric.key for metric in DETECTION if metric.lead == "every component")]
    by_main = [metric.key for metric in DETECTION if metric.lead != "none"]
    rare = ["mAP", *(metric.key for metric in DETECTION if metric.rare)]
    wanted = [Key("global", main, metric) for metric in ("mAP", *by_main)]
    wanted += [Key("global", component, metric) for component in NAMES for metric in by_component]
    wanted += [Key(scope, main, metric) for scope in ("video (class-first)", "rare, global") for metric in rare]
    wanted += [Key("cost-aware", "ivt", "F1"), Key("association", "ivt", "lm")]
    known = set(keys)
    first = [key for key in dict.fromkeys(wanted) if key in known]
    others = [key for key in keys if key not in first]
    return first, sorted(others, key=lambda key: key.component != main)
