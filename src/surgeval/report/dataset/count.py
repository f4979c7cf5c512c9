"""The one pass over a dataset's labels that fills `DatasetStatistics`.

Frames are counted as they stream by: memory grows with classes and videos, never with frames. Pixels are not read.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

from surgeval.datasets import Dataset, OnProblem, Sources, name_sources, raise_errors
from surgeval.records import UNKNOWN, Frame, Instance, Question, Video, VqaQuestion
from surgeval.report.dataset.bins import BOX_EDGES, PER_FRAME, RUN_EDGES, bin_of
from surgeval.report.dataset.runs import Run, Runs, label_step
from surgeval.report.dataset.statistics import DatasetStatistics, RunCounts, VideoCounts
from surgeval.vocab import LabelSpace

_PEEK = 256  # frames looked at to learn how often a video is labelled
_MOST_STRETCHES = 400  # phases kept per video for the timeline; the shortest give way
_MOST_VALUES = 200  # distinct formats, skills … kept by name


def dataset_statistics(
    dataset: Dataset, *, sources: Sources | None = None, on_problem: OnProblem = raise_errors
) -> DatasetStatistics:
    """Read every label of a dataset once and count.

    `sources` says which videos are of which source, where the dataset does not: as `name_sources`.
    Problems go to `on_problem` as in every reader: the default raises at the first error.

    >>> from surgeval.datasets import MemoryDataset
    >>> from surgeval.records import Box, Frame, Instance, Triplet
    >>> from surgeval.vocab import load_labels
    >>> hook = Instance(Triplet(3), Box(64, 48, 64, 48))
    >>> frames = [Frame("VID01", f"{n:06d}", n, float(n), None, 640, 480, (hook,) * n) for n in range(3)]
    >>> counted = dataset_statistics(MemoryDataset(load_labels("cholec80"), frames))
    >>> counted.frames, counted.total, counted.per_frame
    (3, 3, ((1, 1, 1, 0, 0, 0, 0),))
    """
    videos = name_sources(dataset.videos(on_problem), sources)
    names = tuple(dict.fromkeys(video.source for video in videos))
    count = _Count(dataset.space, len(names))
    rows = tuple(
        count.video(video, names.index(video.source), iter(dataset.frames(video.name, on_problem))) for video in videos
    )
    return DatasetStatistics(
        name=dataset.root.name or str(dataset.root),
        format=dataset.format,
        space=dataset.space,
        sources=names,
        videos=rows,
        instances=dict(count.instances),
        per_frame=tuple(tuple(row) for row in count.per_frame),
        together=dict(count.together),
        phases=count.phases,
        actions=count.actions,
        run_lengths=tuple(count.run_lengths),
        box_sizes={instrument: tuple(row) for instrument, row in count.box_sizes.items()},
        bad_boxes=count.bad_boxes,
        questions=count_questions(dataset.questions(on_problem)),
    )


class _Count:
    """The counters that the pass fills."""

    def __init__(self, space: LabelSpace, sources: int) -> None:
        self.space = space
        self.instances: Counter[tuple[int, int, int, int]] = Counter()
        self.per_frame = [[0] * len(PER_FRAME) for _ in range(sources)]
        self.together: Counter[tuple[int, int]] = Counter()
        self.phases: dict[int, RunCounts] = {}
        self.actions: dict[int, RunCounts] = {}
        self.run_lengths = [0] * (len(RUN_EDGES) - 1)
        self.box_sizes: dict[int, list[int]] = {}
        self.bad_boxes = 0

    def video(self, video: Video, source: int, frames: Iterator[Frame]) -> VideoCounts:
        peeked = list(islice(frames, _PEEK))
        label_every = label_step([t for f in peeked if f.labelled and (t := _time(f)) is not None])
        phase_every = label_step([t for f in peeked if f.phase is not None and (t := _time(f)) is not None])
        actions, phases = Runs(label_every or 0.0), Runs(phase_every or 0.0)
        stretches = _Stretches()
        seen = labelled = instances = triplets = boxes = 0
        first: float | None = None
        last: float | None = None
        for frame in chain(peeked, frames):
            seen += 1
            time = _time(frame)
            if time is not None:
                first, last = (time if first is None else first), time
            if time is not None and phase_every and frame.phase is not None:
                stretches.add(phases.feed(time, [_known(frame.phase, self.space.phases)]))
            if not frame.labelled:
                continue
            labelled += 1
            classes = [self._instance(instance, source, frame) for instance in frame.instances]
            present = [c for c in classes if c != UNKNOWN]
            instances, triplets = instances + len(classes), triplets + len(present)
            boxes += sum(instance.box is not None for instance in frame.instances)
            crowd = len(present) if self.space.triplets else len(classes)
            self.per_frame[source][min(crowd, len(PER_FRAME) - 1)] += 1
            self._pairs(frame)
            if time is not None and label_every:
                self._actions(actions.feed(time, present))
        self._actions(actions.finish())
        stretches.add(phases.finish())
        for phase, total in stretches.counts.items():
            before = self.phases.get(phase, RunCounts())
            self.phases[phase] = RunCounts(
                before.runs + total.runs, before.seconds + total.seconds, max(before.longest, total.longest)
            )
        seconds, step = video.seconds, label_every or phase_every
        if seconds is None and step and first is not None and last is not None:
            seconds = max(last - first, 0.0) + step
        by_phase = {phase: total.seconds for phase, total in stretches.counts.items()}
        return VideoCounts(
            video, seen, labelled, instances, triplets, boxes, seconds, step, by_phase, stretches.longest()
        )

    def _instance(self, instance: Instance, source: int, frame: Frame) -> int:
        """Count one instance; its triplet id, or −1 where its combination is not a class."""
        space = self.space
        i = _known(instance.triplet.instrument, space.instruments)
        v, t = _known(instance.triplet.verb, space.verbs), _known(instance.triplet.target, space.targets)
        self.instances[source, i, v, t] += 1
        if instance.box is not None:
            if not instance.box.finite or instance.box.area <= 0:
                self.bad_boxes += 1
            elif frame.width > 0 and frame.height > 0:
                share = 100 * instance.box.area / (frame.width * frame.height)
                sizes = self.box_sizes.setdefault(i, [0] * (len(BOX_EDGES) - 1))
                sizes[bin_of(BOX_EDGES, share)] += 1
        return space.find(i, v, t)

    def _pairs(self, frame: Frame) -> None:
        shown = Counter(_known(instance.triplet.instrument, self.space.instruments) for instance in frame.instances)
        kinds = sorted(kind for kind in shown if kind != UNKNOWN)
        for k, first in enumerate(kinds):
            if shown[first] > 1:
                self.together[first, first] += 1
            for second in kinds[k + 1 :]:
                self.together[first, second] += 1

    def _actions(self, runs: Iterable[Run]) -> None:
        for run in runs:
            self.actions[run.key] = self.actions.get(run.key, RunCounts()).plus(run)
            self.run_lengths[bin_of(RUN_EDGES, run.seconds)] += 1


class _Stretches:
    """A video's phases: exact sums, and the longest stretches for drawing."""

    def __init__(self) -> None:
        self.counts: dict[int, RunCounts] = {}
        self._kept: list[Run] = []

    def add(self, runs: Iterable[Run]) -> None:
        for run in runs:
            self.counts[run.key] = self.counts.get(run.key, RunCounts()).plus(run)
            self._kept.append(run)
        if len(self._kept) > 2 * _MOST_STRETCHES:
            self._kept = list(self.longest())

    def longest(self) -> tuple[Run, ...]:
        by_length = sorted(self._kept, key=lambda run: -run.seconds)[:_MOST_STRETCHES]
        return tuple(sorted(by_length, key=lambda run: (run.start, run.key)))


