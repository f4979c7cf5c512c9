"""`surgeval report`: a page about a dataset, a run, several runs, or a folder of runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from surgeval.cli._single_file import writes_pages
from surgeval.console import (
    READING,
    FormatOption,
    JsonOption,
    LabelsOption,
    claim_folder,
    console,
    grouped,
    open_named,
    print_json,
    progress,
)
from surgeval.errors import BadInput, visible

if TYPE_CHECKING:
    from surgeval.datasets import CheckReport, Dataset


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(writes_pages(report))


@grouped(
    {
        READING: "format labels",
    }
)
def report(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="PATH…", help="A dataset, run folders, or a folder of runs.", show_default=False),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder for the page, its tables and figures. Default: the run's own folder."),
    ] = None,
    format: FormatOption = None,
    labels: LabelsOption = None,
    json: JsonOption = False,
) -> None:
    """Write one offline page: about a dataset, about a run from what it stored, or an index of several runs.

    Example: [bold]surgeval report my_dataset --out my_report[/bold]

    Example: [bold]surgeval report runs/clip[/bold]

    Example: [bold]surgeval report runs/clip runs/surgvlp --out both[/bold]

    Example: [bold]surgeval report runs[/bold]
    """
    from surgeval.protocols.registry import is_run, runs_in

    for path in paths:
        if not path.exists():
            raise BadInput(f"{path}: found no such file or folder, expected a dataset, a run or a folder of runs")
    runs = [path for path in paths if is_run(path)]
    if runs and len(runs) < len(paths):
        other = next(path for path in paths if path not in runs)
        raise BadInput(f"{other}: found no run.json, expected run folders only, or one dataset")
    if not runs and len(paths) > 1:
        raise BadInput(f"{paths[1]}: found a second dataset, expected one dataset or several run folders")
    if runs:
        page = _of_runs(runs, out)
    elif format is None and paths[0].is_dir() and runs_in(paths[0]) and not _is_dataset(paths[0]):
        page = _of_folder(paths[0], out)
    else:
        page = write_report(paths[0], _needed(out), format, labels)
    if json:
        print_json({"report": str(page)})
    else:
        console().print(f"open {visible(str(page))}")


def _is_dataset(path: Path) -> bool:
    """A dataset may well hold a folder of runs."""
    from surgeval.datasets import dataset_formats

    return any(known.detect(path) for known in dataset_formats().values())


def _needed(out: Path | None) -> Path:
    if out is None:
        raise BadInput("--out: found none, expected a folder for the report on a dataset")
    return out


def _of_runs(folders: list[Path], out: Path | None) -> Path:
    from surgeval.report import write_run_pages

    if len(folders) > 1 and out is None:
        raise BadInput("--out: found none, expected a folder for the page about several runs")
    if out is not None and any(out.resolve() == folder.resolve() for folder in folders):
        raise BadInput(f"--out {out}: found one of the run folders, expected another folder")
    if out is not None:
        claim_folder(out, "report.html")
    return write_run_pages(folders, out)


def _of_folder(folder: Path, out: Path | None) -> Path:
    from surgeval.report import write_index

    if out is not None and out.resolve() != folder.resolve():
        claim_folder(out, "index.html")
    return write_index(folder, out)


def write_report(path: Path, out: Path, format: str | None, labels: str | None) -> Path:
    """Check the dataset, draw a contact sheet and write the page: problems are reported there, not raised."""
    claim_folder(out, "report.html")
    return write_checked(open_named(path, format, labels), out)


def write_checked(dataset: Dataset, out: Path, found: CheckReport | None = None) -> Path:
    """The page about an opened dataset; `found` is what an earlier check said."""
    from surgeval import datasets
    from surgeval.report import write_dataset_report

    with progress("frames") as bar:
        bar.phase("reading")
        found = found or datasets.check(dataset, images=False, progress=lambda _video, done: bar.reach(done))
        bar.phase("drawing and writing the page")
        sheet = datasets.contact_sheet(dataset, on_problem=_ignore) if found.images else None
        return write_dataset_report(dataset, out, check=found, sheet=sheet, on_problem=_ignore)


def _ignore(problem: object) -> None:
    """Problems have been collected by the check already and stand on the page."""
