"""`Recognition`, `Detection` and `Disentangle` of ivtmetrics 0.1.5: the same calls and result keys.

Change `import ivtmetrics` to `from surgeval.compat import ivtmetrics`.

**Recognition.** Fixed mode: classes without positives are nan, and a video that was not ended counts once, however
often a result is computed. Legacy mode: classes without positives are 0, as the package has it with scikit-learn ≥ 1.6.

**Detection.** A box is a row `[ivt, i, conf, x, y, w, h]`. Legacy mode reproduces the faults of the package. Comparing
two boxes adds a corner to their sizes in place, so a box that is compared twice has grown. Detections are ranked by
score inside a frame only. In the association, the first remaining ground truth can be neither switched nor mislocated,
and detections of classes that the frame does not contain are dropped once nothing else remains. `compute_global_AP`
raises KeyError, because its association counts do not exist. Fixed mode repairs these faults and nothing else: there
are still 11 recall points, `Rec` is the highest recall and `Pre` the highest precision.

**Disentangle.** The package lists `vt` among its components but has no column for it: an IndexError there, `BadInput`
here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from surgeval.arrays import AnyArray, Floats, Ints
from surgeval.errors import BadInput
from surgeval.metrics import (
    ASSOCIATION_COUNTS,
    average_precision,
    component_max,
    mean_along,
    mean_of,
    top_classes,
    top_k,
)
from surgeval.vocab import LabelSpace, load_labels

__all__ = ["Detection", "Disentangle", "Recognition"]


_MODES = ("fixed", "legacy")
_SPACES = {100: "cholect50", 89: "prostatd"}  # number of triplets → label space
_N_NULL = 6  # CholecT50's last six triplets have neither verb nor target

Batch = tuple[AnyArray, AnyArray]


class Recognition:
    """Average precision of triplet recognition, per component.

    >>> metric = Recognition(num_class=100)
    >>> labels, scores = np.zeros((2, 100)), np.zeros((2, 100))
    >>> labels[0, 17] = 1; scores[0, 17] = 0.9
    >>> metric.update(labels, scores); metric.video_end()
    >>> metric.compute_video_AP("i")["mAP"], metric.compute_global_AP("ivt")["mAP"]
    (1.0, 1.0)
    """

    def __init__(self, num_class: int = 100, ignore_null: bool = False, mode: str = "fixed") -> None:
        _check_mode(mode)
        self.num_class, self.ignore_null, self.mode = num_class, ignore_null, mode
        self.reset_global()

    def reset(self) -> None:
        """Discard the current video."""
        self._current: list[Batch] = []

    def reset_global(self) -> None:
        """Discard all videos."""
        self._videos: list[list[Batch]] = []
        self.reset()

    def update(self, targets: npt.ArrayLike, predictions: npt.ArrayLike) -> None:
        """Add frames × classes labels (0 or 1) and scores to the current video."""
        labels, scores = np.atleast_2d(np.asarray(targets)), np.atleast_2d(np.asarray(predictions))
        if labels.shape != scores.shape or labels.shape[1] != self.num_class:
            raise BadInput(
                f"update: targets and predictions must both be frames × {self.num_class} arrays, "
                f"but have the shapes {labels.shape} and {scores.shape}"
            )
        self._current.append((labels, scores))

    def video_end(self) -> None:
        """End the current video."""
        self._videos.append(self._current)
        self.reset()

    def compute_AP(self, component: str = "ivt", ignore_null: bool | None = None) -> dict[str, Any]:
        """AP of the current video, which has not ended."""
        return self._result(self._ap([self._current], component), component, ignore_null)

    def compute_global_AP(self, component: str = "ivt", ignore_null: bool | None = None) -> dict[str, Any]:
        """AP over the frames of all videos ranked together."""
        return self._result(self._ap(self._added_videos(), component), component, ignore_null)

    def compute_video_AP(self, component: str = "ivt", ignore_null: bool | None = None) -> dict[str, Any]:
        """Per class, the mean over videos of the AP inside each."""
        rows = [self._ap([video], component) for video in self._added_videos()]
        per_class = mean_along(np.stack(rows), axis=0) if rows else self._ap([], component)
        return self._result(per_class, component, ignore_null)

    def topK(self, k: int = 5, component: str = "ivt") -> float:
        """Share of the positives whose score is among the k highest of their frame."""
        labels, scores = self._frames(self._added_videos(), component)
        return top_k(scores, labels, k)

    def topClass(self, k: int = 10, component: str = "ivt") -> dict[int, float]:
        """The k classes with the highest global AP."""
        return top_classes(self._ap(self._added_videos(), component), k)

    def extract(self, inputs: npt.ArrayLike, component: str = "i") -> AnyArray:
        """Labels or scores of a component, derived from those of the triplets."""
        return component_max(np.atleast_2d(np.asarray(inputs)), component, self._space(component))

    def _added_videos(self) -> list[list[Batch]]:
        return [video for video in (*self._videos, self._current) if video]

    def _space(self, component: str) -> LabelSpace:
        if self.num_class not in _SPACES:
            known = " or ".join(str(size) for size in _SPACES)
            raise BadInput(
                f"Component {component!r} is known only for num_class {known}, not {self.num_class}. "
                "For other label spaces use surgeval.metrics."
            )
        return load_labels(_SPACES[self.num_class])

    def _frames(self, videos: list[list[Batch]], component: str) -> Batch:
        empty = (np.zeros((0, self.num_class)), np.zeros((0, self.num_class)))
        batches = [batch for video in videos for batch in video] or [empty]
        whole = np.concatenate([b[0] for b in batches]), np.concatenate([b[1] for b in batches])
        if component == "ivt":
            return whole
        space = self._space(component)
        return component_max(whole[0], component, space), component_max(whole[1], component, space)

    def _ap(self, videos: list[list[Batch]], component: str) -> Floats:
        targets, predictions = self._frames(videos, component)
        ap = average_precision(predictions, targets)
        return np.nan_to_num(ap, nan=0.0) if self.mode == "legacy" else ap

    def _result(self, ap: Floats, component: str, ignore_null: bool | None) -> dict[str, Any]:
        # ivtmetrics stores the constructor's ignore_null and never reads it.
        default = self.ignore_null and self.mode == "fixed"
        if (default if ignore_null is None else ignore_null) and component == "ivt":
            if self.num_class != 100 and self.mode == "fixed":
                raise BadInput(f"ignore_null needs the 100 triplets of CholecT50, but num_class is {self.num_class}")
            ap = ap[:-_N_NULL]
        return {"AP": ap, "mAP": mean_of(ap)}


_COMPONENTS = ("ivt", "i", "v", "t", "iv", "it")


class Disentangle:
    """Derives the labels or scores of a component from those of CholecT50's triplets.

    >>> scores = np.zeros((1, 100)); scores[0, [17, 60]] = 0.9, 0.4
    >>> Disentangle().extract(scores, "i").tolist()
    [[0.9, 0.0, 0.4, 0.0, 0.0, 0.0]]
    """

    def __init__(self, url: str = "maps.txt") -> None:
        # ivtmetrics accepts the path of a file and never reads it.
        self.bank = self.map_file()

    def map_file(self) -> Ints:
        """One row per triplet: the ids of triplet, instrument, verb, target, instrument–verb, instrument–target."""
        space = load_labels("cholect50")
        verbs, targets = len(space.verbs), len(space.targets)
        rows = [(k, i, v, t, i * verbs + v, i * targets + t) for k, (i, v, t) in enumerate(space.triplets)]
        return np.array(rows, dtype=np.int64)

    def decompose(self, inputs: npt.ArrayLike, component: str) -> list[Any]:
        """Values of a component in one frame, from its 100 triplet values."""
        return list(self.extract(np.asarray(inputs)[None], component)[0])

    def extract(self, inputs: npt.ArrayLike, component: str = "i") -> AnyArray:
        """Values of a component from frames × 100 triplet values: the highest of each class."""
        values = np.asarray(inputs)
        if component not in _COMPONENTS:
            raise BadInput(f"Unknown component {component!r}. Use one of {', '.join(_COMPONENTS)}.")
        if values.ndim != 2 or values.shape[1] != len(self.bank):
            raise BadInput(
                f"extract: expected an array of frames × {len(self.bank)} triplets, got the shape {values.shape}"
            )
        return values if component == "ivt" else component_max(values, component, load_labels("cholect50"))


class _Counted(Protocol):
    @property
    def n_frames(self) -> int: ...


V = TypeVar("V", bound=_Counted)


class VideoByVideo(Generic[V]):
    """Base of both `Detection` classes: the mode, and one count per video.

    Videos are numbered from 1; the current one is last.
    """

    def __init__(self, mode: str) -> None:
        _check_mode(mode)
        self.mode = mode
        self._videos: dict[int, V] = {}
        self.reset()

    def reset(self) -> None:
        """Discard all videos. In legacy mode, videos after the first stay in the global results until overwritten."""
        if self.mode == "fixed":
            self._videos = {}
        self._count = 0
        self.video_end()

    def reset_global(self) -> None:
        """The same as `reset`."""
        self.reset()

    def video_end(self) -> None:
        """End the current video."""
        if self.mode == "fixed" and self._count and not self._videos[self._count].n_frames:
            return
        self._count += 1
        self._videos[self._count] = self._new_video()
        self._ended = True
        self._clear_results()

    def _new_video(self) -> V:
        raise NotImplementedError

    def _clear_results(self) -> None:
        """Discard cached results: the frames have changed."""

    def _check_frames(self, targets: Sequence[Any], predictions: Sequence[Any], format: str) -> None:
        if format not in ("list", "dict"):
            raise BadInput(f"Unknown format {format!r}. Use 'list' or 'dict'.")
        for kind, frames in (("targets", targets), ("predictions", predictions)):
            _check_nested_lists(frames, f"update: {kind}")
        if len(targets) != len(predictions) and self.mode == "fixed":
            raise BadInput(
                f"update: {len(targets)} frames of targets and {len(predictions)} of predictions; "
                "both must have the same frames"
            )


def _check_nested_lists(frames: Any, where: str) -> None:
    """Raise `BadInput` unless `frames` is a sequence of frames, each a sequence of boxes."""
    if not _is_sequence(frames):
        raise BadInput(f"{where} must be a list of frames, got {frames!r:.60}")
    for frame in frames:
        if not _is_sequence(frame):
            raise BadInput(f"{where}: each frame must be a list of boxes, got {frame!r:.60}")


def _is_sequence(value: Any) -> bool:
    return hasattr(value, "__len__") and hasattr(value, "__iter__") and not isinstance(value, str)


def _check_mode(mode: str) -> None:
    if mode not in _MODES:
        raise BadInput(f"Unknown mode {mode!r}. Use one of {', '.join(_MODES)}.")


_COLUMN = {"ivt": 0, "i": 1}
_SCORE, _BOX, _WIDTH = 2, 3, 7  # columns of score and box; number of columns
_ANY_OVERLAP = float(np.nextafter(0, 1))  # the smallest positive overlap

Row = list[float]
Hits = list[tuple[float, bool]]


@dataclass
class _CountedVideo:
    """Counts of one video: per component and class, the scored detections (hit or not) and the number of truths."""

    sizes: dict[str, int]
    hits: dict[str, list[Hits]] = field(init=False)
    truths: dict[str, list[int]] = field(init=False)
    association: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ASSOCIATION_COUNTS, 0))
    n_frames: int = 0

    def __post_init__(self) -> None:
        self.hits = {name: [[] for _ in range(size)] for name, size in self.sizes.items()}
        self.truths = {name: [0] * size for name, size in self.sizes.items()}


class Detection(VideoByVideo[_CountedVideo]):
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
        for component, column in _COLUMN.items():
            for row in truths:
                video.truths[component][int(row[column])] += 1
            self._match(video.hits[component], _copies(truths), _copies(detections), column)
        for count, number in self._associate(_copies(truths), _copies(detections)).items():
            video.association[count] += number

    def compute_AP(self, component: str = "ivt") -> dict[str, Any]:
        """Results of the last video: the current one, or the one just ended."""
        last = self._count - 1 if self._ended else self._count
        return self._compute([self._videos.get(last, _CountedVideo(self._sizes))], component)

    def compute_video_AP(self, component: str = "ivt") -> dict[str, Any]:
        """Results per class, averaged over videos."""
        videos = [self._compute([self._videos[number + 1]], component) for number in range(self._count)]
        answer: dict[str, Any] = {}
        for key in ("AP", "Rec", "Pre"):
            answer[key] = mean_along(np.stack([video[key] for video in videos]), axis=0)
            answer[f"m{key}"] = mean_of(answer[key])
        return answer | {key: mean_of(np.array([video[key] for video in videos])) for key in ASSOCIATION_COUNTS}

    def compute_global_AP(self, component: str = "ivt") -> dict[str, Any]:
        """Results over the frames of all videos together. Legacy mode raises KeyError, as the package does."""
        if self.mode == "legacy":
            raise KeyError("fp")
        return self._compute(list(self._videos.values()), component)

    def extract(self, inputs: npt.ArrayLike, component: str = "i") -> AnyArray:
        """Labels or scores of a component, derived from those of the triplets."""
        return Disentangle().extract(inputs, component)

    def _rows(self, boxes: Sequence[Any], format: str, where: str) -> list[Row]:
        """Rows of a frame, highest score first; equal scores in reversed order, as in the package."""
        try:
            rows = [[box["triplet"], *box["instrument"]] if format == "dict" else box for box in boxes]
            table = np.array([row for row in rows if len(row)], dtype=np.float64)
        except (KeyError, OverflowError, TypeError, ValueError) as error:
            raise BadInput(f"{where}: the rows must hold numbers: {error}") from error
        if not len(table):
            return []
        if table.ndim != 2 or table.shape[1] != _WIDTH:
            raise BadInput(f"{where}: expected rows [ivt, i, conf, x, y, w, h], got {table.shape[-1]} columns")
        for component, column in _COLUMN.items():
            ids = table[:, column]
            if not (np.isfinite(ids).all() and (ids >= 0).all() and (ids < self._sizes[component]).all()):
                raise BadInput(
                    f"{where}: {component} ids must lie between 0 and {self._sizes[component] - 1}: "
                    f"{ids.tolist()!s:.60}"
                )
        scores = table[:, _SCORE]
        order = (scores.argsort() if self.mode == "legacy" else scores.argsort(kind="stable"))[::-1]
        return [row.tolist() for row in table[order]]

    def _match(self, hits: list[Hits], truths: list[Row], detections: list[Row], column: int) -> None:
        """Match each detection with the first free truth of its class whose overlap reaches the threshold."""
        for row in detections:
            match = next(
                (k for k, truth in enumerate(truths)
                 if truth[column] == row[column] and self._iou(truth, row, both=True) >= self.threshold), None
            )  # fmt: skip
            if match is not None:
                del truths[match]
            hits[int(row[column])].append((row[_SCORE], match is not None))

    def _iou(self, truth: Row, detection: Row, *, both: bool) -> float:
        """IoU of two boxes.

        Legacy mode changes the truth in place: its size becomes the far corner and grows again at the next call. With
        `both` it changes the detection too, as the package does where it holds detections in an array.
        """
        if self.mode == "fixed":
            return _overlap(_corners(truth[_BOX:]), _corners(detection[_BOX:]))
        truth[_BOX:] = _corners(truth[_BOX:])
        far = _corners(detection[_BOX:])
        if both:
            detection[_BOX:] = far
        return _overlap(truth[_BOX:], far)

    def _associate(self, truths: list[Row], detections: list[Row]) -> dict[str, int]:
        """Association counts of a frame. Each detection counts once, under the first step below that applies."""
        if not truths or not detections:
            return {"fp": len(detections), "fn": len(truths)}
        present = {row[0] for row in truths}
        absent = [row for row in detections if row[0] not in present]
        left = [row for row in detections if row[0] in present]
        counts: dict[str, int] = {}
        left, counts["lm"] = self._match_by(left, truths, lambda row: self._same_class(row, truths, self.threshold))
        left, counts["plm"] = self._match_by(left, truths, lambda row: self._same_class(row, truths, _ANY_OVERLAP))
        left, counts["ids"] = self._match_by(left, truths, lambda row: self._switched(row, truths))
        if left or self.mode == "fixed":
            every = [*absent, *left]
            left = [row for row in every if not self._covers(row, truths)]
            counts["idm"] = len(every) - len(left)
        left, counts["mil"] = self._match_by(left, truths, lambda row: self._first_of_class(row, truths))
        return {**counts, "fp": len(left), "fn": len(truths)}

    def _match_by(
        self, detections: list[Row], truths: list[Row], find: Callable[[Row], int | None]
    ) -> tuple[list[Row], int]:
        """Match each detection with the truth that `find` returns: the unmatched detections, and the number matched."""
        left = []
        for row in detections:
            match = find(row)
            if match is None:
                left.append(row)
            else:
                del truths[match]
        return left, len(detections) - len(left)

    def _same_class(self, row: Row, truths: list[Row], least: float) -> int | None:
        pairs = enumerate(truths)
        return next(
            (k for k, truth in pairs if truth[0] == row[0] and self._iou(truth, row, both=False) >= least), None
        )

    def _switched(self, row: Row, truths: list[Row]) -> int | None:
        """A detection that overlaps one truth but has the class of another: the index of that other."""
        for truth in truths:
            if (
                self._iou(truth, row, both=False) > self.threshold
                and (partner := self._first_of_class(row, truths)) is not None
            ):
                return partner
        return None

    def _covers(self, row: Row, truths: list[Row]) -> bool:
        return any(self._iou(truth, row, both=False) > self.threshold for truth in truths)

    def _first_of_class(self, row: Row, truths: list[Row]) -> int | None:
        """Index of the first truth of the detection's class. Legacy mode reads index 0 as none, as the package does."""
        first = next((k for k, truth in enumerate(truths) if truth[0] == row[0]), None)
        return None if first == 0 and self.mode == "legacy" else first

    def _compute(self, videos: list[_CountedVideo], component: str) -> dict[str, Any]:
        if component not in _COLUMN and self.mode == "fixed":
            raise BadInput(f"Unknown component {component!r}. Use 'ivt' or 'i'.")
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
    """Eleven-point AP, highest recall and highest precision; all nan without detections and truths."""
    if not hits and not truths:
        return (np.nan,) * 3
    if not hits or not truths:
        return (0.0,) * 3
    caught: Floats = np.cumsum(hits, dtype=np.float64)
    recall, precision = caught / truths, caught / np.arange(1, len(hits) + 1)
    best = [precision[recall >= point / 10].max(initial=0.0) for point in range(11)]
    return float(np.sum(best) / 11), float(recall.max()), float(precision.max())
