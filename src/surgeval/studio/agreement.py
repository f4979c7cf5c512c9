"""The agreement study: stretches of video drawn at random, labels given blindly, kappa against the consolidated ones.

The unit is an instance. An annotator sees its box and not its labels; an instance left without an answer is a category
of its own, so that skipping the hard ones does not look like agreement. As in ProstaTD's Table 3 every annotator has a
column; beside the whole triplet each of its parts has a row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import polars as pl

from surgeval.errors import BadInput
from surgeval.stats import Agreement, cohen_kappa
from surgeval.studio.segments import Segment

__all__ = ["COMPONENTS", "UNANSWERED", "AgreementStudy", "Labelled", "measure_agreement"]

COMPONENTS = ("instrument", "verb", "target", "triplet")
UNANSWERED = "(no answer)"
Labels: TypeAlias = tuple[str | None, str | None, str | None]  # instrument, verb, target; None is a value like others


@dataclass(frozen=True)
class Labelled:
    """An instance with its consolidated labels."""

    instance: str
    video: str
    frame: int
    labels: Labels


@dataclass(frozen=True)
class AgreementStudy:
    """Kappas by component and annotator, and every instance on which an annotator differs."""

    kappas: Mapping[str, Mapping[str, Agreement]]  # component → annotator
    disagreements: pl.DataFrame  # annotator, video, frame, instance, component, consolidated, annotated
    instances: Mapping[str, int]  # annotator → instances shown

    def table(self) -> pl.DataFrame:
        """The layout of ProstaTD's Table 3: a column per annotator and their mean, a row per component."""
        rows = []
        for component, by_annotator in self.kappas.items():
            values = {name: found.value for name, found in by_annotator.items()}
            known = [value for value in values.values() if not np.isnan(value)]
            mean = float(np.mean(known)) if known else float("nan")
            rows.append({"component": component, **values, "mean": mean})
        return pl.DataFrame(rows).with_columns(pl.col(pl.Float64).fill_nan(None))


def measure_agreement(
    consolidated: Sequence[Labelled],
    answers: Mapping[str, Mapping[str, Labels]],
    shown: Mapping[str, Sequence[Segment]],
) -> AgreementStudy:
    """How far annotators agree with the consolidated labels on the segments that each was shown.

    `answers` has the labels by annotator and instance; an instance that was shown and is missing there is unanswered.

    >>> from surgeval.studio.segments import Segment
    >>> truth = [Labelled(str(k), "A", k, ("hook", "dissect" if k % 2 else "cut", "liver")) for k in range(40)]
    >>> said = {one.instance: one.labels for one in truth} | {"3": ("hook", "cut", "liver")}
    >>> study = measure_agreement(truth, {"Ada": said}, {"Ada": [Segment("A", 0, 39)]})
    >>> study.disagreements.select("frame", "component", "consolidated", "annotated").rows()[0]
    (3, 'verb', 'dissect', 'cut')
    >>> round(study.table()["Ada"][1], 2)
    0.95
    """
    if missing := [name for name in answers if name not in shown]:
        raise BadInput(f"annotator {missing[0]!r}: found answers, expected also the segments that were shown")
    kappas: dict[str, dict[str, Agreement]] = {component: {} for component in COMPONENTS}
    rows: list[tuple[str, str, int, str, str, str, str]] = []
    instances = {}
    for annotator, segments in shown.items():
        seen = [one for one in consolidated if any(segment.holds(one.video, one.frame) for segment in segments)]
        if not seen:
            raise BadInput(f"annotator {annotator!r}: found no labelled instance in the segments, expected some")
        given = answers.get(annotator, {})
        instances[annotator] = len(seen)
        videos = [one.video for one in seen]
        clusters = videos if len(set(videos)) > 1 else None
        for number, component in enumerate(COMPONENTS):
            true = [_said(one.labels, number) for one in seen]
            said = [_said(given[one.instance], number) if one.instance in given else UNANSWERED for one in seen]
            kappas[component][annotator] = cohen_kappa(true, said, clusters=clusters)
            if component != "triplet":  # its parts say where it differs
                rows += [(annotator, one.video, one.frame, one.instance, component, a, b)
                         for one, a, b in zip(seen, true, said, strict=True) if a != b]  # fmt: skip
    names = ("annotator", "video", "frame", "instance", "component", "consolidated", "annotated")
    types = {name: pl.Int64 if name == "frame" else pl.String for name in names}
    listed = pl.DataFrame(rows, schema=types, orient="row").sort("annotator", "video", "frame", "instance")
    return AgreementStudy(kappas, listed, instances)


def _said(labels: Labels, component: int) -> str:
    """A label as a category; no verb or target is an answer like any other."""
    words = ["null" if part is None else part for part in labels]
    return ", ".join(words) if component == len(labels) else words[component]
