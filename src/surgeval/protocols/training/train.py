"""Train one detector on the videos of a dataset, a fold or all sources but one: `train`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from surgeval.datasets import Dataset, Sources, open_dataset
from surgeval.errors import BadInput
from surgeval.protocols.training.scheme import Fold
from surgeval.protocols.training.single import choose_videos, usual_scheme
from surgeval.results import counted

if TYPE_CHECKING:
    from surgeval.detector.data import TrainingSet
    from surgeval.detector.training import Trained, TrainSettings

__all__ = ["DetectorName", "TaskName", "check_settings", "describe_sets", "train", "training_sets", "usual_settings"]

DetectorName: TypeAlias = Literal["tdnet", "rtdetr"]
TaskName: TypeAlias = Literal["triplets", "instruments"]


def train(
    data: Dataset | str | Path,
    model: DetectorName,
    out: str | Path,
    *,
    settings: TrainSettings | None = None,
    scheme: str | None = None,
    fold: str | None = None,
    source: str | None = None,
    sources: Sources | None = None,
    validation: Sequence[str] = (),
    split: bool | None = None,
    task: TaskName | None = None,
    weights: str | Path | None = None,
    format: str | None = None,
    labels: str | Path | None = None,
    progress: Callable[[str], None] = lambda _line: None,
) -> Trained:
    """Train TDnet or RT-DETR; an unfinished training in `out` with the same settings and data is resumed.

    The videos are those of a `fold` of a `scheme`, of every source but `source`, of the dataset's own split if it has
    one, or all (`choose_videos`). The best epoch is chosen on the `validation` videos. `weights` is a detector to begin
    with, and `progress` is called with a line per epoch.

    >>> import tempfile
    >>> from surgeval.detector.training import TrainSettings
    >>> from surgeval.phantom import write_phantom
    >>> short = TrainSettings(size="p", epochs=1, batch=4, image_size=64, student_epochs=0, workers=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_phantom(f"{folder}/phantom", videos=1, seconds=2, progress=False)
    ...     trained = train(f"{folder}/phantom", "tdnet", f"{folder}/run", settings=short, split=False)
    ...     trained.detector.name
    'detector.safetensors'
    """
    chosen = settings or usual_settings(model)
    check_settings(model, chosen)
    dataset = open_dataset(data, format=format, labels=labels) if isinstance(data, str | Path) else data
    videos = choose_videos(
        dataset.videos(), scheme=scheme or usual_scheme(dataset.space.name), fold=fold, source=source, sources=sources,
        validation=validation, split=split,
    )  # fmt: skip
    frames, unseen = training_sets(dataset, videos, task, chosen)
    for line in describe_sets(videos, frames, unseen):
        progress(line)
    if model == "tdnet":
        from surgeval.detector.training import train_tdnet

        return train_tdnet(frames, unseen, frames.classes, out, chosen, weights=weights, progress=progress)
    from surgeval.detector import train_rtdetr

    return train_rtdetr(frames, unseen, frames.classes, out, chosen, weights=weights, progress=progress)


def usual_settings(model: DetectorName) -> TrainSettings:
    """The default settings of a detector.

    >>> usual_settings("tdnet").size, usual_settings("rtdetr").size
    ('n', 'r18')
    """
    if model == "tdnet":
        from surgeval.detector.training import TrainSettings

        return TrainSettings()
    if model == "rtdetr":
        from surgeval.detector import rtdetr_settings

        return rtdetr_settings()
    raise BadInput(f"Unknown detector {model!r}. Known: tdnet, rtdetr.")


def check_settings(model: DetectorName, settings: TrainSettings) -> None:
    """Refuse an unknown size or device before thousands of frames are read.

    >>> from dataclasses import replace
    >>> check_settings("tdnet", replace(usual_settings("tdnet"), size="huge"))
    Traceback (most recent call last):
    surgeval.errors.BadInput: size: found 'huge', expected one of p, n, s, m, l
    """
    from surgeval.detector import SIZES, rtdetr
    from surgeval.models import usable_device

    sizes = tuple(SIZES) if model == "tdnet" else rtdetr.RTDETR_SIZES
    if settings.size not in sizes:
        raise BadInput(f"size: found {settings.size!r}, expected one of {', '.join(sizes)}")
    usable_device(settings.device)


def training_sets(
    dataset: Dataset, videos: Fold, task: TaskName | None, settings: TrainSettings
) -> tuple[TrainingSet, TrainingSet | None]:
    """The frames to learn from, and those on which the best epoch is chosen; None where no video is for validation."""
    from surgeval.detector import Classes
    from surgeval.detector.data import TrainingSet

    classes = Classes.of(dataset.space, task)
    frames = TrainingSet.of(dataset, classes, image_size=settings.image_size, videos=videos.train)
    if not videos.val:
        return frames, None
    return frames, TrainingSet.of(dataset, classes, image_size=settings.image_size, videos=videos.val)


def describe_sets(videos: Fold, frames: TrainingSet, unseen: TrainingSet | None) -> list[str]:
    """What is learnt from, what the best epoch is chosen on, what is held out, and problems of the labels."""
    from surgeval.detector.data import told_problems

    lines = [
        f"learns from {counted(len(frames), 'frame')} of {counted(len(videos.train), 'video')} with "
        f"{int(frames.counts.sum())} boxes"
    ]
    if unseen is None:
        lines.append("no videos for validation: the last epoch is kept")
    else:
        where = f"{counted(len(unseen), 'frame')} of {counted(len(videos.val), 'video')}"
        lines.append(f"the best epoch is chosen on {where}")
    if videos.test:
        lines.append(f"held out: {', '.join(videos.test)}")
    return [*lines, *told_problems(frames, unseen)]
