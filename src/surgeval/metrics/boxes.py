"""`Boxes` and `DetectionSet`: the columnar tables every detection metric reads.

One row per box; `frame` numbers the frames of the whole dataset. A `DetectionSet` keeps rows grouped by frame and
frames grouped by video, so that a frame's (or a video's) rows are one slice and every later step is linear in the
data. A frame without rows still exists: its ground truths, if any, are misses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surgeval.arrays import Bools, Floats, Ints
from surgeval.errors import BadInput
from surgeval.metrics.columns import plain_numbers, video_numbers, whole_numbers
from surgeval.vocab import LabelSpace

__all__ = ["Boxes", "DetectionSet"]


@dataclass(frozen=True)
class Boxes:
    """Boxes in columns: frame number, class id per component, score, and top-left corner with size.

    >>> b = Boxes.of(frame=[0, 0], classes={"i": [1, 2]}, xywh=[[0, 0, 4, 4], [5, 5, 2, 0]], score=[0.9, 0.4])
    >>> len(b), b.degenerate
    (2, 1)
    """

    frame: Ints
    classes: Mapping[str, Ints]
    score: Floats
    xywh: Floats

    @classmethod
    def of(
        cls,
        frame: npt.ArrayLike,
        classes: Mapping[str, npt.ArrayLike],
        xywh: npt.ArrayLike,
        score: npt.ArrayLike | None = None,
        *,
        name: str = "boxes",
    ) -> Boxes:
        """Check and convert plain columns; `score` is 1 for ground truth. `name` is what messages call this table."""
        frame_ids = whole_numbers(frame, f"{name}: frame")
        n = len(frame_ids)
        boxes = plain_numbers(xywh, f"{name}: xywh") if n else np.zeros((0, 4))
        if boxes.ndim != 2 or boxes.shape[1] != 4:
            raise BadInput(f"{name}: xywh: found shape {boxes.shape}, expected four numbers per row")
        scores = np.ones(n) if score is None else plain_numbers(score, f"{name}: score")
        if scores.ndim != 1:
            raise BadInput(f"{name}: score: found shape {scores.shape}, expected one number per row")
        columns = {component: whole_numbers(values, f"{name}: {component}") for component, values in classes.items()}
        sizes = {"xywh": len(boxes), "score": len(scores)} | {key: len(ids) for key, ids in columns.items()}
        for column, size in sizes.items():
            if size != n:
                raise BadInput(f"{name}: {column}: found {size} rows, expected {n} as in frame")
        for column, numbers in (("xywh", boxes), ("score", scores)):
            bad = np.flatnonzero(~np.isfinite(numbers.reshape(n, numbers.size // max(n, 1))).all(axis=1))
            if bad.size:
                raise BadInput(
                    f"{name}: row {bad[0]}: {column}: found {numbers[bad[0]].tolist()}, expected finite numbers"
                )
        if n and frame_ids.min() < 0:
            row = int(np.flatnonzero(frame_ids < 0)[0])
            raise BadInput(f"{name}: row {row}: frame: found {frame_ids[row]}, expected a frame number from 0")
        return cls(frame_ids, columns, scores, boxes)

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def degenerate(self) -> int:
        """Rows whose width or height is not positive: they overlap nothing."""
        return int(((self.xywh[:, 2] <= 0) | (self.xywh[:, 3] <= 0)).sum())

    def take(self, rows: Ints | Bools, frame: Ints | None = None) -> Boxes:
        """The chosen rows, renumbered to `frame` where given."""
        return Boxes(
            self.frame[rows] if frame is None else frame,
            {component: values[rows] for component, values in self.classes.items()},
            self.score[rows],
            self.xywh[rows],
        )

    def with_components(self, space: LabelSpace, components: Sequence[str]) -> Boxes:
        """The same boxes with component classes derived from their triplet (`ivt`) ids."""
        triplet = self.classes["ivt"]
        if len(triplet) and not 0 <= triplet.min() <= triplet.max() < len(space.triplets):
            row = int(np.flatnonzero((triplet < 0) | (triplet >= len(space.triplets)))[0])
            raise BadInput(
                f"row {row}: triplet: found {triplet[row]}, expected an id below {len(space.triplets)} of {space.name}"
            )
        derived = {component: space.component_ids(component)[triplet] for component in components}
        return Boxes(self.frame, {**self.classes, **derived}, self.score, self.xywh)


@dataclass(frozen=True)
class DetectionSet:
    """Ground truth and predictions of the same frames.

    `videos[f]` is the video number of frame f, non-decreasing; the rows of frame f are
    `target_start[f]:target_start[f + 1]` and `prediction_start[f]:prediction_start[f + 1]`.
    """

    videos: Ints
    n_videos: int
    targets: Boxes
    predictions: Boxes
    target_start: Ints
    prediction_start: Ints

    @classmethod
    def of(
        cls, predictions: Boxes, targets: Boxes, videos: npt.ArrayLike, *, n_videos: int | None = None
    ) -> DetectionSet:
        """Group rows by frame and frames by video; within a frame rows keep their order, within a video frames do.

        `videos[f]` is the video of frame f, a name or its number from 0; names are numbered in their sorted order.
        """
        frame_video = video_numbers(videos)
        count = int(frame_video.max(initial=-1)) + 1
        if n_videos is not None and n_videos < count:
            raise BadInput(f"videos: found number {count - 1}, expected numbers below {n_videos}")
        for name, boxes in (("ground truth", targets), ("predictions", predictions)):
            if len(boxes) and boxes.frame.max() >= len(frame_video):
                row = int(np.flatnonzero(boxes.frame >= len(frame_video))[0])
                raise BadInput(
                    f"{name}: row {row}: frame: found {boxes.frame[row]}, expected one of the {len(frame_video)} frames"
                )
        if np.any(np.diff(frame_video) < 0):
            order = np.argsort(frame_video, kind="stable")
            new_frame = np.empty_like(order)
            new_frame[order] = np.arange(len(order))
            frame_video = frame_video[order]
            targets = targets.take(np.arange(len(targets)), new_frame[targets.frame])
            predictions = predictions.take(np.arange(len(predictions)), new_frame[predictions.frame])
        targets, predictions = _by_frame(targets), _by_frame(predictions)
        return cls(
            frame_video,
            count if n_videos is None else n_videos,
            targets,
            predictions,
            _starts(targets.frame, len(frame_video)),
            _starts(predictions.frame, len(frame_video)),
        )

    @property
    def n_frames(self) -> int:
        """Number of frames, with or without boxes."""
        return len(self.videos)

    def select_videos(self, videos: Sequence[int]) -> DetectionSet:
        """The named videos, in that order, renumbered from 0; a video named twice becomes two videos."""
        if any(not 0 <= v < self.n_videos for v in videos):
            raise BadInput(f"videos: found {list(videos)}, expected numbers from 0 to {self.n_videos - 1}")
        edges = _starts(self.videos, self.n_videos)
        frames = [np.arange(edges[v], edges[v + 1]) for v in videos]
        sizes = np.array([len(f) for f in frames], dtype=np.int64)
        kept_frames = np.concatenate([*frames, np.zeros(0, np.int64)])
        parts = []
        for boxes, start in ((self.predictions, self.prediction_start), (self.targets, self.target_start)):
            count = start[kept_frames + 1] - start[kept_frames]
            ends = np.cumsum(count)
            total = int(ends[-1]) if len(ends) else 0
            rows = np.repeat(start[kept_frames] - (ends - count), count) + np.arange(total)
            parts.append(boxes.take(rows, np.repeat(np.arange(len(kept_frames)), count)))
        predictions, targets = parts
        return DetectionSet.of(predictions, targets, np.repeat(np.arange(len(videos)), sizes), n_videos=len(videos))


def _by_frame(boxes: Boxes) -> Boxes:
    if np.any(np.diff(boxes.frame) < 0):
        return boxes.take(np.argsort(boxes.frame, kind="stable"))
    return boxes


def _starts(keys: Ints, n: int) -> Ints:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(keys, minlength=n))]).astype(np.int64)
