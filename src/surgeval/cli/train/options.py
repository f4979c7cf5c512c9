"""What `surgeval train` can be told, in the order of its help: TDnet's options, and how RT-DETR's differ."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import typer

from surgeval.console.options import FormatOption, JsonOption, LabelsOption, SourcesOption

__all__ = ["RTDetrOptions", "TrainOptions"]

SamplingName: TypeAlias = Literal["all", "repeat-factor", "balanced"]
PresetName: TypeAlias = Literal["scratch", "paper"]
TaskName: TypeAlias = Literal["triplets", "instruments"]

_SETTINGS = (
    "size", "epochs", "minutes", "batch", "image_size", "device", "aux", "preset", "rate", "fusion", "sampling", "seed",
    "workers", "compile", "evaluate_every",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """The options of `train tdnet`."""

    data: Annotated[Path, typer.Option(help="A dataset with boxes.", show_default=False)]
    out: Annotated[Path, typer.Option(help="Folder of the training; met again, it goes on.", show_default=False)]
    size: Annotated[str, typer.Option(help="p, n, s, m or l.")] = "n"
    epochs: Annotated[int | None, typer.Option(min=1, help="Passes over the frames. Default: 100.")] = None
    minutes: Annotated[
        float | None, typer.Option(help="End after so long, in an orderly way: epochs follow from the rate.")
    ] = None
    batch: Annotated[int, typer.Option(min=1, help="Pictures at once.")] = 16
    image_size: Annotated[int, typer.Option(help="Side of the pictures, a multiple of 32.")] = 640
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1 …")] = "cpu"
    aux: Annotated[bool, typer.Option("--aux/--no-aux", help="Heads for instrument, verb and target.")] = True
    student: Annotated[bool, typer.Option("--student/--no-student", help="Self-distillation at the end.")] = True
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count and draw the labels, learn one batch by heart, and stop.")
    ] = False
    fold: Annotated[
        str | None, typer.Option(help="Learn from this published fold (1, 2 …); its test videos stay unseen.")
    ] = None
    folds: Annotated[
        str | None, typer.Option(help="The scheme: prostatd, prostatd-noval, cholect50-cv …, or a JSON file of folds.")
    ] = None
    all_folds: Annotated[
        bool, typer.Option("--all-folds", help="Train every fold and score them together, as `run training` does.")
    ] = False
    leave_source_out: Annotated[str | None, typer.Option(help="Learn from every source (hospital) but this one.")] = (
        None
    )
    sources: SourcesOption = None
    val_videos: Annotated[str | None, typer.Option(help="Videos that choose the best epoch, with commas.")] = None
    split: Annotated[
        bool | None, typer.Option("--split/--no-split", help="The dataset's own split. Default: where it has one.")
    ] = None
    preset: Annotated[PresetName, typer.Option(help="From random weights at 0.01, or from given ones at 0.0001.")] = (
        "scratch"
    )
    rate: Annotated[float | None, typer.Option(help="Highest learning rate. Default: the preset's.")] = None
    weights: Annotated[str | None, typer.Option(help="A detector to begin with.")] = None
    fusion: Annotated[float, typer.Option(help="The teacher's share in what the student learns.")] = 0.8
    sampling: Annotated[
        SamplingName, typer.Option(help="Show frames of rare classes more often, or classes alike.")
    ] = "all"
    seed: Annotated[int, typer.Option(min=0, help="Seed of weights and of everything drawn.")] = 0
    set: Annotated[list[str] | None, typer.Option(help="Any other setting, as NAME=VALUE.")] = None
    task: Annotated[
        TaskName | None, typer.Option(help="What is learnt. Default: triplets where the labels have some.")
    ] = None
    format: FormatOption = None
    labels: LabelsOption = None
    workers: Annotated[
        int | None, typer.Option(min=0, help="Threads (beside a GPU: processes) that prepare pictures.")
    ] = None
    compile: Annotated[bool, typer.Option("--compile", help="Compile the network first (CUDA, long trainings).")] = (
        False
    )
    evaluate_every: Annotated[int, typer.Option(min=1, help="Epochs from one evaluation to the next.")] = 1
    json: JsonOption = False

    def settings(self) -> dict[str, Any]:
        """The settings of the training that were chosen."""
        values = {name: getattr(self, name) for name in _SETTINGS}
        return values if self.student else {**values, "student_epochs": 0}


@dataclass(frozen=True, kw_only=True)
class RTDetrOptions(TrainOptions):
    """The options of `train rtdetr`: there is no student, and so neither its preset nor its fusion."""

    size: Annotated[str, typer.Option(help="tiny, r18 or r50 (the backbone).")] = "r18"
    epochs: Annotated[int | None, typer.Option(min=1, help="Passes over the frames. Default: 200.")] = None
    aux: Annotated[bool, typer.Option("--aux/--no-aux", help="Heads for instrument, verb and target: ours.")] = False
    student: bool = False
    preset: PresetName = "scratch"
    weights: Annotated[str | None, typer.Option(help="A folder or hub name with an RT-DETR to begin with.")] = None
    fusion: float = 0.8

    def settings(self) -> dict[str, Any]:
        """As above; what was not chosen is the model's own, but epochs are as many as fit where minutes are given."""
        values = {name: getattr(self, name) for name in _SETTINGS if name not in ("preset", "fusion")}
        own = ("rate",) if self.minutes is not None else ("epochs", "rate")
        return {name: value for name, value in values.items() if value is not None or name not in own}
