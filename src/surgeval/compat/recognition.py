"""`Recognition` with the calls of ivtmetrics 0.1.5: `update` per batch, `video_end` per video, `compute_*_AP`.

Fixed mode: classes without positives are nan, and a video that was not ended counts once however often one asks.
Legacy mode: classes without positives are 0, which is what the package gives with scikit-learn ≥ 1.6.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from surgeval.arrays import AnyArray, Floats
from surgeval.errors import BadInput
from surgeval.metrics import average_precision, component_max, mean_along, mean_of, top_classes, top_k
from surgeval.vocab import LabelSpace, load_labels

__all__ = ["MODES", "Recognition"]

MODES = ("fixed", "legacy")
SPACES = {100: "cholect50", 89: "prostatd"}  # number of triplets → label space
N_NULL = 6  # CholecT50's last six triplets have neither verb nor target

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
        if mode not in MODES:
            raise BadInput(f"mode {mode!r}: expected one of {', '.join(MODES)}")
        self.num_class, self.ignore_null, self.mode = num_class, ignore_null, mode
        self.reset_global()

    def reset(self) -> None:
        """Forget the current video."""
        self._current: list[Batch] = []

    def reset_global(self) -> None:
        """Forget everything."""
        self._videos: list[list[Batch]] = []
        self.reset()

    def update(self, targets: npt.ArrayLike, predictions: npt.ArrayLike) -> None:
        """Add frames × classes labels (0 or 1) and scores to the current video."""
        labels, scores = np.atleast_2d(np.asarray(targets)), np.atleast_2d(np.asarray(predictions))
        if labels.shape != scores.shape or labels.shape[1] != self.num_class:
            raise BadInput(
                f"update: found targets {labels.shape} and predictions {scores.shape}, "
                f"expected two frames × {self.num_class} arrays"
            )
        self._current.append((labels, scores))

    def video_end(self) -> None:
        """End the current video."""
        self._videos.append(self._current)
        self.reset()

    def compute_AP(self, component: str = "ivt", ignore_null: bool | None = None) -> dict[str, Any]:
        """AP of the current, not yet ended video."""
        return self._answer(self._ap([self._current], component), component, ignore_null)

    def compute_global_AP(self, component: str = "ivt", ignore_null: bool | None = None) -> dict[str, Any]:
        """AP over the frames of all videos ranked together."""
        return self._answer(self._ap(self._seen(), component), component, ignore_null)

    def compute_video_AP(self, component: str = "ivt", ignore_null: bool | None = None) -> dict[str, Any]:
        """Per class, the mean over videos of the AP inside each."""
        rows = [self._ap([video], component) for video in self._seen()]
        per_class = mean_along(np.stack(rows), axis=0) if rows else self._ap([], component)
        return self._answer(per_class, component, ignore_null)

    def topK(self, k: int = 5, component: str = "ivt") -> float:
        """Share of positives among the k highest scores of their frame."""
        labels, scores = self._frames(self._seen(), component)
        return top_k(scores, labels, k)

    def topClass(self, k: int = 10, component: str = "ivt") -> dict[int, float]:
        """The k classes with the highest global AP."""
        return top_classes(self._ap(self._seen(), component), k)

    def extract(self, inputs: npt.ArrayLike, component: str = "i") -> AnyArray:
        """Labels or scores of a component from those of the triplets."""
        return component_max(np.atleast_2d(np.asarray(inputs)), component, self._space(component))

    def _seen(self) -> list[list[Batch]]:
        return [video for video in (*self._videos, self._current) if video]

    def _space(self, component: str) -> LabelSpace:
        if self.num_class not in SPACES:
            known = " or ".join(str(size) for size in SPACES)
            raise BadInput(
                f"component {component!r}: found num_class {self.num_class}, expected {known}; "
                "for other label spaces use surgeval.metrics"
            )
        return load_labels(SPACES[self.num_class])

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

    def _answer(self, ap: Floats, component: str, ignore_null: bool | None) -> dict[str, Any]:
        # ivtmetrics stores the constructor's ignore_null and never reads it.
        default = self.ignore_null and self.mode == "fixed"
        if (default if ignore_null is None else ignore_null) and component == "ivt":
            if self.num_class != 100 and self.mode == "fixed":
                raise BadInput(f"ignore_null: found num_class {self.num_class}, expected the 100 triplets of CholecT50")
            ap = ap[:-N_NULL]
        return {"AP": ap, "mAP": mean_of(ap)}
