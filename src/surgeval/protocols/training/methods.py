"""A way to get a detector: how it learns from the videos of a fold, and how what it learned detects in others.

`tdnet` and `rtdetr` are surgeval's own. Anything else that trains and detects is a `Method` too; the folds, the scores
and the page do not ask how.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from surgeval.datasets import Dataset
from surgeval.protocols.training.scheme import Fold
from surgeval.records import Frame

if TYPE_CHECKING:
    from surgeval.detector import Found, Selecting, TrainSettings

__all__ = ["Detected", "Method", "default_settings", "detections_table", "rtdetr", "tdnet"]

_ELSEWHERE = ("device", "workers")  # where a training runs is not what it is
Learn = Callable[[Dataset, Fold, Path], None]
Detect = Callable[[Dataset, Sequence[str], Path], "Detected"]


@dataclass(frozen=True)
class Detected:
    """The boxes of some videos, in the columns that `score_triplets` reads, and what finding them took."""

    table: pl.DataFrame
    frames: int
    seconds: float
    device: str = "cpu"

    @property
    def frames_per_second(self) -> float | None:
        """End to end: reading, preparing, network, selecting."""
        return self.frames / self.seconds if self.frames and self.seconds > 0 else None


@dataclass(frozen=True)
class Method:
    """`learn` trains into a folder and resumes what it finds there; `detect` uses the detector of that folder.

    `identity` is everything that decides what is learned, as JSON values: a folder of another identity is refused.
    """

    name: str
    identity: Mapping[str, Any]
    learn: Learn
    detect: Detect


def tdnet(settings: TrainSettings, *, selecting: Selecting | None = None, name: str | None = None) -> Method:
    """TDnet by these settings; every detector is evaluated alike: the default of `selecting`.

    >>> from surgeval.detector import TrainSettings
    >>> tdnet(TrainSettings(size="n", epochs=2)).name
    'TDnet-n'
    """
    from surgeval.detector import train_tdnet

    def learn(dataset: Dataset, fold: Fold, out: Path) -> None:
        train, validation, classes = _sets(dataset, fold, settings)
        train_tdnet(train, validation, classes, out, settings)

    title = name or f"TDnet-{settings.size}"
    return Method(title, _identity("tdnet", settings, selecting), learn, _detecting(settings, selecting))


def rtdetr(settings: Any, *, selecting: Selecting | None = None, name: str = "RT-DETR") -> Method:
    """RT-DETR by these settings, evaluated as TDnet is.

    >>> from surgeval.detector import RTDetrSettings
    >>> rtdetr(RTDetrSettings(epochs=2)).name
    'RT-DETR'
    """
    from surgeval.detector import train_rtdetr

    def learn(dataset: Dataset, fold: Fold, out: Path) -> None:
        train, validation, classes = _sets(dataset, fold, settings)
        train_rtdetr(train, validation, classes, out, settings)

    return Method(name, _identity("rtdetr", settings, selecting), learn, _detecting(settings, selecting))


def default_settings(detector: str) -> Any:
    """The settings of a detector as they are where nothing is said.

    >>> default_settings("tdnet").size
    'n'
    """
    from surgeval.detector import RTDetrSettings, TrainSettings

    return TrainSettings() if detector == "tdnet" else RTDetrSettings()


def _identity(kind: str, settings: Any, selecting: Selecting | None) -> dict[str, Any]:
    from surgeval.detector import Selecting as Default

    chosen = {key: value for key, value in asdict(settings).items() if key not in _ELSEWHERE}
    return {"detector": kind, "settings": chosen, "selecting": asdict(selecting or Default())}


def _sets(dataset: Dataset, fold: Fold, settings: Any) -> tuple[Any, Any, Any]:
    from surgeval.detector import Classes, TrainingSet

    classes = Classes.of(dataset.space)

    def of(videos: Sequence[str]) -> Any:
        return TrainingSet.of(dataset, classes, image_size=settings.image_size, videos=videos)

    return of(fold.train), of(fold.val) if fold.val else None, classes


def _detecting(settings: Any, selecting: Selecting | None) -> Detect:
    def detect(dataset: Dataset, videos: Sequence[str], trained: Path) -> Detected:
        from surgeval.detector import Selecting as Default
        from surgeval.detector import detect_frames, open_detector

        network = open_detector(trained / "detector.safetensors", device=settings.device, half=False)
        start = time.perf_counter()
        chosen = selecting or Default()
        rows = list(detect_frames(network, _labelled(dataset, videos), selecting=chosen, batch=settings.batch))
        seconds = time.perf_counter() - start
        main = "triplet" if network.classes.main == "ivt" else "instrument"
        return Detected(detections_table(rows, main), len(rows), seconds, str(settings.device))

    return detect


def _labelled(dataset: Dataset, videos: Sequence[str]) -> Iterator[Frame]:
    for video in videos:
        yield from (frame for frame in dataset.frames(video) if frame.labelled)


def detections_table(found: Sequence[tuple[Frame, Found]], main: str) -> pl.DataFrame:
    """Boxes of frames as rows; `main` says what a class is: triplet or instrument."""
    counts = [len(boxes.scores) for _, boxes in found]
    corners = _joined([boxes.boxes for _, boxes in found]).reshape(-1, 4).astype(np.float64)
    columns: dict[str, Any] = {
        "video": np.repeat([frame.video for frame, _ in found], counts).tolist(),
        "frame": np.repeat([frame.name for frame, _ in found], counts).tolist(),
        main: _joined([boxes.classes for _, boxes in found]).astype(np.int32),
        "score": _joined([boxes.scores for _, boxes in found]).astype(np.float64),
        "x": corners[:, 0], "y": corners[:, 1],
        "w": corners[:, 2] - corners[:, 0], "h": corners[:, 3] - corners[:, 1],
    }  # fmt: skip
    return pl.DataFrame(columns, schema_overrides={"video": pl.String, "frame": pl.String})


def _joined(parts: Sequence[Any]) -> npt.NDArray[Any]:
    arrays = [np.asarray(part.cpu() if hasattr(part, "cpu") else part) for part in parts]
    return np.concatenate(arrays) if arrays else np.zeros(0)
