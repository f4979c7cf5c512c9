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

__all__ = ["COMPONENTS", "UNANSWERED", "AgreementStudy", "Labelled", "Segment", "draw_segments", "measure_agreement"]

COMPONENTS = ("instrument", "verb", "target", "triplet")
UNANSWERED = "(no answer)"
_TRIES = 200
Labels: TypeAlias = tuple[str | None, str | None, str | None]  # instrument, verb, target; None is a value like others


@dataclass(frozen=True)
class Segment:
    """A stretch of a video: its frames from `first` to `last`, both included."""

    video: str
    first: int
    last: int

    def holds(self, video: str, frame: int) -> bool:
        """Whether a frame lies in it."""
        return video == self.video and self.first <= frame <= self.last


def draw_segments(
    frames: Mapping[str, int], *, count: int = 5, length: int = 200, seed: int = 0
) -> tuple[Segment, ...]:
    """Stretches that do not overlap, drawn at random from videos with so many frames each, in the order of drawing.

    >>> drawn = draw_segments({"A": 1000, "B": 450}, seed=3)
    >>> len(drawn), {one.last - one.first + 1 for one in drawn}
    (5, {200})
    """
    room = sum(size // length for size in frames.values()) if length > 0 else 0
    if count < 1 or room < count:
        raise BadInput(
            f"segments: found room for {room} of {length} frames in {sum(frames.values())}, expected room for {count}"
        )
    rng = np.random.default_rng(seed)
    for _ in range(_TRIES):
        drawn = _drawn(frames, count, length, rng)
        if len(drawn) == count:
            return drawn
    # So little is free that segments drawn one by one leave gaps too short for the last: lay them side by side.
    every = [Segment(video, start, start + length - 1)
             for video, size in frames.items() for start in range(0, size - length + 1, length)]  # fmt: skip
    return tuple(every[k] for k in rng.permutation(len(every))[:count])


def _drawn(frames: Mapping[str, int], count: int, length: int, rng: np.random.Generator) -> tuple[Segment, ...]:
    """One after the other from what is free, every possible place alike; fewer where the gaps become too short."""
    free = [(video, 0, size) for video, size in frames.items()]
    drawn: list[Segment] = []
    while len(drawn) < count:
        places = np.array([max(end - start - length + 1, 0) for _, start, end in free])
        if not places.sum():
            break
        number = int(rng.integers(places.sum()))
        gap = int(np.searchsorted(np.cumsum(places), number, side="right"))
        video, start, end = free.pop(gap)
        first = start + number - int(places[:gap].sum())
        drawn.append(Segment(video, first, first + length - 1))
        free += [(video, start, first), (video, first + length, end)]
    return tuple(drawn)


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
