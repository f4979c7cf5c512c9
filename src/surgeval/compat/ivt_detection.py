"""`Detection` with the calls and result keys of ivtmetrics 0.1.5: rows `[ivt, i, conf, x, y, w, h]` per frame.

Legacy mode keeps what the package does, its faults included. Comparing two boxes adds a corner to their sizes in place,
so a box met twice has grown. Detections are ranked by score inside a frame only. In the association the first ground
truth left cannot be switched or mislocated, and detections of classes that the frame does not show vanish once nothing
else is left over. `compute_global_AP` raises KeyError, because its association counts do not exist. Fixed mode repairs
these, and only these: 11 recall points, the highest recall as `Rec` and the highest precision as `Pre` stay what the
package means by them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from surgeval.arrays import AnyArray, Floats
from surgeval.compat.by_video import ByVideo
from surgeval.compat.disentangle import Disentangle
from surgeval.errors import BadInput
from surgeval.metrics import ASSOCIATION_COUNTS, mean_along, mean_of

__all__ = ["Detection"]

COLUMN = {"ivt": 0, "i": 1}
SCORE, BOX, WIDTH = 2, 3, 7
ANY = float(np.nextafter(0, 1))  # the least overlap that is one

Row = list[float]
Hits = list[tuple[float, bool]]


@dataclass
class _CountedVideo:
    """What has been counted in one video: per component and class the hits with their scores, and the truths."""

    sizes: dict[str, int]
    hits: dict[str, list[Hits]] = field(init=False)
    truths: dict[str, list[int]] = field(init=False)
    association: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ASSOCIATION_COUNTS, 0))
    n_frames: int = 0

    def __post_init__(self) -> None:
        self.hits = {name: [[] for _ in range(size)] for name, size in self.sizes.items()}
        self.truths = {name: [0] * size for name, size in self.sizes.items()}


class Detection(ByVideo[_CountedVideo]):
    """Detection and association of surgical triplets, as ivtmetrics computes them.

    >>> metric = Detection()
    >>> rows = [[[17, 0, 0.9, 0.1, 0.1, 0.2, 0.2]]]
    >>> metric.update(rows, rows); metric.video_end()
    >>> round(metric.compute_video_AP("ivt")["mAP"], 4), metric.compute_global_AP("i")["lm"]
    (1.0, 1.0)
    """

    def __init__(
        self,
        num_class: int = 100,
        num_tool: int = 6,
        num_target: int = 15,
        threshold: float = 0.5,
        mode: str = "fixed",
    ) -> None:
        self.threshold = threshold
        self.num_class, self.num_tool, self.num_target = num_class, num_tool, num_target
        self._sizes = {"ivt": num_class, "i": num_tool}
        super().__init__(mode)

    def _new_video(self) -> _CountedVideo:
        return _CountedVideo(self._sizes)

    def update(self, targets: Sequence[Any], predictions: Sequence[Any], format: str = "list") -> None:
        """Add frames: for each, the rows of its ground truths and of its predictions.

        `format="dict"` takes `{"triplet": id, "instrument": [id, conf, x, y, w, h]}` per box.
        """
        self._check_frames(targets, predictions, format)
        for truths, detections in zip(targets, predictions, strict=False):
            self.update_frame(truths, detections, format)
        self._ended = False

    def update_frame(self, targets: Sequence[Any], predictions: Sequence[Any], format: str = "list") -> None:
        """Add one frame."""
        video = self._videos[self._count]
        truths = self._rows(targets, format, f"frame {video.n_frames}: targets")
        detections = self._rows(predictions, format, f"frame {video.n_frames}: predictions")
        video.n_frames += 1
        if not truths and not detections:
            return
        for component, column in COLUMN.items():
            for row in truths:
                video.truths[component][int(row[column])] += 1
            self._match(video.hits[component], _copies(truths), _copies(detections), column)
        for count, number in self._associate(_copies(truths), _copies(detections)).items():
            video.association[count] += number

    def compute_AP(self, component: str = "ivt") -> dict[str, Any]:
        """Numbers of the last video: the current one, or the one just ended."""
        last = self._count - 1 if self._ended else self._count
        return self._numbers([self._videos.get(last, _CountedVideo(self._sizes))], component)

    def compute_video_AP(self, component: str = "ivt") -> dict[str, Any]:
        """Video-wise numbers: per class the mean over videos."""
        videos = [self._numbers([self._videos[number + 1]], component) for number in range(self._count)]
        answer: dict[str, Any] = {}
        for key in ("AP", "Rec", "Pre"):
            answer[key] = mean_along(np.stack([video[key] for video in videos]), axis=0)
            answer[f"m{key}"] = mean_of(answer[key])
        return answer | {key: mean_of(np.array([video[key] for video in videos])) for key in ASSOCIATION_COUNTS}

    def compute_global_AP(self, component: str = "ivt") -> dict[str, Any]:
        """Numbers over all videos together; legacy mode raises KeyError, as the package does."""
        if self.mode == "legacy":
            raise KeyError("fp")
        return self._numbers(list(self._videos.values()), component)

    def extract(self, inputs: npt.ArrayLike, component: str = "i") -> AnyArray:
        """Labels or scores of a component from those of the triplets."""
        return Disentangle().extract(inputs, component)

    def _rows(self, boxes: Sequence[Any], format: str, where: str) -> list[Row]:
        """The rows of a frame, highest score first; equal scores in reversed order, as the package has them."""
        try:
            rows = [[box["triplet"], *box["instrument"]] if format == "dict" else box for box in boxes]
            table = np.array([row for row in rows if len(row)], dtype=np.float64)
        except (KeyError, OverflowError, TypeError, ValueError) as error:
            raise BadInput(f"{where}: found {error}, expected rows of numbers") from error
        if not len(table):
            return []
        if table.ndim != 2 or table.shape[1] != WIDTH:
            raise BadInput(f"{where}: found {table.shape}, expected rows [ivt, i, conf, x, y, w, h]")
        for component, column in COLUMN.items():
            ids = table[:, column]
            if not (np.isfinite(ids).all() and (ids >= 0).all() and (ids < self._sizes[component]).all()):
                raise BadInput(f"{where}: found {component} ids {ids.tolist()!s:.60}, expected 0 to "
                               f"{self._sizes[component] - 1}")  # fmt: skip
        scores = table[:, SCORE]
        order = (scores.argsort() if self.mode == "legacy" else scores.argsort(kind="stable"))[::-1]
        return [row.tolist() for row in table[order]]

    def _match(self, hits: list[Hits], truths: list[Row], detections: list[Row], column: int) -> None:
        """Every detection takes the first free truth of its class that it overlaps enough."""
        for row in detections:
            free = next(
                (k for k, truth in enumerate(truths)
                 if truth[column] == row[column] and self._iou(truth, row, both=True) >= self.threshold), None
            )  # fmt: skip
            if free is not None:
                del truths[free]
            hits[int(row[column])].append((row[SCORE], free is not None))

    def _iou(self, truth: Row, detection: Row, *, both: bool) -> float:
        """Overlap of two boxes.

        Legacy mode leaves each changed: the size becomes the far corner, and grows again next time; detections are
        changed where the package holds them in an array (`both`).
        """
        if self.mode == "fixed":
            return _overlap(_corners(truth[BOX:]), _corners(detection[BOX:]))
        truth[BOX:] = _corners(truth[BOX:])
        far = _corners(detection[BOX:])
        if both:
            detection[BOX:] = far
        return _overlap(truth[BOX:], far)

    def _associate(self, truths: list[Row], detections: list[Row]) -> dict[str, int]:
        """Each detection's first fitting name: right, nearly right, switched, missed, elsewhere, false."""
        if not truths or not detections:
            return {"fp": len(detections), "fn": len(truths)}
        shown = {row[0] for row in truths}
        strangers = [row for row in detections if row[0] not in shown]
        left = [row for row in detections if row[0] in shown]
        counts: dict[str, int] = {}
        left, counts["lm"] = self._take(left, truths, lambda row: self._same(row, truths, self.threshold))
        left, counts["plm"] = self._take(left, truths, lambda row: self._same(row, truths, ANY))
        left, counts["ids"] = self._take(left, truths, lambda row: self._switched(row, truths))
        if left or self.mode == "fixed":
            every = [*strangers, *left]
            left = [row for row in every if not self._covers(row, truths)]
            counts["idm"] = len(every) - len(left)
        left, counts["mil"] = self._take(left, truths, lambda row: self._named(row, truths))
        return {**counts, "fp": len(left), "fn": len(truths)}

    def _take(
        self, detections: list[Row], truths: list[Row], find: Callable[[Row], int | None]
    ) -> tuple[list[Row], int]:
        """Detections for which `find` names no truth, and how many truths were taken by the others."""
        left = []
        for row in detections:
            match = find(row)
            if match is None:
                left.append(row)
            else:
                del truths[match]
        return left, len(detections) - len(left)

    def _same(self, row: Row, truths: list[Row], least: float) -> int | None:
        pairs = enumerate(truths)
        return next(
            (k for k, truth in pairs if truth[0] == row[0] and self._iou(truth, row, both=False) >= least), None
        )

    def _switched(self, row: Row, truths: list[Row]) -> int | None:
        """A detection on one truth that carries the name of another takes that other."""
        for truth in truths:
            if self._iou(truth, row, both=False) > self.threshold and (partner := self._named(row, truths)) is not None:
                return partner
        return None

    def _covers(self, row: Row, truths: list[Row]) -> bool:
        return any(self._iou(truth, row, both=False) > self.threshold for truth in truths)

    def _named(self, row: Row, truths: list[Row]) -> int | None:
        """The first truth of the detection's class; the package takes a place of 0 for no place."""
        namesake = next((k for k, truth in enumerate(truths) if truth[0] == row[0]), None)
        return None if namesake == 0 and self.mode == "legacy" else namesake

    def _numbers(self, videos: list[_CountedVideo], component: str) -> dict[str, Any]:
        if component not in COLUMN and self.mode == "fixed":
            raise BadInput(f"component {component!r}: expected ivt or i")
        name = "ivt" if component == "ivt" else "i"
        size = self._sizes[name]
        columns = np.full((3, size), np.nan)
        for k in range(size):
            hits = [hit for video in videos for hit in video.hits[name][k]]
            if self.mode == "fixed":
                hits.sort(key=lambda hit: -hit[0])
            columns[:, k] = _eleven_points([hit for _, hit in hits], sum(video.truths[name][k] for video in videos))
        answer: dict[str, Any] = {}
        for key, values in zip(("AP", "Rec", "Pre"), columns, strict=True):
            answer |= {key: values, f"m{key}": mean_of(values)}
        counts = np.array([sum(video.association[key] for video in videos) for key in ASSOCIATION_COUNTS], np.float64)
        shares = counts / counts.sum() if counts.sum() else np.full(len(counts), np.nan)
        return answer | dict(zip(ASSOCIATION_COUNTS, shares.tolist(), strict=True))


def _copies(rows: Iterable[Row]) -> list[Row]:
    return [list(row) for row in rows]


def _corners(box: Sequence[float]) -> Row:
    x, y, w, h = box
    return [x, y, w + x, h + y]


def _overlap(a: Sequence[float], b: Sequence[float]) -> float:
    w, h = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    shared = max(w, 0.0) * max(h, 0.0)
    if shared <= 0:
        return 0.0
    areas = sum(max(box[2] - box[0], 0.0) * max(box[3] - box[1], 0.0) for box in (a, b))
    return shared / (areas - shared)


def _eleven_points(hits: list[bool], truths: int) -> tuple[float, float, float]:
    """Mean of the highest precisions at 11 recalls, the highest recall, the highest precision; nan without anything."""
    if not hits and not truths:
        return (np.nan,) * 3
    if not hits or not truths:
        return (0.0,) * 3
    caught: Floats = np.cumsum(hits, dtype=np.float64)
    recall, precision = caught / truths, caught / np.arange(1, len(hits) + 1)
    best = [precision[recall >= point / 10].max(initial=0.0) for point in range(11)]
    return float(np.sum(best) / 11), float(recall.max()), float(precision.max())
