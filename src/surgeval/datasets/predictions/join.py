"""`join`: predictions and ground truth of the same frames, as the arrays that the metrics read.

A labelled frame without predictions stays: its ground truths are misses (ivtdmetrics' script walks prediction files
only, so such frames never count there). Frames nobody labelled are left out, and said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from surgeval.arrays import Bools, Ints
from surgeval.datasets.base import OnProblem, raise_errors
from surgeval.datasets.predictions.classes import COMPONENTS, class_columns
from surgeval.datasets.predictions.detections import BOX, IDS, Detections, of_table
from surgeval.datasets.predictions.locate import ELSEWHERE, locate
from surgeval.datasets.predictions.raw import RawTable, RowProblems, RowSource
from surgeval.datasets.predictions.truth import GroundTruth, Truth, truth_of
from surgeval.errors import BadInput, DataError
from surgeval.metrics import Boxes, DetectionSet

__all__ = ["JoinedDetections", "join"]

MAIN = ("ivt", "i", "v", "t")


@dataclass(frozen=True)
class JoinedDetections:
    """Ground truth and predictions of the scored frames; `data()` is what `metrics.evaluate_detection` takes."""

    truth: GroundTruth = field(repr=False)
    predictions: Boxes = field(repr=False)  # by scored frame; class −1 where unknown
    missing: pl.DataFrame  # video, frame of scored frames that the predictions do not mention
    silent: int  # scored frames that are mentioned and have no box
    unlabelled: int  # predicted boxes left out because nobody labelled their frame
    elsewhere: int  # predicted boxes left out because their video was not chosen
    source: RowSource = field(repr=False)  # of the rows of `predictions`

    @property
    def video(self) -> Ints:
        """Video number of each scored frame."""
        return self.truth.video

    @property
    def n_frames(self) -> int:
        """Number of scored frames."""
        return self.truth.n_frames

    @property
    def n_videos(self) -> int:
        """Number of videos."""
        return len(self.truth.videos)

    def components(self) -> tuple[str, ...]:
        """Triplet, instrument, verb and target, as far as the ground truth has them."""
        known = self.truth.boxes.classes
        return tuple(name for name in MAIN if name in known and (name == "i" or bool((known[name] >= 0).any())))

    def n_classes(self, components: Sequence[str] | None = None) -> dict[str, int]:
        """Number of classes by component, the second argument of `metrics.evaluate_detection`."""
        letters = self._chosen(components)
        return {component: self.truth.space.num_classes(component) for component in letters}

    def data(self, components: Sequence[str] | None = None) -> DetectionSet:
        """Both tables for these components (all that the ground truth has by default).

        A prediction whose class is not known in one of them is an error that names it. Ground truths whose class is
        not known in one of them are left out (`unclassed` counts them): score such components one at a time.
        """
        letters = self._chosen(components)
        for component in letters:
            unknown = np.flatnonzero(self.predictions.classes[component] < 0)
            if unknown.size:
                row = int(unknown[0])
                video, frame = self.truth.scored.row(int(self.predictions.frame[row]))
                place = self.source.place(row, raise_errors, f"{video} {frame}")
                more = f" (and in {unknown.size - 1} more rows)" if unknown.size > 1 else ""
                raise DataError(
                    place.file,
                    f"found -1{more}, expected a class id, because component {component!r} is scored",
                    record=place.record,
                    field=_WORDS[component],
                )
        known = self._classed(letters)
        truth = self.truth.boxes if known.all() else self.truth.boxes.take(known)
        tables = [Boxes(table.frame, {name: table.classes[name] for name in letters}, table.score, table.xywh)
                  for table in (truth, self.predictions)]  # fmt: skip
        return DetectionSet.of(tables[1], tables[0], self.truth.video, n_videos=self.n_videos)

    def unclassed(self, components: Sequence[str] | None = None) -> int:
        """Ground-truth boxes that `data(components)` leaves out because a class of theirs is not known."""
        return int((~self._classed(self._chosen(components))).sum())

    def notes(self, components: Sequence[str] | None = None) -> tuple[str, ...]:
        """What a reader of the scores must know about the join, one sentence each."""
        truth, lost = self.truth, len(self.missing)
        answered = truth.scored.join(self.missing, on=["video", "frame"], how="anti")["video"]
        videos = sorted(set(self.missing["video"]) - set(answered))
        remarks = [
            (lost, f"{lost} of {self.n_frames} labelled frames have no predictions: their ground truths are misses"
                   + (f" (all frames of {', '.join(videos[:5])})" if videos else "")),
            (self.unlabelled, f"{self.unlabelled} predictions in frames without labels were left out"),
            (self.elsewhere, f"{self.elsewhere} predictions in videos that are not scored were left out"),
            (truth.without_box, f"{truth.without_box} labelled instances without a box were left out"),
            (unclassed := self.unclassed(components),
             f"{unclassed} labelled boxes without a class in a scored component were left out"),
            (truth.boxes.degenerate, f"{truth.boxes.degenerate} labelled boxes have no area and overlap nothing"),
            (bad := self.predictions.degenerate, f"{bad} predicted boxes have no area and overlap nothing"),
        ]  # fmt: skip
        return tuple(sentence for count, sentence in remarks if count)

    def _chosen(self, components: Sequence[str] | None) -> tuple[str, ...]:
        if components is None:
            return self.components()
        known = tuple(name for name in COMPONENTS if name in self.truth.boxes.classes)
        for component in components:
            if component not in known:
                raise BadInput(f"component {component!r}: expected one of {', '.join(known)} "
                               f"of label space {self.truth.space.name}")  # fmt: skip
        return tuple(components)

    def _classed(self, components: Sequence[str]) -> Bools:
        columns = [self.truth.boxes.classes[component] >= 0 for component in components]
        return np.logical_and.reduce(columns) if columns else np.ones(len(self.truth.boxes), dtype=bool)


_WORDS = {"ivt": "triplet", "i": "instrument", "v": "verb", "t": "target", "iv": "instrument, verb",
          "it": "instrument, target", "vt": "verb, target"}  # fmt: skip


def join(
    detections: Detections | pl.DataFrame, dataset: Truth, *, on_problem: OnProblem = raise_errors
) -> JoinedDetections:
    """Join detections, or a table of them made in Python, to a dataset by video and frame name.

    >>> from surgeval.datasets import MemoryDataset
    >>> from surgeval.metrics import evaluate_detection
    >>> from surgeval.records import Box, Frame, Instance, Triplet
    >>> from surgeval.vocab import load_labels
    >>> space = load_labels("cholect50")
    >>> seen = Instance(Triplet(*space.triplets[17]), Box(100, 120, 60, 80))
    >>> frames = [Frame("VID68", name, 0, None, None, 854, 480, (seen,)) for name in ("000016", "000023")]
    >>> boxes = pl.DataFrame({"video": ["VID68"], "frame": ["000016"], "triplet": [17], "score": [0.9],
    ...                       "x": [101.0], "y": [120.0], "w": [60.0], "h": [80.0]})
    >>> joined = join(boxes, MemoryDataset(space, frames))
    >>> joined.notes()
    ('1 of 2 labelled frames have no predictions: their ground truths are misses',)
    >>> round(evaluate_detection(joined.data(), joined.n_classes())["ivt"].overall.mAP, 3)
    0.505
    """
    truth = truth_of(dataset)
    tally = RowProblems(on_problem)
    if isinstance(detections, pl.DataFrame):
        detections = of_table(detections, truth, tally)
    unread = [video for video in truth.videos if video not in detections.videos]
    if unread:
        raise BadInput(f"join: found detections that were not read for video {unread[0]!r}, expected them to be read "
                       "for all videos that are scored")  # fmt: skip
    table = detections.table
    source = detections.source or RowSource.of("predictions", len(table))
    raw = RawTable({"video": table["video"], "frame": table["frame"]}, source, tally)
    at = locate(raw, table.select("video", "frame"), truth)  # once more: it may be another dataset than at reading
    numbers = truth.frames["number"].to_numpy()
    number = np.where(at >= 0, numbers[np.maximum(at, 0)] if len(numbers) else -1, -1)
    scored = number >= 0
    rows = table.filter(scored)
    ids = [rows[name].to_numpy().astype(np.int64) for name in IDS]
    predictions = Boxes.of(number[scored], class_columns(truth.space, *ids), rows.select(BOX).to_numpy(),
                           rows["score"].to_numpy(), name="predictions")  # fmt: skip
    keys = ["video", "frame"]
    untold = truth.scored.join(rows, on=keys, how="anti", maintain_order="left")
    missing = untold.join(detections.empty, on=keys, how="anti", maintain_order="left")
    return JoinedDetections(
        truth, predictions, missing, len(untold) - len(missing), int(((at >= 0) & ~scored).sum()),
        detections.elsewhere + int((at == ELSEWHERE).sum()), source.take(scored),
    )  # fmt: skip
