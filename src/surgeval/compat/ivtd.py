"""`Detection` and `Recognition` of ivtdmetrics: the same calls and result keys.

Change `from ivtdmetrics…` to `from surgeval.compat.ivtd`. A box is a row `[ivt, i, conf, x, y, w, h]` or
`[ivt, i, conf, v, t, x, y, w, h]`. Fixed mode uses the convention `ivtd`: ill-formed input is an error and `reset`
discards all videos. Legacy mode uses `ivtd-legacy` and reproduces the faults of the class itself: frames without a
counterpart are dropped, old videos survive a reset in the global results, and an empty last video counts where
ivtdmetrics counts it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from surgeval.arrays import Floats, Ints
from surgeval.compat.ivtmetrics import Recognition, VideoByVideo
from surgeval.errors import BadInput
from surgeval.metrics import (
    ASSOCIATION_COUNTS,
    Association,
    Boxes,
    ComponentResult,
    Convention,
    DetectionSet,
    Scores,
    Visits,
    associate,
    rank_detections,
    score_component,
    top_classes,
    visits,
)

__all__ = ["Detection", "Recognition"]


_COLUMN = {"ivt": 0, "i": 1, "v": 3, "t": 4}
_KEYS = {"AP": "AP", "Rec": "recall", "Pre": "precision", "F1": "F1"}
_KEYS_5095 = {"AP_5095": "AP_5095", "AR_5095": "AR"}


@dataclass
class _VideoRows:
    """Rows of one video, all with 9 columns: rows of 7 get verb and target −1."""

    n_frames: int = 0
    filled: list[bool] = field(default_factory=list)  # per frame: whether it has rows
    with_verbs: list[bool] = field(default_factory=list)  # per frame: whether its rows have 9 columns
    tables: dict[str, list[Floats]] = field(default_factory=lambda: {"targets": [], "predictions": []})
    frames: dict[str, list[Ints]] = field(default_factory=lambda: {"targets": [], "predictions": []})


class Detection(VideoByVideo[_VideoRows]):
    """Detection and association metrics of surgical triplets, as ivtdmetrics computes them.

    >>> metric = Detection(num_class=89, num_tool=7)
    >>> rows = [[[22, 1, 1.0, 0, 0, 0.1, 0.1, 0.2, 0.2]]]
    >>> metric.update(rows, rows); metric.video_end()
    >>> round(metric.compute_global_AP("ivt")["mAP"], 4), metric.compute_video_AP("v")["lm"]
    (0.995, 1.0)
    """

    def __init__(
        self,
        num_class: int = 89,
        num_tool: int = 7,
        num_verb: int = 10,
        num_target: int = 10,
        threshold: float = 0.5,
        enable_map5095: bool = True,
        mode: str = "fixed",
    ) -> None:
        self.threshold, self.enable_map5095 = threshold, enable_map5095
        self.num_class, self.num_tool, self.num_verb, self.num_target = num_class, num_tool, num_verb, num_target
        self._sizes = {"ivt": num_class, "i": num_tool, "v": num_verb, "t": num_target}
        self._convention: Convention = "ivtd" if mode == "fixed" else "ivtd-legacy"
        super().__init__(mode)

    def _new_video(self) -> _VideoRows:
        return _VideoRows()

    def update(self, targets: Sequence[Any], predictions: Sequence[Any], format: str = "list") -> None:
        """Add frames: for each, the rows of its ground truths and of its predictions.

        `format="dict"` takes `{"triplet": id, "instrument": [id, conf, x, y, w, h]}` per box, with `"verb"` and
        `"target"` ids where known.
        """
        self._check_frames(targets, predictions, format)
        video = self._videos[self._count]
        n = min(len(targets), len(predictions))
        added = {
            kind: _rows(frames[:n], format, kind, video.n_frames)
            for kind, frames in (("targets", targets), ("predictions", predictions))
        }
        widths = np.stack([added["targets"][2], added["predictions"][2]])
        mixed = np.flatnonzero((widths[0] > 0) & (widths[1] > 0) & (widths[0] != widths[1]))
        if mixed.size:
            raise BadInput(
                f"frame {video.n_frames + int(mixed[0])}: rows of {widths[0, mixed[0]]} and of "
                f"{widths[1, mixed[0]]} columns; all rows of a frame must have the same number"
            )
        for kind, (table, frame, _) in added.items():
            video.tables[kind].append(table)
            video.frames[kind].append(frame)
        video.filled += (widths.max(axis=0) > 0).tolist()
        video.with_verbs += (widths.max(axis=0) == 9).tolist()
        video.n_frames += n
        self._ended = False
        self._clear_results()

    def compute_AP(self, component: str = "ivt", style: str = "coco") -> dict[str, Any]:
        """Results of the last video: the current one, or the one just ended."""
        last = self._count - 1 if self._ended else self._count
        return self._combine(self._result((last,), component, style).overall, self._association((last,)).overall())

    def compute_video_AP(self, component: str = "ivt", style: str = "coco") -> dict[str, Any]:
        """Results per class, averaged over videos."""
        videos = self._scope(range(1, self._count + 1))
        return self._combine(self._result(videos, component, style).video_wise, self._association(videos).video_wise())

    def compute_global_AP(self, component: str = "ivt", style: str = "coco") -> dict[str, Any]:
        """Results with the detections of all videos ranked together."""
        videos = self._scope(self._videos)
        return self._combine(self._result(videos, component, style).overall, self._association(videos).overall())

    def topClass(self, k: int = 10, component: str = "ivt", style: str = "coco") -> dict[int, float]:
        """The k classes with the highest global AP."""
        return top_classes(self._result(self._scope(self._videos), component, style).overall.AP, k)

    def _clear_results(self) -> None:
        self._results: dict[tuple[tuple[int, ...], str, str], ComponentResult] = {}
        self._tables: dict[tuple[tuple[int, ...], bool], tuple[DetectionSet, Visits]] = {}
        self._associations: dict[tuple[int, ...], Association] = {}

    def _scope(self, videos: Iterable[int]) -> tuple[int, ...]:
        return tuple(v for v in videos if self.mode == "legacy" or self._videos[v].n_frames)

    def _result(self, videos: tuple[int, ...], component: str, style: str) -> ComponentResult:
        if component not in self._sizes:
            raise BadInput(f"Unknown component {component!r}. Use one of {', '.join(self._sizes)}.")
        key = (videos, component, "coco" if style == "coco" else "11point")
        if key not in self._results:
            data, order = self._table(videos, component in ("v", "t"))
            size = self._sizes[component]
            ranked = rank_detections(data, component, size, self._convention, iou=self.threshold, order=order)
            self._results[key] = score_component(ranked, style=key[2], averages=self.enable_map5095)
        return self._results[key]

    def _association(self, videos: tuple[int, ...]) -> Association:
        if videos not in self._associations:
            data, order = self._table(videos, False)
            self._associations[videos] = associate(data, self._convention, iou=self.threshold, order=order)
        return self._associations[videos]

    def _table(self, videos: tuple[int, ...], verbs: bool) -> tuple[DetectionSet, Visits]:
        """Boxes of these videos; with `verbs`, only of the frames that have verbs and targets."""
        selected = [self._videos.get(v, _VideoRows()) for v in videos]
        scored = np.array([flag for v in selected for flag in v.with_verbs], dtype=bool)
        filled = np.array([flag for v in selected for flag in v.filled], dtype=bool)
        everywhere = bool(scored[filled].all())
        if verbs and not everywhere and scored.any() and self.mode == "fixed":
            odd = int(np.flatnonzero(filled & ~scored)[0])
            raise BadInput(
                f"frame {odd}: its rows have 7 columns; verbs and targets can be scored only if all rows have 9"
            )
        verbs = verbs or everywhere
        if (videos, verbs) not in self._tables:
            offsets = np.cumsum([0, *(v.n_frames for v in selected)])
            boxes = []
            for kind in ("targets", "predictions"):
                table = np.concatenate([np.zeros((0, 9)), *(part for v in selected for part in v.tables[kind])])
                numbers = (part + offsets[k] for k, v in enumerate(selected) for part in v.frames[kind])
                frame = np.concatenate([np.zeros(0, np.int64), *numbers])
                if verbs and not everywhere:
                    table, frame = table[scored[frame]], frame[scored[frame]]
                classes = {c: table[:, k] for c, k in _COLUMN.items() if verbs or c in ("ivt", "i")}
                boxes.append(Boxes.of(frame, classes, table[:, 5:], table[:, 2], name=kind))
            video = np.repeat(np.arange(len(selected)), [v.n_frames for v in selected])
            data = DetectionSet.of(boxes[1], boxes[0], video, n_videos=len(selected))
            self._tables[videos, verbs] = data, visits(data, self._convention)
        return self._tables[videos, verbs]

    def _combine(self, scores: Scores, association: Floats) -> dict[str, Any]:
        answer: dict[str, Any] = {}
        for key, name in (_KEYS | _KEYS_5095 if self.enable_map5095 else _KEYS).items():
            answer |= {key: getattr(scores, name), f"m{key}": scores.mean(name)}
        return answer | dict(zip(ASSOCIATION_COUNTS, association.tolist(), strict=True))


def _rows(frames: Sequence[Any], format: str, kind: str, first: int) -> tuple[Floats, Ints, Ints]:
    """All rows with 9 columns, the frame number of each, and per frame the number of columns given (0 without rows)."""
    rows: list[Any] = []
    count, width = np.zeros(len(frames), np.int64), np.zeros(len(frames), np.int64)
    for number, frame in enumerate(frames):
        boxes = [_from_dict(box, kind, first + number) if format == "dict" else box for box in frame]
        if wrong := [box for box in boxes if not hasattr(box, "__len__")]:
            raise BadInput(f"frame {first + number}: {kind}: expected rows of numbers, got {wrong[0]!r:.80}")
        boxes = [box for box in boxes if len(box)]  # an empty frame may be written [[]]
        sizes = {len(box) for box in boxes}
        if sizes - {7, 9} or len(sizes) > 1:
            raise BadInput(
                f"frame {first + number}: {kind}: rows must have 7 columns [ivt, i, conf, x, y, w, h] or 9 "
                f"[ivt, i, conf, v, t, x, y, w, h], got {', '.join(map(str, sorted(sizes)))}"
            )
        count[number], width[number] = len(boxes), max(sizes, default=0)
        rows += boxes if width[number] != 7 else [[*box[:3], -1, -1, *box[3:]] for box in boxes]
    try:
        table = np.array(rows, dtype=np.float64).reshape(len(rows), 9)
    except (OverflowError, TypeError, ValueError) as error:
        raise BadInput(f"{kind}: the rows must hold numbers: {error}") from error
    return table, np.repeat(np.arange(first, first + len(frames)), count), width


def _from_dict(box: Any, kind: str, frame: int) -> list[float]:
    try:
        tool, conf, *xywh = box["instrument"]
        ids = [box["verb"], box["target"]] if "verb" in box and "target" in box else []
        return [box["triplet"], tool, conf, *ids, *xywh]
    except (KeyError, TypeError, ValueError) as error:
        expected = '{"triplet": id, "instrument": [id, conf, x, y, w, h]}'
        raise BadInput(f"frame {frame}: {kind}: expected {expected}, got {box!r:.80}") from error
