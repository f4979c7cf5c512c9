"""`surgeval report`: a page about a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from surgeval.cli._console import console, print_json, progress
from surgeval.cli._data import FormatOption, JsonOption, LabelsOption, claim_folder, open_named


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(report)


def report(
    path: Annotated[Path, typer.Argument(help="A dataset folder or file.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", help="Folder for report.html, tables and figures.")],
    format: FormatOption = None,
    labels: LabelsOption = None,
    json: JsonOption = False,
) -> None:
    """Write one offline page about a dataset: frequencies, co-occurrence, durations, problems.

    Example: [bold]surgeval report my_dataset --out my_report[/bold]
    """
    page = write_report(path, out, format, labels)
    if json:
        print_json({"report": str(page)})
    else:
        console().print(f"open {page}")


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
