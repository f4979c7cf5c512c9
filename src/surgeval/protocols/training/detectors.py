"""A way to get a detector: how it learns from the videos of a fold, and how what it learned detects in others.

`tdnet` and `rtdetr` are surgeval's own. Anything else that trains and detects is a `TrainableDetector` too; the folds,
the scores and the page do not ask how.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from surgeval.datasets import Dataset
from surgeval.protocols.training.scheme import Fold
from surgeval.records import Frame

if TYPE_CHECKING:
    from surgeval.detector.data import TrainingSet
    from surgeval.detector.nms import Selecting
    from surgeval.detector.training import TrainSettings

__all__ = ["FoldDetections", "Tell", "TrainableDetector", "default_settings", "trainable_rtdetr", "trainable_tdnet"]

Tell: TypeAlias = Callable[[str], None]
Learn: TypeAlias = Callable[[Dataset, Fold, Path, Tell], None]
Detect: TypeAlias = "Callable[[Dataset, Sequence[str], Path], FoldDetections]"


@dataclass(frozen=True)
class FoldDetections:
    """The boxes of some videos, in the columns that `score_triplets` reads, and what finding them took.

    >>> FoldDetections(pl.DataFrame(), frames=120, seconds=4.0).frames_per_second
    30.0
    """

    table: pl.DataFrame
    frames: int
    seconds: float
    device: str = "cpu"

    @property
    def frames_per_second(self) -> float | None:
        """End to end: reading, preparing, network, selecting."""
        return self.frames / self.seconds if self.frames and self.seconds > 0 else None


@dataclass(frozen=True)
class TrainableDetector:
    """`learn` trains into a folder and resumes what it finds there; `detect` uses the detector of that folder.

    `identity` is everything that decides what is learned, as JSON values: a folder of another identity is refused.
    """

    name: str
    identity: Mapping[str, Any]
    learn: Learn
    detect: Detect


def trainable_tdnet(
    settings: TrainSettings, *, weights: str | Path | None = None, selecting: Selecting | None = None,
    name: str | None = None,
) -> TrainableDetector:  # fmt: skip
    """TDnet by these settings, from `weights` where given; without `selecting` every detector is evaluated alike.

    >>> from surgeval.detector.training import TrainSettings
    >>> trainable_tdnet(TrainSettings(size="n", epochs=2)).name
    'TDnet-n'
    """
    from surgeval.detector.training import train_tdnet

    return _method("tdnet", name or f"TDnet-{settings.size}", train_tdnet, settings, weights, selecting)


def trainable_rtdetr(
    settings: TrainSettings, *, weights: str | Path | None = None, selecting: Selecting | None = None,
    name: str | None = None,
) -> TrainableDetector:  # fmt: skip
    """RT-DETR by these settings, evaluated as TDnet is.

    >>> from surgeval.detector.rtdetr import rtdetr_settings
    >>> trainable_rtdetr(rtdetr_settings(epochs=2)).name
    'RT-DETR-r18'
    """
    from surgeval.detector.rtdetr import train_rtdetr

    return _method("rtdetr", name or f"RT-DETR-{settings.size}", train_rtdetr, settings, weights, selecting)


def default_settings(detector: str) -> TrainSettings:
    """The settings of a detector as they are where nothing is said.

    >>> default_settings("tdnet").size, default_settings("rtdetr").size
    ('n', 'r18')
    """
    from surgeval.detector.rtdetr import rtdetr_settings
    from surgeval.detector.training import TrainSettings

    return TrainSettings() if detector == "tdnet" else rtdetr_settings()


def _method(
    kind: str, name: str, train: Callable[..., Any], settings: TrainSettings, weights: str | Path | None,
    selecting: Selecting | None,
) -> TrainableDetector:  # fmt: skip
    from surgeval.detector.nms import Selecting as Default

    choice = selecting or Default()
    pictures = _WholeTrainingSet(settings.image_size)

    def learn(dataset: Dataset, fold: Fold, out: Path, tell: Tell) -> None:
        whole = pictures.of(dataset)
        validation = whole.of_videos(fold.val) if fold.val else None
        train(whole.of_videos(fold.train), validation, whole.classes, out, settings, weights=weights, progress=tell)

    identity = {"detector": kind, "settings": settings.identity(), "selecting": asdict(choice)}
    if weights is not None:
        identity["weights"] = Path(weights).name
    return TrainableDetector(name, identity, learn, _detecting(settings, choice))


class _WholeTrainingSet:
    """The training set of a whole dataset, made once for all folds: decoding takes longer than choosing videos."""

    def __init__(self, image_size: int) -> None:
        self._size = image_size
        self._known: tuple[Dataset, TrainingSet] | None = None

    def of(self, dataset: Dataset) -> TrainingSet:
        from surgeval.detector import Classes
        from surgeval.detector.data import TrainingSet

        if self._known is None or self._known[0] is not dataset:
            self._known = dataset, TrainingSet.of(dataset, Classes.of(dataset.space), image_size=self._size)
        return self._known[1]


def _detecting(settings: TrainSettings, selecting: Selecting) -> Detect:
    def detect(dataset: Dataset, videos: Sequence[str], trained: Path) -> FoldDetections:
        from surgeval.detector.inference import detect_frames, detection_table, open_detector

        network = open_detector(trained, device=settings.device)
        start = time.perf_counter()
        seen = list(detect_frames(network, _labelled(dataset, videos), selecting=selecting, batch=settings.batch))
        seconds = time.perf_counter() - start
        table = detection_table(seen, network.classes, probabilities=False)
        return FoldDetections(table, len(seen), seconds, str(settings.device))

    return detect


def _labelled(dataset: Dataset, videos: Sequence[str]) -> Iterator[Frame]:
    for video in videos:
        yield from (frame for frame in dataset.frames(video) if frame.labelled)
