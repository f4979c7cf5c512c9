"""`surgeval run training`: train a detector on every fold, test it on videos it never saw; or an ablation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from surgeval.console import print_json, print_pieces, require_models, rich_console
from surgeval.console.options import FormatOption, JsonOption, LabelsOption, SeedOption, SourcesOption
from surgeval.console.panels import READING, RUNNING, SCORING, grouped
from surgeval.errors import BadInput, visible
from surgeval.progress import phases

if TYPE_CHECKING:
    from surgeval.protocols.training.ablation.result import AblationScores, Configuration
    from surgeval.protocols.training.detectors import TrainableDetector
    from surgeval.protocols.training.result import TrainingScores
    from surgeval.protocols.training.tables import PaperTable

# How boxes are matched and averaged.
ConventionName: TypeAlias = Literal["coco", "ivtd", "ivtd-legacy"]
DetectorName: TypeAlias = Literal["tdnet", "rtdetr"]
TableName: TypeAlias = Literal["components", "fusion"]
TiesName: TypeAlias = Literal["free", "reference"]  # how boxes of equal score are ranked


@grouped(
    {
        SCORING: "convention ties",
        READING: "sources format labels",
        "Ablation": "ablation seeds",
        RUNNING: "only_fold batch image_size device set weights name",
    }
)
def run(
    data: Annotated[Path, typer.Option(help="A dataset with boxes.", show_default=False)],
    out: Annotated[Path, typer.Option(help="Folder of the folds; met again, it goes on.", show_default=False)],
    detector: Annotated[DetectorName, typer.Option(help="What is trained.")] = "tdnet",
    folds: Annotated[
        str,
        typer.Option(
            help="prostatd, prostatd-noval, cholect50-cv …; sources, videos (leave one out), split; or a JSON file of "
            "train, val and test videos.",
        ),
    ] = "prostatd",
    sources: SourcesOption = None,
    only_fold: Annotated[
        list[str] | None,
        typer.Option(help="Train only this fold (several times: these) and score nothing."),
    ] = None,
    ablation: Annotated[
        TableName | None, typer.Option(help="Train the rows of Table 9 (components) or 11 (fusion).")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Seeds of an ablation: 0, 1, 2 …")] = 3,
    size: Annotated[str | None, typer.Option(help="TDnet's size: p, n, s, m or l.")] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Epochs of each training.")] = None,
    minutes: Annotated[float | None, typer.Option(help="Minutes of each training instead.")] = None,
    batch: Annotated[int | None, typer.Option(min=1, help="Pictures at once.")] = None,
    image_size: Annotated[int | None, typer.Option(help="Input side, a multiple of 32.")] = None,
    set: Annotated[list[str] | None, typer.Option(help="Any other setting of the training, as NAME=VALUE.")] = None,
    weights: Annotated[str | None, typer.Option(help="A detector to begin with, in every fold.")] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1 …")] = "cpu",
    name: Annotated[str | None, typer.Option(help="What to call the detector.")] = None,
    convention: Annotated[
        ConventionName | None,
        typer.Option(
            help="How boxes are matched and averaged. Default: as coco. The paper's rows were computed with "
            "ivtdmetrics: compare them under ivtd."
        ),
    ] = None,
    ties: Annotated[
        TiesName | None,
        typer.Option(
            help="How equal scores are ranked. free: no number depends on the order of rows; reference: as the "
            "convention's reference does. Default: reference if --convention is given, else free."
        ),
    ] = None,
    seed: SeedOption = 0,
    format: FormatOption = None,
    labels: LabelsOption = None,
    json: JsonOption = False,
) -> None:
    """Train a detector on every fold of a dataset and score it on the videos that it never saw.

    A finished fold is not trained again. On a cluster, give each job its `--only-fold`, then call once without.

    Example: [bold]surgeval run training --data prostatd --folds prostatd --device cuda --out runs/tdnet[/bold]

    Example: [bold]surgeval run training --data prostatd --folds sources --detector rtdetr --out runs/rtdetr[/bold]

    Example: [bold]surgeval run training --data prostatd --ablation components --seeds 3 --out runs/table9[/bold]
    """
    require_models("run training")
    options = {"size": size, "epochs": epochs, "minutes": minutes, "batch": batch, "image_size": image_size}
    changes = {key: value for key, value in options.items() if value is not None} | {"device": device, "seed": seed}
    settings = _settings(detector, changes, set or [])
    shared: dict[str, Any] = {
        "scheme": folds,
        "sources": sources,
        "convention": convention,
        "ties": ties,
        "format": format,
        "labels": labels,
    }
    if ablation is not None and (detector != "tdnet" or only_fold):
        other = f"--detector {detector}" if detector != "tdnet" else "--only-fold"
        raise BadInput(f"--ablation and {other}: expected one of them: the tables are about TDnet, whole")
    with phases(show=not json, eager=True) as shown:
        shown.phase("reading the dataset")
        if ablation is not None:
            from surgeval.protocols.training.ablation.method import run_ablation

            rows = _rows_of(settings, weights)
            scores: Any = run_ablation(
                data, rows, out, table=ablation, seeds=range(seeds), progress=shown.note, **shared
            )
        else:
            from surgeval.protocols.training.method import run_training

            method = _method(detector, settings, weights, name)
            scores = run_training(data, method, out, only=only_fold, progress=shown.note, **shared)
    if scores is not None:
        _finish(scores, out, json)
    elif json:
        print_json({"folds": list(only_fold or ()), "out": str(out)})


def _settings(detector: DetectorName, changes: dict[str, Any], texts: list[str]) -> Any:
    from surgeval.protocols.training.detectors import default_settings
    from surgeval.protocols.training.settings import with_changes, with_texts

    return with_texts(with_changes(default_settings(detector), changes), texts)


def _method(detector: DetectorName, settings: Any, weights: str | None, name: str | None) -> TrainableDetector:
    from surgeval.protocols.training.detectors import trainable_rtdetr, trainable_tdnet

    trainable = trainable_tdnet if detector == "tdnet" else trainable_rtdetr
    return trainable(settings, weights=weights, name=name)


def _rows_of(settings: Any, weights: str | None) -> Any:
    from surgeval.protocols.training.detectors import trainable_tdnet
    from surgeval.protocols.training.settings import with_changes

    def model_of(configuration: Configuration, seed: int) -> TrainableDetector:
        own = with_changes(settings, {**configuration.changes, "seed": seed})
        return trainable_tdnet(own, weights=weights, name=configuration.name)

    return model_of


def printed(scores: TrainingScores | AblationScores) -> tuple[PaperTable, ...]:
    """The paper's tables with our rows only."""
    from surgeval.protocols.training.result import TrainingScores
    from surgeval.protocols.training.tables import paper_tables

    tables = paper_tables([scores]) if isinstance(scores, TrainingScores) else (scores.paper(),)
    return tuple(replace(table, paper=replace(table.paper, rows=())) for table in tables)


def _finish(scores: TrainingScores | AblationScores, out: Path, json: bool) -> None:
    from surgeval.protocols.training.page import write_page_of

    page = write_page_of([scores], out)
    if json:
        print_json({"name": scores.name, "report": str(page), "notes": list(scores.notes),
                    "tables": {key: table.to_dicts() for key, table in scores.tables.items()
                               if not key.startswith("scores_")}})  # fmt: skip
        return
    verdict = scores.verdict()
    if verdict is not None:
        rich_console().print(visible(f"{scores.name}: {verdict}"))
    tables = printed(scores)
    for table in tables:
        print_pieces(f"As Table {table.paper.number}: {table.paper.title}", table.readable())
    for note in (*scores.notes, *dict.fromkeys(note for table in tables for note in table.other_conventions)):
        rich_console().print(f"note: {visible(note)}")
    rich_console().print(f"open {visible(str(page))}")
