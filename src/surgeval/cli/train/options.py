"""What `surgeval train` can be told, in the order of its help: TDnet's options, and how RT-DETR's differ."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from surgeval.console.commands import NO_OPTION, Help, common
from surgeval.console.panels import READING, RUNNING

__all__ = ["RTDetrOptions", "TrainOptions"]

SamplingName: TypeAlias = Literal["all", "repeat-factor", "balanced"]
PresetName: TypeAlias = Literal["scratch", "paper"]
TaskName: TypeAlias = Literal["triplets", "instruments"]

VIDEOS, LEARNING = "Which videos", "Advanced: learning"
_SETTINGS = (
    "size", "epochs", "minutes", "batch", "image_size", "device", "aux", "preset", "rate", "fusion", "sampling", "seed",
    "workers", "compile", "evaluate_every",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """The options of `train tdnet`."""

    data: Annotated[Path, Help("A dataset with boxes.")]
    out: Annotated[Path, Help("Folder of the training; an existing one is resumed.")]
    size: Annotated[str, Help("p, n, s, m or l.")] = "n"
    epochs: Annotated[int | None, Help("Passes over the frames. Default: 100.", least=1)] = None
    minutes: Annotated[float | None, Help("End after so long, in an orderly way: epochs follow from the rate.")] = None
    batch: Annotated[int, Help("Pictures at once.", least=1)] = 16
    image_size: Annotated[int, Help("Side of the pictures, a multiple of 32.")] = 640
    device: str = "cpu"
    aux: Annotated[bool, Help("Heads for instrument, verb and target.", LEARNING)] = True
    student: Annotated[bool, Help("Self-distillation at the end.", LEARNING)] = True
    dry_run: Annotated[bool, Help("Count and draw the labels, overfit one batch, and stop.")] = False
    fold: Annotated[
        str | None, Help("Learn from this published fold (1, 2 …); its test videos stay unseen.", VIDEOS)
    ] = None
    folds: Annotated[
        str | None, Help("The scheme: prostatd, prostatd-noval, cholect50-cv …, or a JSON file of folds.", VIDEOS)
    ] = None
    all_folds: Annotated[bool, Help("Train every fold and score them together, as `run training` does.", VIDEOS)] = (
        False
    )
    leave_source_out: Annotated[str | None, Help("Learn from every source (hospital) but this one.", VIDEOS)] = None
    sources: Annotated[list[str] | None, common("sources", panel=VIDEOS)] = None
    val_videos: Annotated[str | None, Help("Videos that choose the best epoch, with commas.", VIDEOS)] = None
    split: Annotated[bool | None, Help("The dataset's own split. Default: where it has one.", VIDEOS)] = None
    preset: Annotated[PresetName, Help("From random weights at 0.01, or from given ones at 0.0001.", LEARNING)] = (
        "scratch"
    )
    rate: Annotated[float | None, Help("Highest learning rate. Default: the preset's.", LEARNING)] = None
    weights: Annotated[str | None, Help("A detector to begin with.", LEARNING)] = None
    fusion: Annotated[float, Help("The teacher's share in what the student learns.", LEARNING)] = 0.8
    sampling: Annotated[SamplingName, Help("Show frames of rare classes more often, or classes alike.", LEARNING)] = (
        "all"
    )
    seed: Annotated[int, Help("Seed of weights and of everything drawn.", LEARNING, least=0)] = 0
    set: Annotated[list[str] | None, Help("Any other setting, as NAME=VALUE.", LEARNING)] = None
    task: Annotated[TaskName | None, Help("What is learnt. Default: triplets where the labels have some.", READING)] = (
        None
    )
    format: str | None = None
    labels: str | None = None
    workers: Annotated[
        int | None, Help("Threads (beside a GPU: processes) that prepare pictures.", RUNNING, least=0)
    ] = None
    compile: Annotated[bool, Help("Compile the network first (CUDA, long trainings).", RUNNING)] = False
    evaluate_every: Annotated[int, Help("Epochs from one evaluation to the next.", RUNNING, least=1)] = 1
    json: bool = False

    def settings(self) -> dict[str, Any]:
        """The settings of the training that were chosen."""
        values = {name: getattr(self, name) for name in _SETTINGS}
        return values if self.student else {**values, "student_epochs": 0}


@dataclass(frozen=True, kw_only=True)
class RTDetrOptions(TrainOptions):
    """The options of `train rtdetr`: there is no student, and so neither its preset nor its fusion."""

    size: Annotated[str, Help("tiny, r18 or r50 (the backbone).")] = "r18"
    epochs: Annotated[int | None, Help("Passes over the frames. Default: 200.", least=1)] = None
    aux: Annotated[bool, Help("Heads for instrument, verb and target: ours.", LEARNING, name="--aux/--no-aux")] = False
    student: Annotated[bool, NO_OPTION] = False
    preset: Annotated[PresetName, NO_OPTION] = "scratch"
    weights: Annotated[str | None, Help("A folder or hub name with an RT-DETR to begin with.", LEARNING)] = None
    fusion: Annotated[float, NO_OPTION] = 0.8

    def settings(self) -> dict[str, Any]:
        """As above; what was not chosen is the model's own, but epochs are as many as fit where minutes are given."""
        values = {name: getattr(self, name) for name in _SETTINGS if name not in ("preset", "fusion")}
        own = ("rate",) if self.minutes is not None else ("epochs", "rate")
        return {name: value for name, value in values.items() if value is not None or name not in own}
