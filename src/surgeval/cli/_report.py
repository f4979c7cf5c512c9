"""`surgeval report`: a page about a dataset, or about runs side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from surgeval.cli._console import console, print_json, progress
from surgeval.cli._data import FormatOption, JsonOption, LabelsOption, claim_folder, open_named
from surgeval.errors import BadInput


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(report)


def report(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH…", help="A dataset, or run folders of surgxbench.", show_default=False)
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder for report.html, tables and figures.")],
    format: FormatOption = None,
    labels: LabelsOption = None,
    json: JsonOption = False,
) -> None:
    """Write one offline page about a dataset, or about several models whose runs stand side by side.

    Example: [bold]surgeval report my_dataset --out my_report[/bold]

    Example: [bold]surgeval report runs/clip runs/surgvlp --out both[/bold]
    """
    runs = [path for path in paths if (path / "run.json").is_file()]
    if runs and len(runs) < len(paths):
        other = next(path for path in paths if path not in runs)
        raise BadInput(f"{other}: found no run.json, expected run folders only, or one dataset")
    if not runs and len(paths) > 1:
        raise BadInput(f"{paths[1]}: found a second dataset, expected one dataset or several run folders")
    page = _write_runs(runs, out) if runs else write_report(paths[0], out, format, labels)
    if json:
        print_json({"report": str(page)})
    else:
        console().print(f"open {page}")


def _write_runs(folders: list[Path], out: Path) -> Path:
    from surgeval.protocols.surgxbench import load_surgxbench
    from surgeval.report import write_surgxbench_report

    if any(out.resolve() == folder.resolve() for folder in folders):
        raise BadInput(f"--out {out}: found one of the run folders, expected another folder")
    claim_folder(out, "report.html")
    return write_surgxbench_report([load_surgxbench(folder) for folder in folders], out)


def write_report(path: Path, out: Path, format: str | None, labels: str | None) -> Path:
    """Check the dataset, draw a contact sheet and write the page: problems are reported there, not raised."""
    from surgeval import datasets
    from surgeval.report import write_dataset_report

    claim_folder(out, "report.html")

    dataset = open_named(path, format, labels)
    with progress("frames") as bar:
        task = bar.add_task("reading", total=None)
        found = datasets.check(dataset, images=False, progress=lambda _video, done: bar.update(task, completed=done))
        bar.update(task, description="drawing")
        sheet = datasets.contact_sheet(dataset, on_problem=_ignore) if found.images else None
        return write_dataset_report(dataset, out, check=found, sheet=sheet, on_problem=_ignore)


def _ignore(problem: object) -> None:
    """Problems have been collected by the check already and stand on the page."""
