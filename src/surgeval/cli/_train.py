"""`surgeval train`: TDnet or RT-DETR on the boxes of a dataset; a training that was stopped goes on by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from surgeval.cli._group import command_group
from surgeval.console import (
    READING,
    RUNNING,
    FormatOption,
    JsonOption,
    LabelsOption,
    claim_folder,
    console,
    grouped,
    open_named,
    print_json,
    print_table,
    require_models,
)
from surgeval.errors import BadInput, visible
from surgeval.progress import phases

if TYPE_CHECKING:
    from surgeval.datasets import Dataset
    from surgeval.detector.data import TrainingSet
    from surgeval.detector.training import Rehearsal, Trained, TrainSettings
    from surgeval.protocols.training import Fold

app = command_group(
    "Train a detector; the same command again goes on with a training that was stopped.",
    "surgeval train tdnet --data prostatd --fold 1 --device cuda --out runs/tdnet-1",
)

VIDEOS, LEARNING = "Which videos", "Advanced: learning"
SamplingName: TypeAlias = Literal["all", "repeat-factor", "balanced"]
PresetName: TypeAlias = Literal["scratch", "paper"]
TaskName: TypeAlias = Literal["triplets", "instruments"]

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
_MOST_CLASSES = 25


def register(root: typer.Typer) -> None:
    """Add `train` to the commands."""
    root.add_typer(app, name="train")


@app.command()
@grouped({**_PANELS, LEARNING: "preset rate weights fusion sampling seed set"})
def tdnet(
    data: DataOption,
    out: OutOption,
    size: Annotated[str, typer.Option("--size", help="p, n, s, m or l.")] = "n",
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
        PresetName, typer.Option("--preset", help="From random weights at 0.01, or from given ones at 0.0001.")
    ] = "scratch",
    rate: RateOption = None,
    weights: WeightsOption = None,
    fusion: Annotated[float, typer.Option("--fusion", help="The teacher's share in what the student learns.")] = 0.8,
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
    chosen = _Chosen(data, out, fold, folds, all_folds, leave_source_out, val_videos, split, task, format, labels)
    _command("tdnet", chosen, given, set or [], weights, dry_run, json)


@app.command()
@grouped({**_PANELS, LEARNING: "rate weights sampling seed set"})
def rtdetr(
    data: DataOption,
    out: OutOption,
    size: Annotated[str, typer.Option("--size", help="tiny, r18 or r50 (the backbone).")] = "r18",
    epochs: Annotated[int | None, typer.Option("--epochs", min=1, help="Passes over the frames. Default: 200.")] = None,
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
    weights: Annotated[
        str | None, typer.Option("--weights", help="A folder or hub name with an RT-DETR to begin with.")
    ] = None,
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
    chosen = _Chosen(data, out, fold, folds, all_folds, leave_source_out, val_videos, split, task, format, labels)
    _command("rtdetr", chosen, given, set or [], weights, dry_run, json)


@dataclass(frozen=True)
class _Chosen:
    """What the options say about data and videos."""

    data: Path
    out: Path
    fold: str | None
    folds: str | None
    all_folds: bool
    source: str | None
    val_videos: str | None
    split: bool | None
    task: TaskName | None
    format: str | None
    labels: str | None


def _command(
    model: Literal["tdnet", "rtdetr"], chosen: _Chosen, given: Mapping[str, Any], texts: list[str],
    weights: str | None, dry_run: bool, json: bool,
) -> None:  # fmt: skip
    require_models(f"train {model}")
    if chosen.all_folds:
        _all_folds(model, chosen, given, texts, weights, dry_run, json)
        return
    from surgeval.protocols.training.settings import changed, with_texts

    if model == "tdnet":
        from surgeval.detector.training import TrainSettings, train_tdnet

        start, learn = TrainSettings(), train_tdnet
    else:
        from surgeval.detector.rtdetr import rtdetr_settings, train_rtdetr

        start, learn = rtdetr_settings(), train_rtdetr
    settings: TrainSettings = with_texts(changed(start, given), texts)
    with phases(show=not json, eager=True) as shown:
        shown.phase("reading labels and pictures")
        dataset = open_named(chosen.data, chosen.format, chosen.labels)
        fold = _videos(dataset, chosen)
        train, validation = _sets(dataset, fold, chosen.task, settings)
        for line in (*_about(fold, train, validation), *train.problems.lines()):
            shown.note(line)
        if dry_run:
            if not (chosen.out / "train.json").exists():
                claim_folder(chosen.out, "labels.png")
            rehearsal = _rehearse(train, chosen.out, settings)
        else:
            trained = learn(
                train, validation, train.classes, chosen.out, settings, weights=weights, progress=shown.note
            )
    if dry_run:
        _print_rehearsal(rehearsal, json)
        return
    page = _page(trained)
    if json:
        print_json({"out": str(trained.folder), "detector": str(trained.detector), "report": str(page),
                    "held_out": list(fold.test), "result": trained.result})  # fmt: skip
        return
    _print(trained, fold, page)


def _videos(dataset: Dataset, chosen: _Chosen) -> Fold:
    from surgeval.protocols.training.single import choose_videos, usual_scheme

    named = [name.strip() for name in (chosen.val_videos or "").split(",") if name.strip()]
    if chosen.folds is not None and chosen.fold is None:
        raise BadInput("--folds: found no --fold, expected the one to train, or --all-folds")
    scheme = chosen.folds or usual_scheme(dataset.space.name)
    return choose_videos(
        dataset.videos(), scheme=scheme, fold=chosen.fold, source=chosen.source, validation=named, split=chosen.split
    )


def _sets(
    dataset: Dataset, fold: Fold, task: TaskName | None, settings: TrainSettings
) -> tuple[TrainingSet, TrainingSet | None]:
    """The frames to learn from, and those to choose the best epoch on."""
    from surgeval.detector import Classes
    from surgeval.detector.data import TrainingSet

    classes = Classes.of(dataset.space, task)
    train = TrainingSet.of(dataset, classes, image_size=settings.image_size, videos=fold.train)
    if not fold.val:
        return train, None
    return train, TrainingSet.of(dataset, classes, image_size=settings.image_size, videos=fold.val)


def _about(fold: Fold, train: TrainingSet, validation: TrainingSet | None) -> list[str]:
    told = [f"learns from {len(train)} frames of {len(fold.train)} videos with {int(train.counts.sum())} boxes"]
    if validation is not None:
        told.append(f"the best epoch is chosen on {len(validation)} frames of {len(fold.val)} videos")
    else:
        told.append("no videos for validation: the last epoch is kept (--val-videos names some)")
    if fold.test:
        told.append(f"held out: {', '.join(fold.test)}")
    return told


def _all_folds(
    model: Literal["tdnet", "rtdetr"], chosen: _Chosen, given: Mapping[str, Any], texts: list[str],
    weights: str | None, dry_run: bool, json: bool,
) -> None:  # fmt: skip
    """Hand over to the protocol: every fold is trained, and all of them are scored together."""
    for name, value in (
        ("--dry-run", dry_run), ("--fold", chosen.fold), ("--weights", weights), ("--split", chosen.split),
        ("--val-videos", chosen.val_videos), ("--task", chosen.task),
    ):  # fmt: skip
        if value:
            raise BadInput(f"--all-folds and {name}: expected one of them")
    from json import dumps

    from surgeval.protocols.training.command import run
    from surgeval.protocols.training.single import usual_scheme

    scheme = chosen.folds
    if scheme is None:
        space = open_named(chosen.data, chosen.format, chosen.labels).space.name
        scheme = "sources" if chosen.source else usual_scheme(space)
        if scheme is None:
            raise BadInput(f"--all-folds: found no published folds for {space}, expected --folds with a scheme")
    own = [f"{name}={dumps(value)}" for name, value in given.items() if name not in ("device", "seed")]
    run(
        data=chosen.data, out=chosen.out, detector=model, folds=scheme, set=[*own, *texts], device=given["device"],
        seed=given["seed"], format=chosen.format, labels=chosen.labels, json=json,
    )  # fmt: skip


def _rehearse(train: TrainingSet, out: Path, settings: TrainSettings) -> Rehearsal:
    from surgeval.detector import SIZES
    from surgeval.detector.training import rehearse

    usable = settings if settings.size in SIZES else replace(settings, size="p")  # RT-DETR's sizes have other names
    return rehearse(train, out, usable)


def _print_rehearsal(told: Rehearsal, json: bool) -> None:
    if json:
        print_json({"classes": [asdict(row) for row in told.classes], "problems": list(told.problems),
                    "labels": str(told.mosaic), "boxes": told.boxes, "found": told.found, "learns": told.learns,
                    "first_loss": told.first_loss, "last_loss": told.last_loss, "says": str(told)})  # fmt: skip
        return
    rows = sorted(told.classes, key=lambda row: -row.boxes)
    met = [row for row in rows if row.boxes]
    print_table(
        f"{len(met)} of {len(rows)} classes have boxes", ("class", "boxes", "frames", "videos"),
        [(row.name, row.boxes, row.frames, row.videos) for row in met[:_MOST_CLASSES]],
    )  # fmt: skip
    if len(met) > _MOST_CLASSES:
        console().print(f"and {len(met) - _MOST_CLASSES} more")
    console().print(visible(str(told)))
    console().print(f"open {visible(str(told.mosaic))}")


def _page(trained: Trained) -> Path:
    from surgeval.protocols.training import write_training_page

    return write_training_page(trained.folder)


def _print(trained: Trained, fold: Fold, page: Path) -> None:
    names = [name for name in ("mAP50", "mAP50:95", "i mAP50", "v mAP50", "t mAP50", "drift")
             if any(name in row for row in trained.result.values())]  # fmt: skip
    rows = [
        (stage, f"{row['epoch']} of {row['epochs']}", *(row.get(name) for name in names), row["images_per_second"],
         row["total_seconds"] / 60)
        for stage, row in trained.result.items()
    ]  # fmt: skip
    print_table("Best epochs", ("stage", "epoch", *names, "images/s", "minutes"), rows)
    console().print(f"detector: {visible(str(trained.detector))}")
    if fold.test:
        console().print(f"not seen yet, for the test: {visible(', '.join(fold.test))}")
    console().print(f"open {visible(str(page))}")