def _time(frame: Frame) -> float | None:
    return frame.time if frame.time is not None and math.isfinite(frame.time) else None


def _known(number: int, names: Sequence[str]) -> int:
    return number if 0 <= number < len(names) else UNKNOWN


def count_questions(questions: Iterable[Question]) -> dict[tuple[str, str, str], int]:
    """Questions by kind (`focus`, `intent`), property and value; `("focus", "all", "all")` is the number of them."""
    counts: Counter[tuple[str, str, str]] = Counter()
    distinct: Counter[tuple[str, str]] = Counter()
    for question in questions:
        for name, value in _properties(question):
            kind = "focus" if isinstance(question, VqaQuestion) else "intent"
            if (kind, name, value) not in counts:
                distinct[kind, name] += 1
                if distinct[kind, name] > _MOST_VALUES:
                    value = "(others)"
            counts[kind, name, value] += 1
    return dict(counts)


def _properties(question: Question) -> tuple[tuple[str, str], ...]:
    if isinstance(question, VqaQuestion):
        return (
            ("all", "all"),
            ("format", question.format),
            ("capability", question.primary),
            ("procedure", question.procedure or "(not known)"),
            ("distribution", "out of distribution" if question.ood else "in distribution"),
            ("clinical relevance", "yes" if question.clinical else "no"),
        )
    return (
        ("all", "all"),
        ("skill", f"{question.dimension}, {question.skill}"),
        ("trap", question.trap or "none"),
        ("scenario", question.scenario),
        ("options", str(len(question.options))),
    )
