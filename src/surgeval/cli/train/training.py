"""What `surgeval train` does: data and videos as the options say, then a dry run, a training, or all folds."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from surgeval.console import claim_folder, open_named, print_json, print_table, require_models, rich_console
from surgeval.errors import BadInput, visible
from surgeval.progress import phases

if TYPE_CHECKING:
    from surgeval.cli.train.options import TrainOptions
    from surgeval.datasets import Dataset
    from surgeval.detector.data import TrainingSet
    from surgeval.detector.training import Rehearsal, Trained, TrainSettings
    from surgeval.protocols.training import Fold

__all__ = ["train"]

ModelName: TypeAlias = Literal["tdnet", "rtdetr"]
_MOST_CLASSES = 25


def train(model: ModelName, options: TrainOptions) -> None:
    """Train, rehearse or hand over to the protocol, and print what came of it."""
    require_models(f"train {model}")
    if options.all_folds:
        _all_folds(model, options)
        return
    from surgeval.protocols.training.settings import with_changes, with_texts
    from surgeval.protocols.training.train import check_settings, describe_sets, training_sets, usual_settings
    from surgeval.protocols.training.train import train as train_detector

    settings = with_texts(with_changes(usual_settings(model), options.settings()), options.set or [])
    check_settings(model, settings)
    with phases(show=not options.json, eager=True) as shown:
        shown.phase("reading labels and pictures")
        dataset = open_named(options.data, options.format, options.labels)
        fold = _videos(dataset, options)
        if options.dry_run:
            frames, unseen = training_sets(dataset, fold, options.task, settings)
            for line in describe_sets(fold, frames, unseen):
                shown.note(line)
            if not (options.out / "train.json").exists():
                claim_folder(options.out, "labels.png")
            rehearsal = _rehearse(frames, options.out, settings)
        else:
            trained = train_detector(
                dataset, model, options.out, settings=settings, task=options.task, weights=options.weights,
                progress=shown.note, **_choice(options),
            )  # fmt: skip
    if options.dry_run:
        _print_rehearsal(rehearsal, options.json)
        return
    page = _page(trained)
    if options.json:
        print_json({"out": str(trained.folder), "detector": str(trained.detector), "report": str(page),
                    "held_out": list(fold.test), "result": trained.result})  # fmt: skip
        return
    _print(trained, fold, page)


def _videos(dataset: Dataset, options: TrainOptions) -> Fold:
    from surgeval.protocols.training.single import choose_videos, usual_scheme

    choice = _choice(options)
    return choose_videos(dataset.videos(), **{**choice, "scheme": choice["scheme"] or usual_scheme(dataset.space.name)})


def _choice(options: TrainOptions) -> dict[str, Any]:
    """Which videos, in the words of `choose_videos`."""
    if options.folds is not None and options.fold is None:
        raise BadInput("--folds: found no --fold, expected the one to train, or --all-folds")
    return {
        "scheme": options.folds, "fold": options.fold, "source": options.leave_source_out, "sources": options.sources,
        "validation": [name.strip() for name in (options.val_videos or "").split(",") if name.strip()],
        "split": options.split,
    }  # fmt: skip


def _all_folds(model: ModelName, options: TrainOptions) -> None:
    """Hand over to the protocol: every fold is trained, and all of them are scored together."""
    for name, value in (
        ("--dry-run", options.dry_run), ("--fold", options.fold), ("--weights", options.weights),
        ("--split", options.split), ("--val-videos", options.val_videos), ("--task", options.task),
    ):  # fmt: skip
        if value:
            raise BadInput(f"--all-folds and {name}: expected one of them")
    from surgeval.cli.protocols import call_protocol
    from surgeval.protocols.registry import PROTOCOLS
    from surgeval.protocols.training.settings import read_settings
    from surgeval.protocols.training.single import usual_scheme

    scheme = options.folds
    if scheme is None:
        space = open_named(options.data, options.format, options.labels).space.name
        scheme = "sources" if options.leave_source_out else usual_scheme(space)
        if scheme is None:
            raise BadInput(f"--all-folds: no folds are published for {space}. Name a scheme with --folds.")
    settings = options.settings()
    own = {name: value for name, value in settings.items() if name not in ("device", "seed")}
    arguments = {
        "data": options.data, "out": options.out, "detector": model, "folds": scheme, "sources": options.sources,
        "changes": {**own, **read_settings(options.set or [])}, "device": options.device, "seed": options.seed,
        "format": options.format, "labels": options.labels,
    }  # fmt: skip
    protocol = PROTOCOLS["training"]
    call_protocol(protocol, "run", protocol.part("run"), arguments, options.json)


def _rehearse(train: TrainingSet, out: Path, settings: TrainSettings) -> Rehearsal:
    from surgeval.detector import SIZES
    from surgeval.detector.training import rehearse

    usable = settings if settings.size in SIZES else replace(settings, size="p")  # RT-DETR's sizes have other names
    return rehearse(train, out, usable)


def _print_rehearsal(told: Rehearsal, json: bool) -> None:
    if json:
        print_json({"classes": [asdict(row) for row in told.classes], "problems": list(told.problems),
                    "labels": str(told.mosaic), "boxes": told.boxes, "found": told.detected, "learns": told.learns,
                    "first_loss": told.first_loss, "last_loss": told.last_loss, "says": str(told)})  # fmt: skip
        return
    rows = sorted(told.classes, key=lambda row: -row.boxes)
    met = [row for row in rows if row.boxes]
    print_table(
        f"{len(met)} of {len(rows)} classes have boxes", ("class", "boxes", "frames", "videos"),
        [(row.name, row.boxes, row.frames, row.videos) for row in met[:_MOST_CLASSES]],
    )  # fmt: skip
    if len(met) > _MOST_CLASSES:
        rich_console().print(f"and {len(met) - _MOST_CLASSES} more")
    rich_console().print(visible(str(told)))
    rich_console().print(f"open {visible(str(told.mosaic))}")


def _page(trained: Trained) -> Path:
    from surgeval.protocols.training import write_training_page

    return write_training_page(trained.folder)


def _print(trained: Trained, fold: Fold, page: Path) -> None:
    names = [name for name in ("mAP50", "mAP50:95", "i mAP50", "v mAP50", "t mAP50")
             if any(name in row for row in trained.result.values())]  # fmt: skip
    rows = [
        (stage, f"{row['epoch']}/{row['epochs']}", *(row.get(name) for name in names), row["images_per_second"],
         row["total_seconds"] / 60)
        for stage, row in trained.result.items()
    ]  # fmt: skip
    title = "Best epochs on the validation videos" if names else "Last epochs"
    print_table(title, ("stage", "epoch", *names, "images/s", "minutes"), rows)
    rich_console().print(f"detector: {visible(str(trained.detector))}")
    if fold.test:
        rich_console().print(f"not seen yet, for the test: {visible(', '.join(fold.test))}")
    rich_console().print(f"open {visible(str(page))}")
