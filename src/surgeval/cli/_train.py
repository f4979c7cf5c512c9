"""`surgeval train`: TDnet or RT-DETR on the boxes of a dataset; a training that was stopped goes on by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import typer

from surgeval.cli._group import command_group
from surgeval.cli._training import Chosen, TaskName, train
from surgeval.console.options import FormatOption, JsonOption, LabelsOption
from surgeval.console.panels import READING, RUNNING, grouped

app = command_group(
    "Train a detector; the same command again goes on with a training that was stopped.",
    "surgeval train tdnet --data prostatd --fold 1 --device cuda --out runs/tdnet-1",
)

VIDEOS, LEARNING = "Which videos", "Advanced: learning"
SamplingName: TypeAlias = Literal["all", "repeat-factor", "balanced"]
PresetName: TypeAlias = Literal["scratch", "paper"]

DataOption = Annotated[Path, typer.Option("--data", help="A dataset with boxes.", show_default=False)]
OutOption = Annotated[
    Path, typer.Option("--out", help="Folder of the training; met again, it goes on.", show_default=False)
]
FoldOption = Annotated[
    str | None, typer.Option("--fold", help="Learn from this published fold (1, 2 …); its test videos stay unseen.")
]
FoldsOption = Annotated[
    str | None,
    typer.Option("--folds", help="The scheme: prostatd, prostatd-noval, cholect50-cv …, or a JSON file of folds."),
]
AllFoldsOption = Annotated[
    bool, typer.Option("--all-folds", help="Train every fold and score them together, as `run training` does.")
]
SourceOption = Annotated[
    str | None, typer.Option("--leave-source-out", help="Learn from every source (hospital) but this one.")
]
ValidationOption = Annotated[
    str | None, typer.Option("--val-videos", help="Videos that choose the best epoch, with commas.")
]
SplitOption = Annotated[
    bool | None, typer.Option("--split/--no-split", help="The dataset's own split. Default: where it has one.")
]
EpochsOption = Annotated[int | None, typer.Option("--epochs", min=1, help="Passes over the frames. Default: 100.")]
MinutesOption = Annotated[
    float | None, typer.Option("--minutes", help="End after so long, in an orderly way: epochs follow from the rate.")
]
BatchOption = Annotated[int, typer.Option("--batch", min=1, help="Pictures at once.")]
ImageSizeOption = Annotated[int, typer.Option("--image-size", help="Side of the pictures, a multiple of 32.")]
DeviceOption = Annotated[str, typer.Option("--device", help="cpu, cuda, cuda:1 …")]
SamplingOption = Annotated[
    SamplingName, typer.Option("--sampling", help="Show frames of rare classes more often, or classes alike.")
]
WeightsOption = Annotated[str | None, typer.Option("--weights", help="A detector to begin with.")]
RateOption = Annotated[float | None, typer.Option("--rate", help="Highest learning rate. Default: the preset's.")]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Seed of weights and of everything drawn.")]
TaskOption = Annotated[
    TaskName | None, typer.Option("--task", help="What is learnt. Default: triplets where the labels have some.")
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Count and draw the labels, learn one batch by heart, and stop.")
]
CompileOption = Annotated[bool, typer.Option("--compile", help="Compile the network first (CUDA, long trainings).")]
WorkersOption = Annotated[int | None, typer.Option("--workers", min=0, help="Threads that prepare pictures.")]
EveryOption = Annotated[int, typer.Option("--evaluate-every", min=1, help="Epochs from one evaluation to the next.")]
SetOption = Annotated[list[str] | None, typer.Option("--set", help="Any other setting, as NAME=VALUE.")]
_PANELS = {
    VIDEOS: "fold folds all_folds leave_source_out val_videos split",
    READING: "task format labels",
    RUNNING: "workers compile evaluate_every",
}


def register(root: typer.Typer) -> None:
    """Add `train` to the commands."""
    root.add_typer(app, name="train")


@app.command()
@grouped({**_PANELS, LEARNING: "aux student preset rate weights fusion sampling seed set"})
def tdnet(
    data: DataOption,
    out: OutOption,
    size: Annotated[str, typer.Option(help="p, n, s, m or l.")] = "n",
    epochs: EpochsOption = None,
    minutes: MinutesOption = None,
    batch: BatchOption = 16,
    image_size: ImageSizeOption = 640,
    device: DeviceOption = "cpu",
    aux: Annotated[bool, typer.Option("--aux/--no-aux", help="Heads for instrument, verb and target.")] = True,
    student: Annotated[bool, typer.Option("--student/--no-student", help="Self-distillation at the end.")] = True,
    dry_run: DryRunOption = False,
    fold: FoldOption = None,
    folds: FoldsOption = None,
    all_folds: AllFoldsOption = False,
    leave_source_out: SourceOption = None,
    val_videos: ValidationOption = None,
    split: SplitOption = None,
    preset: Annotated[
        PresetName, typer.Option(help="From random weights at 0.01, or from given ones at 0.0001.")
    ] = "scratch",
    rate: RateOption = None,
    weights: WeightsOption = None,
    fusion: Annotated[float, typer.Option(help="The teacher's share in what the student learns.")] = 0.8,
    sampling: SamplingOption = "all",
    seed: SeedOption = 0,
    set: SetOption = None,
    task: TaskOption = None,
    format: FormatOption = None,
    labels: LabelsOption = None,
    workers: WorkersOption = None,
    compile: CompileOption = False,
    evaluate_every: EveryOption = 1,
    json: JsonOption = False,
) -> None:
    """Train TDnet: a detector of triplets with heads for instrument, verb and target, and its distilled student.

    Try [bold]--dry-run[/bold] first: it reads every label, draws some, and says whether they can be learnt.

    Example: [bold]surgeval train tdnet --data phantom --size p --minutes 10 --out runs/tdnet[/bold]

    Example: [bold]surgeval train tdnet --data prostatd --fold 1 --device cuda --out runs/fold1[/bold]
    """
    given: dict[str, Any] = {
        "size": size, "epochs": epochs, "minutes": minutes, "batch": batch, "image_size": image_size, "device": device,
        "aux": aux, "preset": preset, "rate": rate, "fusion": fusion, "sampling": sampling, "seed": seed,
        "workers": workers, "compile": compile, "evaluate_every": evaluate_every,
        **({} if student else {"student_epochs": 0}),
    }  # fmt: skip
    chosen = Chosen(data, out, fold, folds, all_folds, leave_source_out, val_videos, split, task, format, labels)
    train("tdnet", chosen, given, set or [], weights, dry_run, json)


@app.command()
@grouped({**_PANELS, LEARNING: "aux rate weights sampling seed set"})
def rtdetr(
    data: DataOption,
    out: OutOption,
    size: Annotated[str, typer.Option(help="tiny, r18 or r50 (the backbone).")] = "r18",
    epochs: Annotated[int | None, typer.Option(min=1, help="Passes over the frames. Default: 200.")] = None,
    minutes: MinutesOption = None,
    batch: BatchOption = 16,
    image_size: ImageSizeOption = 640,
    device: DeviceOption = "cpu",
    aux: Annotated[bool, typer.Option("--aux/--no-aux", help="Heads for instrument, verb and target: ours.")] = False,
    dry_run: DryRunOption = False,
    fold: FoldOption = None,
    folds: FoldsOption = None,
    all_folds: AllFoldsOption = False,
    leave_source_out: SourceOption = None,
    val_videos: ValidationOption = None,
    split: SplitOption = None,
    rate: RateOption = None,
    weights: Annotated[str | None, typer.Option(help="A folder or hub name with an RT-DETR to begin with.")] = None,
    sampling: SamplingOption = "all",
    seed: SeedOption = 0,
    set: SetOption = None,
    task: TaskOption = None,
    format: FormatOption = None,
    labels: LabelsOption = None,
    workers: WorkersOption = None,
    compile: CompileOption = False,
    evaluate_every: EveryOption = 1,
    json: JsonOption = False,
) -> None:
    """Train RT-DETR, the second baseline: transformers' network with a ResNet, not the paper's rtdetr-l.

    Example: [bold]surgeval train rtdetr --data prostatd --fold 1 --device cuda --out runs/rtdetr-1[/bold]
    """
    given: dict[str, Any] = {
        "size": size, "minutes": minutes, "batch": batch, "image_size": image_size, "device": device, "aux": aux,
        "sampling": sampling, "seed": seed, "workers": workers, "compile": compile, "evaluate_every": evaluate_every,
        **{name: value for name, value in (("epochs", epochs), ("rate", rate)) if value is not None},
    }  # fmt: skip
    if minutes is not None and epochs is None:
        given["epochs"] = None  # as many as fit
    chosen = Chosen(data, out, fold, folds, all_folds, leave_source_out, val_videos, split, task, format, labels)
    train("rtdetr", chosen, given, set or [], weights, dry_run, json)
