"""The agreement study: stretches of video drawn at random, labels given blindly, kappa against the consolidated ones.

The unit is an instance. An annotator sees its box and not its labels; an instance left without an answer is a category
of its own, so that skipping the hard ones does not look like agreement. As in ProstaTD's Table 3 every annotator has a
column; beside the whole triplet each of its parts has a row. Annotators are also compared with each other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TypeAlias

import numpy as np
import polars as pl

from surgeval.errors import BadInput
from surgeval.stats import Agreement, cohen_kappa
from surgeval.studio.segments import Segment

__all__ = [
    "COMPONENTS",
    "UNANSWERED",
    "UNLABELLED",
    "AgreementStudy",
    "LabelledInstance",
    "Labels",
    "measure_agreement",
]

COMPONENTS = ("instrument", "verb", "target", "triplet")
UNANSWERED = "(no answer)"
UNLABELLED = "(no label)"
Labels: TypeAlias = tuple[str | None, str | None, str | None]  # instrument, verb, target; None is a value like others


@dataclass(frozen=True)
class LabelledInstance:
    """An instance with its consolidated labels."""

    instance: str
    video: str
    frame: int
    labels: Labels


@dataclass(frozen=True)
class AgreementStudy:
    """Kappas by component and annotator, those of every two annotators, and where an annotator differs."""

    kappas: Mapping[str, Mapping[str, Agreement]]  # component → annotator
    disagreements: pl.DataFrame  # annotator, video, frame, instance, component, consolidated, annotated
    instances: Mapping[str, int]  # annotator → instances shown
    between: Mapping[tuple[str, str], Mapping[str, Agreement]]  # two annotators → component

    def table(self) -> pl.DataFrame:
        """The layout of ProstaTD's Table 3: a column per annotator and their mean, a row per component."""
        rows = []
        for component, by_annotator in self.kappas.items():
            values = {name: kappa.value for name, kappa in by_annotator.items()}
            known = [value for value in values.values() if not np.isnan(value)]
            mean = float(np.mean(known)) if known else float("nan")
            rows.append({"component": component, **values, "mean": mean})
        return pl.DataFrame(rows).with_columns(pl.col(pl.Float64).fill_nan(None))


def measure_agreement(
    consolidated: Sequence[LabelledInstance],
    answers: Mapping[str, Mapping[str, Labels]],
    shown: Mapping[str, Sequence[Segment]],
) -> AgreementStudy:
    """How far annotators agree with the consolidated labels on the segments that each was shown, and with each other.

    `answers` has the labels by annotator and instance; an instance that was shown and is missing there is unanswered.
    Intervals are over videos, or over segments where there is one video: neighbouring frames are no independent units,
    and with one segment there is no interval. An annotator without any answer has no kappa.

    >>> from surgeval.studio.segments import Segment
    >>> truth = [LabelledInstance(str(k), "A", k, ("hook", "dissect" if k % 2 else "cut", "liver")) for k in range(40)]
    >>> answers = {unit.instance: unit.labels for unit in truth} | {"3": ("hook", "cut", "liver")}
    >>> study = measure_agreement(truth, {"Ada": answers}, {"Ada": [Segment("A", 0, 39)]})
    >>> study.disagreements.select("frame", "component", "consolidated", "annotated").rows()[0]
    (3, 'verb', 'dissect', 'cut')
    >>> round(study.table()["Ada"][1], 2)
    0.95
    """
    if missing := [name for name in answers if name not in shown]:
        raise BadInput(f"annotator {missing[0]!r}: found answers, expected also the segments that were shown")
    kappas: dict[str, dict[str, Agreement]] = {component: {} for component in COMPONENTS}
    rows: list[tuple[str, str, int, str, str, str, str]] = []
    seen = {annotator: _seen(consolidated, segments) for annotator, segments in shown.items()}
    for annotator, units in seen.items():
        if not units:
            raise BadInput(f"annotator {annotator!r}: found no labelled instance in the segments, expected some")
        true, annotated = [unit.labels for unit in units], _answers(units, answers.get(annotator, {}))
        silent = not answers.get(annotator)
        for component, kappa in _compared(units, true, annotated, shown[annotator], silent=silent).items():
            kappas[component][annotator] = kappa
        for number, component in enumerate(COMPONENTS[:-1]):  # the parts say where a triplet differs
            rows += [(annotator, unit.video, unit.frame, unit.instance, component, a, b)
                     for unit, a, b in zip(units, _parts(true, number), _parts(annotated, number), strict=True)
                     if a != b]  # fmt: skip
    between = {}
    for annotator, other in combinations(shown, 2):
        both = _seen(seen[annotator], shown[other])
        if both:
            first, second = (_answers(both, answers.get(name, {})) for name in (annotator, other))
            silent = not answers.get(annotator) or not answers.get(other)
            between[annotator, other] = _compared(both, first, second, shown[annotator], silent=silent)
    names = ("annotator", "video", "frame", "instance", "component", "consolidated", "annotated")
    types = {name: pl.Int64 if name == "frame" else pl.String for name in names}
    listed = pl.DataFrame(rows, schema=types, orient="row").sort("annotator", "video", "frame", "instance")
    return AgreementStudy(kappas, listed, {name: len(units) for name, units in seen.items()}, between)


def _seen(units: Sequence[LabelledInstance], segments: Sequence[Segment]) -> list[LabelledInstance]:
    return [unit for unit in units if any(segment.holds(unit.video, unit.frame) for segment in segments)]


def _answers(units: Sequence[LabelledInstance], answers: Mapping[str, Labels]) -> list[Labels]:
    return [answers.get(unit.instance, (UNANSWERED, UNANSWERED, UNANSWERED)) for unit in units]


def _compared(
    units: Sequence[LabelledInstance],
    first: Sequence[Labels],
    second: Sequence[Labels],
    segments: Sequence[Segment],
    *,
    silent: bool,
) -> dict[str, Agreement]:
    videos = [unit.video for unit in units]
    stretches = [next(k for k, s in enumerate(segments) if s.holds(unit.video, unit.frame)) for unit in units]
    groups: list[str] | list[int] = videos if len(set(videos)) > 1 else stretches
    several = len(set(groups)) > 1
    kappas = {
        component: cohen_kappa(_parts(first, number), _parts(second, number), clusters=groups if several else None)
        for number, component in enumerate(COMPONENTS)
    }
    if silent:
        return {component: _without(each, math.nan, reason="no answers yet") for component, each in kappas.items()}
    if not several:  # boxes of one stretch are much the same: drawing among them would look certain
        note = "one segment: no interval"
        return {component: _without(each, each.value, note=note) for component, each in kappas.items()}
    return kappas


def _without(kappa: Agreement, value: float, *, reason: str = "", note: str = "") -> Agreement:
    """The kappa with this value and without its interval; nan where there is no kappa at all."""
    interval = replace(kappa.interval, estimate=value, low=math.nan, high=math.nan, resamples=0, note=note)
    return replace(kappa, interval=interval, reason=reason or kappa.reason)


def _parts(labels: Sequence[Labels], component: int) -> list[str]:
    """Labels as categories; no verb or target is an answer like any other."""
    return [_said(triplet, component) for triplet in labels]


def _said(labels: Labels, component: int) -> str:
    if component == len(labels) and labels[0] == labels[1] == labels[2] == UNANSWERED:
        return UNANSWERED
    words = ["null" if part is None else part for part in labels]
    return ", ".join(words) if component == len(labels) else words[component]
