"""`ground_truth`: the frames and labels of a dataset in columns, the left side of every join.

Walking a large dataset takes longer than scoring it, so do it once: every function here that takes a dataset also
takes the `GroundTruth` made of it. Frames that exist but were never labelled are listed and not scored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np
import polars as pl

from surgeval.arrays import Bools, Ints
from surgeval.datasets.base import Dataset
from surgeval.datasets.predictions.classes import class_columns
from surgeval.datasets.predictions.hint import did_you_mean
from surgeval.errors import BadInput
from surgeval.files import Location, OnProblem, format_value, raise_errors
from surgeval.metrics import Boxes
from surgeval.vocab import LabelSpace

__all__ = ["GroundTruth", "Truth", "ground_truth"]


@dataclass(frozen=True)
class GroundTruth:
    """Labelled frames in columns: what detection (`boxes`) and recognition (`labels`) are scored against.

    `frames` lists every frame of the chosen videos with `number`, its place among the scored frames (−1 where it is
    not labelled). `boxes.frame` and the rows of `labels` count scored frames; a class is −1 where it is not known.
    """

    dataset: Dataset = field(repr=False)
    videos: tuple[str, ...]
    others: tuple[str, ...]  # videos of the dataset that were not chosen
    frames: pl.DataFrame  # video, frame, index, width, height, number
    video: Ints  # video number of each scored frame
    boxes: Boxes = field(repr=False)
    labels: Bools = field(repr=False)  # scored frames × classes (see `class_kind`)
    instances: int
    without_box: int  # instances left out of `boxes`
    without_label: int  # instances without a class, left out of `labels`
    assumed_size: tuple[int, int] | None = None  # of frames whose size the source does not give (`Frame.size_assumed`)

    @property
    def space(self) -> LabelSpace:
        """The label space of all ids."""
        return self.dataset.space

    @property
    def class_kind(self) -> str:
        """What a column of `labels` is: `triplet`, or `instrument` where the label space has no triplets."""
        return "triplet" if self.space.triplets else "instrument"

    @property
    def n_frames(self) -> int:
        """Number of scored frames."""
        return len(self.video)

    @property
    def unlabelled(self) -> int:
        """Frames that exist and are not scored because nobody labelled them."""
        return len(self.frames) - self.n_frames

    @cached_property
    def scored(self) -> pl.DataFrame:
        """`video` and `frame` of the scored frames, in the order of their numbers."""
        return self.frames.filter(pl.col("number") >= 0).select("video", "frame")

    @cached_property
    def names(self) -> dict[str, tuple[str, ...]]:
        """The frame names of each chosen video."""
        return self._by_video(self.frames)

    @cached_property
    def labelled_names(self) -> dict[str, tuple[str, ...]]:
        """The names of the scored frames of each chosen video."""
        return self._by_video(self.scored)

    def _by_video(self, frames: pl.DataFrame) -> dict[str, tuple[str, ...]]:
        groups = frames.group_by("video", maintain_order=True).agg("frame")
        by_video = {video: tuple(names) for video, names in groups.iter_rows()}
        return {video: by_video.get(video, ()) for video in self.videos}

    @cached_property
    def pairs(self) -> frozenset[tuple[str, str]]:
        """Video and frame name of every frame."""
        return frozenset(self.frames.select("video", "frame").iter_rows())

    @cached_property
    def by_index(self) -> dict[tuple[str, int], str | None]:
        """Frame name by video and frame number; None where two frames have that number."""
        frames: dict[tuple[str, int], str | None] = {}
        for video, name, index in self.frames.select("video", "frame", "index").iter_rows():
            frames[video, index] = None if (video, index) in frames else name
        return frames


Truth: TypeAlias = Dataset | GroundTruth


def truth_of(dataset: Truth, on_problem: OnProblem = raise_errors) -> GroundTruth:
    """The ground truth itself, or the one made of a dataset."""
    return dataset if isinstance(dataset, GroundTruth) else ground_truth(dataset, on_problem=on_problem)


def ground_truth(
    dataset: Dataset, videos: Sequence[str] | None = None, on_problem: OnProblem = raise_errors
) -> GroundTruth:
    """The frames and labels of all videos of a dataset, or of the chosen ones (a fold), in that order.

    >>> from surgeval.datasets import MemoryDataset
    >>> from surgeval.records import Box, Frame, Instance, Triplet
    >>> from surgeval.vocab import load_labels
    >>> space = load_labels("cholect50")
    >>> seen = Instance(Triplet(*space.triplets[17]), Box(10, 20, 30, 40))
    >>> frame = Frame("VID68", "000016", 16, None, None, 854, 480, (seen, Instance(seen.triplet)))
    >>> truth = ground_truth(MemoryDataset(space, [frame]))
    >>> len(truth.boxes), truth.without_box, truth.labels.nonzero()[1].tolist()
    (1, 1, [17])
    """
    known = tuple(video.name for video in dataset.videos(on_problem))
    wanted = known if videos is None else _chosen(tuple(videos), known, dataset)
    rows: list[tuple[str, str, int, int, int, int]] = []
    scored_video: list[int] = []
    numbers: list[int] = []  # scored frame of each instance
    ids: list[tuple[int, int, int, int]] = []
    boxes: list[tuple[float, float, float, float] | None] = []
    assumed: tuple[int, int] | None = None
    for v, video in enumerate(wanted):
        seen: set[str] = set()
        for frame in dataset.frames(video, on_problem):
            if frame.name in seen:
                place = Location(str(dataset.root), on_problem, f"video {video}")
                expected = "a name of its own: predictions are joined by video and frame name"
                place.error("frame-duplicate", f"found {format_value(frame.name)} twice, expected {expected}", "frame")
                continue
            seen.add(frame.name)
            number = len(scored_video) if frame.labelled else -1
            rows.append((video, frame.name, frame.index, frame.width, frame.height, number))
            if frame.size_assumed and assumed is None:
                assumed = frame.width, frame.height
            if frame.labelled:
                scored_video.append(v)
                for instance in frame.instances:
                    triplet, box = instance.triplet, instance.box
                    numbers.append(number)
                    ids.append((dataset.space.find(triplet.instrument, triplet.verb, triplet.target),
                                triplet.instrument, triplet.verb, triplet.target))  # fmt: skip
                    boxes.append((box.x, box.y, box.w, box.h) if box else None)
    schema = {"video": pl.String, "frame": pl.String, "index": pl.Int64, "width": pl.Int64, "height": pl.Int64,
              "number": pl.Int64}  # fmt: skip
    table = np.array(ids, dtype=np.int64).reshape(-1, 4)
    frame_of = np.array(numbers, dtype=np.int64)
    labels, without_label = _multi_hot(dataset.space, len(scored_video), frame_of, table)
    boxed = np.array([box is not None for box in boxes], dtype=bool)
    xywh = np.array([box for box in boxes if box is not None], dtype=np.float64).reshape(-1, 4)
    classes = class_columns(dataset.space, *table[boxed].T)
    return GroundTruth(
        dataset, wanted, tuple(name for name in known if name not in wanted),
        pl.DataFrame(rows, schema=schema, orient="row"), np.array(scored_video, dtype=np.int64),
        Boxes.of(frame_of[boxed], classes, xywh, name="ground truth"), labels, len(ids), int((~boxed).sum()),
        without_label, assumed,
    )  # fmt: skip


def _multi_hot(space: LabelSpace, n_frames: int, frame: Ints, ids: Ints) -> tuple[Bools, int]:
    column = ids[:, 0] if space.triplets else ids[:, 1]
    labels = np.zeros((n_frames, len(space.triplets) or len(space.instruments)), dtype=bool)
    known = column >= 0
    labels[frame[known], column[known]] = True
    return labels, int((~known).sum())


def _chosen(videos: tuple[str, ...], known: tuple[str, ...], dataset: Dataset) -> tuple[str, ...]:
    for number, name in enumerate(videos):
        if name not in known:
            raise BadInput(f"{dataset.root}: found no video {name!r}, expected a video of the dataset"
                           f"{did_you_mean(name, known)}")  # fmt: skip
        if name in videos[:number]:
            raise BadInput(f"videos: found {name!r} twice, expected each video once")
    return videos
