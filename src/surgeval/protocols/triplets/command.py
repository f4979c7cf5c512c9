"""`surgeval score triplets`: score predictions that were made elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from surgeval.console import claim_folder, print_json, print_pieces, progress_bar, rich_console
from surgeval.console.options import FormatOption, JsonOption, LabelsOption, SourcesOption
from surgeval.console.panels import READING, RUNNING, SCORING, grouped
from surgeval.errors import BadInput, SurgevalError, visible

if TYPE_CHECKING:
    from surgeval.datasets import Problem
    from surgeval.protocols.triplets.result import TripletScores


TaskName: TypeAlias = Literal["detection", "recognition"]  # what the predictions are
# How boxes are matched and averaged.
ConventionName: TypeAlias = Literal["coco", "ivtd", "ivtd-legacy"]
TiesName: TypeAlias = Literal["free", "reference"]  # how boxes of equal score are ranked
# Where instances are counted to say what is rare.
RareFrom: TypeAlias = Literal["dataset", "train"]
ClassKind: TypeAlias = Literal["triplet", "instrument"]  # what a lone class id means


@grouped(
    {
        SCORING: "convention ties components leave_source_out sources rare rare_from threshold_from",
        READING: "pred_format classes format labels",
        RUNNING: "replace",
    }
)
def score(
    data: Annotated[Path, typer.Option(help="The dataset folder or file.", show_default=False)],
    pred: Annotated[
        Path | None,
        typer.Option(help="Predictions: CSV, Parquet, COCO results, YOLO lines, CholecT50 JSON, rows."),
    ] = None,
    constant: Annotated[
        bool, typer.Option("--constant", help="Score a predictor that says the same for every frame: the floor.")
    ] = False,
    task: Annotated[TaskName | None, typer.Option(help="Default: seen from the predictions.")] = None,
    convention: Annotated[
        ConventionName | None, typer.Option(help="How boxes are matched and averaged. Default: as coco.")
    ] = None,
    ties: Annotated[
        TiesName | None,
        typer.Option(
            help="How equal scores are ranked. free: no number depends on the order of rows; reference: as the "
            "convention's reference does. Default: reference if --convention is given and scores differ, else free.",
        ),
    ] = None,
    components: Annotated[
        str | None, typer.Option(help="Some of i,v,t,iv,it,vt,ivt. Default: all the labels have.")
    ] = None,
    split: Annotated[str | None, typer.Option(help="Score only the videos of this split.")] = None,
    folds: Annotated[
        str | None, typer.Option(help="prostatd, cholect50-cv, … or a JSON file of folds and test videos.")
    ] = None,
    leave_source_out: Annotated[
        bool, typer.Option("--leave-source-out", help="Score each source (hospital) alone.")
    ] = False,
    sources: SourcesOption = None,
    rare: Annotated[int, typer.Option(min=1, help="Classes with fewer instances are rare.")] = 300,
    rare_from: Annotated[RareFrom, typer.Option(help="Where instances count.")] = "dataset",
    threshold_from: Annotated[
        str | None,
        typer.Option(help="Take P/R/F1's threshold from a scored folder or an unscored split."),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="What to call the method. Default: the folder's name, or the file's.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for report.html, tables, figures, scores.")] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Write over scores of other predictions or settings in --out.")
    ] = False,
    pictures: Annotated[
        int, typer.Option(min=0, max=20_000, help="Frames the page keeps a picture of, the worst first.")
    ] = 120,
    pred_format: Annotated[
        str | None,
        typer.Option(help="table, coco, yolo, cholect50, rows or json. Default: found out."),
    ] = None,
    classes: Annotated[ClassKind | None, typer.Option(help="What a lone class id in the predictions is.")] = None,
    format: FormatOption = None,
    labels: LabelsOption = None,
    json: JsonOption = False,
) -> None:
    """Score detected or recognised triplets, with an interval over videos on every headline number.

    Example: [bold]surgeval score triplets --data prostatd --pred boxes.json --folds prostatd --out runs/mine[/bold]

    Example: [bold]surgeval score triplets --data cholect50 --pred scores.parquet --split test[/bold]
    """
    from surgeval.protocols.triplets.method import score_triplets

    if out is not None:
        claim_folder(out, "scores.json")
    if (pred is None) == (not constant):
        raise BadInput("--pred and --constant: expected one of them")
    warned: list[str] = []

    def warn(problem: Problem) -> None:
        _print_problem(problem)
        warned.append(str(problem))

    with progress_bar("videos left out") as bar:
        bar.phase("reading and matching", None)
        scores = score_triplets(
            pred,
            data,
            task=task,
            convention=convention,
            ties=ties,
            components=components.split(",") if components else None,
            split=split,
            folds=folds,
            leave_source_out=leave_source_out,
            sources=sources,
            rare=rare,
            rare_from=rare_from,
            threshold_from=threshold_from,
            name=name or (out.resolve().name if out is not None else None),
            format=format,
            labels=labels,
            pred_format=pred_format,
            classes=classes,
            pictures=pictures if out is not None else 0,
            progress=bar.advance,
            on_problem=warn,
        )
    page = None
    if out is not None:
        from surgeval.protocols.triplets.page import write_page_of

        if not replace and (earlier := _other_scores(scores, out)):
            raise BadInput(f"--out {out}: found {earlier}, expected a new folder, or --replace to write over them")
        with progress_bar("pages") as bar:
            bar.phase("page")
            scores.save(out)
            page = write_page_of([scores], out)
    if json:
        print_json(_as_json(scores, page))
    else:
        _print(scores, page, warned)


def _other_scores(scores: TripletScores, out: Path) -> str | None:
    """What finished scores of other predictions or settings are there; the same ones may be written again."""
    from surgeval.protocols.triplets.result import load_triplets

    if not (out / "run.json").is_file():
        return None
    try:
        earlier = load_triplets(out)
    except SurgevalError:  # damaged: nobody's result
        return None
    if earlier.name != scores.name:
        return f"the scores of {earlier.name}"
    both = [run.to_json() for run in (earlier, scores)]  # NaN, which equals nothing, is None there
    same = all(both[0][part] == both[1][part] for part in ("numbers", "settings"))
    return None if same else "scores of other predictions or settings"


def _as_json(scores: TripletScores, page: Path | None) -> dict[str, Any]:
    tables = {key: table.to_dicts() for key, table in scores.sheets.items()}
    return {**scores.to_json(), "tables": tables, "report": str(page) if page else None}


def _print_problem(problem: Problem) -> None:
    """Print a warning about the predictions before any number; an error ends the command."""
    from surgeval.datasets import raise_errors

    raise_errors(problem)
    typer.echo(visible(f"warning: {problem}"), err=True)


def _print(scores: TripletScores, page: Path | None, warned: Sequence[str]) -> None:
    from surgeval.protocols.triplets.readable import readable_scores

    say = rich_console().print
    verdict = scores.verdict()
    if verdict is not None:
        say(visible(f"{scores.name}: {verdict}"))
    first, *others = readable_scores(scores)
    print_pieces(first.title, first.frame)
    for note in scores.notes:
        if note not in warned:
            say(f"note: {note}")
    if page is None:
        say(f"{len(others)} more tables: --out FOLDER writes them all, with a page")
    else:
        say(f"{len(others)} more tables are on the page and, unrounded, in {page.parent / 'tables'}")
        say(f"open {page}")
