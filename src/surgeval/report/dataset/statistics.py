"""What a dataset holds, as numbers.

Every class table is a margin of one sparse count: how many instances have this source, instrument, verb and target.
Ids outside the label space count as −1, "not known"; they are shown, never dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from surgeval.figures import Figure
from surgeval.records import Video
from surgeval.report.dataset.runs import Run
from surgeval.report.dataset.tables import statistics_tables
from surgeval.results import Result, counted
from surgeval.vocab import LabelSpace


@dataclass(frozen=True, slots=True)
class RunCounts:
    """How many stretches of one class there are and how long they last."""

    runs: int = 0
    seconds: float = 0.0
    longest: float = 0.0

    def plus(self, run: Run) -> RunCounts:
        """With one more stretch."""
        return RunCounts(self.runs + 1, self.seconds + run.seconds, max(self.longest, run.seconds))


@dataclass(frozen=True, slots=True)
class VideoCounts:
    """One video's line."""

    video: Video
    frames: int
    labelled: int
    instances: int
    triplets: int  # instances whose triplet is a class of the label space
    boxes: int
    seconds: float | None  # as declared, else from the first to the last frame
    step: float | None  # usual time between labels
    phase_seconds: Mapping[int, float]
    stretches: tuple[Run, ...]  # of phases, the longest ones


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class DatasetStatistics(Result):
    """Counts of everything a reader of the dataset asks first; `tables` holds them for reading and for CSV.

    `instances` maps (source, instrument, verb, target) to a count, as positions in `sources` and the label space.
    `per_frame` counts triplet instances, or all instances where the label space has no triplets.
    """

    name: str
    format: str
    space: LabelSpace
    sources: tuple[str, ...]
    videos: tuple[VideoCounts, ...]
    instances: Mapping[tuple[int, int, int, int], int]
    per_frame: tuple[tuple[int, ...], ...]  # by source, then number of instances
    together: Mapping[tuple[int, int], int]  # frames that show both instruments (i ≤ j; i = j: two of a kind)
    phases: Mapping[int, RunCounts]
    actions: Mapping[int, RunCounts]  # by triplet id
    run_lengths: tuple[int, ...]  # actions by RUN_EDGES
    box_sizes: Mapping[int, tuple[int, ...]]  # instrument → boxes by BOX_EDGES
    bad_boxes: int  # boxes without a finite, positive size
    questions: Mapping[tuple[str, str, str], int] = field(default_factory=dict)  # (kind, property, value) → questions

    @property
    def frames(self) -> int:
        """Frames read."""
        return sum(row.frames for row in self.videos)

    @property
    def labelled(self) -> int:
        """Frames that were labelled, with or without instances."""
        return sum(row.labelled for row in self.videos)

    @property
    def total(self) -> int:
        """Instances."""
        return sum(row.instances for row in self.videos)

    @property
    def triplets(self) -> int:
        """Instances whose triplet is a class."""
        return sum(row.triplets for row in self.videos)

    @property
    def boxes(self) -> int:
        """Instances that have a box."""
        return sum(row.boxes for row in self.videos)

    @property
    def seconds(self) -> float | None:
        """Length of all videos together, or None where one is not known."""
        lengths = [row.seconds for row in self.videos if row.seconds is not None]
        return sum(lengths) if lengths and len(lengths) == len(self.videos) else None

    @property
    def question_count(self) -> int:
        """Questions of every kind."""
        return sum(count for (_, name, _), count in self.questions.items() if name == "all")

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """Every table by file name; a table that would be empty is left out."""
        return statistics_tables(self)

    @property
    def figures(self) -> dict[str, Figure]:
        """Every figure that has something to show."""
        from surgeval.report.dataset.charts import statistics_figures  # which draws statistics

        return statistics_figures(self)

    def __repr__(self) -> str:
        counts = ((len(self.videos), "video"), (self.frames, "frame"), (self.total, "instance"))
        sizes = ", ".join(counted(count, noun) for count, noun in counts)
        return f"DatasetStatistics of {self.name} ({self.format}): {sizes}"
