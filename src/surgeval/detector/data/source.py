"""The labelled frames of a dataset, read with every problem noted instead of raised."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from surgeval.detector.data.labels import Reading, Rows
from surgeval.detector.data.problems import OWN, ProblemTally
from surgeval.errors import BadInput, DataError
from surgeval.records import Frame
from surgeval.vocab import LabelSpace

if TYPE_CHECKING:
    from surgeval.datasets import Dataset, Problem
    from surgeval.detector.classes import Classes

__all__ = ["LabelledFrames", "frame_name", "read_labels"]

_SHOWN = 2  # errors told when there are too many
# Codes of errors, and the kind under which the frame is counted; with any other code its image is broken.
_LEFT_OUT = {"image-size": "image-size", "image-missing": "image-missing", "file-missing": "image-missing"}


@dataclass(frozen=True)
class LabelledFrames:
    """Frames that can be learned from and their rows; `errors` are the sentences of what could not be read."""

    origin: str
    space: LabelSpace
    frames: list[Frame]
    rows: list[Rows]
    tally: ProblemTally
    errors: list[str]

    def left_out(self, number: int, error: DataError) -> None:
        """A frame whose picture cannot be used."""
        self.tally.add(_LEFT_OUT.get(error.code, "image-broken"), frame_name(self.frames[number]))
        self.errors.append(str(error))

    def refuse_broken(self, good: int, tolerance: float) -> None:
        """Too much that cannot be read is no dataset to train on."""
        if len(self.errors) > tolerance * (good + len(self.errors)):
            shown = "; ".join(self.errors[:_SHOWN])
            found = f"{len(self.errors)} labels or images that cannot be read beside {good} good frames ({shown})"
            raise DataError(self.origin, f"found {found}, expected at most {tolerance:.0%} of them")

    def refuse_boxless(self, good: int, classes: Classes) -> None:
        """No box at all: say what became of them."""
        reasons = [line.split(" (")[0] for line in self.tally.problems().lines()]
        kind = "triplet" if classes.main == "ivt" else "instrument"
        raise DataError(
            self.origin,
            f"found no box with a known {kind} in {good} frames, "
            f"expected boxes to learn from ({'; '.join(reasons) or 'every frame is labelled as empty'})",
        )


def read_labels(source: Dataset | Iterable[Frame], classes: Classes, videos: Sequence[str] | None) -> LabelledFrames:
    """Read all labels of a dataset, or of frames whose ids are those of `classes.space`."""
    if isinstance(source, Iterable):
        labelled = LabelledFrames("frames", classes.space, [], [], ProblemTally(), [])
        frames: Iterator[Frame] = (frame for frame in source if videos is None or frame.video in videos)
    else:
        labelled = LabelledFrames(str(source.root), source.space, [], [], ProblemTally(), [])
        frames = _dataset_frames(source, videos, _noting(labelled))
    reading = Reading(classes, labelled.space)
    for frame in frames:
        if not frame.labelled:
            labelled.tally.add("frame-unlabelled", frame_name(frame))
            continue
        rows = reading.rows(frame, labelled.tally)
        if rows is not None:
            # Outlines of a whole dataset would fill the memory; the rows hold all that is learned.
            labelled.frames.append(replace(frame, instances=(), gaze=(), objects={}))
            labelled.rows.append(rows)
    return labelled


def frame_name(frame: Frame) -> str:
    """`video/frame`."""
    return f"{frame.video}/{frame.name}"


def _noting(labelled: LabelledFrames) -> Callable[[Problem], None]:
    def note(problem: Problem) -> None:
        if problem.kind not in OWN:
            file = problem.path.removeprefix(f"{labelled.origin}/")
            labelled.tally.add(problem.kind, f"{file}: {problem.record}" if problem.record else file)
        if problem.level == "error":
            labelled.errors.append(str(problem))

    return note


def _dataset_frames(dataset: Dataset, videos: Sequence[str] | None, note: Callable[[Problem], None]) -> Iterator[Frame]:
    known = [video.name for video in dataset.videos(note)]
    for video in known if videos is None else dict.fromkeys(videos):
        if video not in known:
            raise BadInput(f"{dataset.root}: found no video {video!r}, expected one of {', '.join(known)}")
        yield from dataset.frames(video, note)
