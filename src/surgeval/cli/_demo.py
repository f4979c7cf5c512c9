"""`surgeval demo`: the shortest path through the whole product, offline."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from surgeval.cli._console import console, print_json, progress
from surgeval.cli._data import JsonOption, rendering
from surgeval.cli._report import write_report
from surgeval.errors import DataError

EDITION = "phantom-v1"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(demo)


def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for everything the demo makes.")] = Path("demo"),
    json: JsonOption = False,
) -> None:
    """Make the surgical phantom, check it, report on it, and say where to look.

    Example: [bold]surgeval demo --out demo[/bold]
    """
    from surgeval import datasets
    from surgeval.phantom import write_edition

    say = _silent if json else console().print
    say(f"1. {EDITION}: 18 operations from 3 hospitals that never were, every label known")
    with rendering() as show:
        data = write_edition(EDITION, out / EDITION, progress=show)
    dataset = datasets.open_dataset(data)
    with progress("frames") as bar:
        task = bar.add_task("checking", total=None)
        found = datasets.check(dataset, progress=lambda _video, done: bar.update(task, completed=done))
    say(f"2. {found.summary()}")
    if found.problems:
        first = found.problems[0]
        raise DataError(first.file, record=first.record, field=first.field, found=first.found, expected=first.expected)
    page = write_report(data, out / "report", None, None)
    say("3. what is in it, as a page and as tables")
    if json:
        print_json({"data": str(data), "report": str(page), **_counts(found)})
        return
    film = sorted((data / "videos").glob("*.mp4"))
    say("\nLook here:")
    say(f"  {page}   the report")
    say(f"  {data / 'frames'}   the frames" + (f", and a film: {film[0]}" if film else ""))
    say("\nThen your own data:\n  surgeval data check FOLDER\n  surgeval report FOLDER --out report")


def _silent(text: str) -> None:
    """With --json, standard output holds one object and nothing else."""


def _counts(found: object) -> dict[str, int]:
    return {name: getattr(found, name) for name in ("videos", "frames", "instances", "questions")}
