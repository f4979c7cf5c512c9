"""`surgeval compare`: is one run really better than another on the same videos?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from surgeval.cli.single_file import writes_pages
from surgeval.console import claim_folder, print_json, print_pieces, progress_bar, rich_console
from surgeval.console.options import JsonOption, TablesOption
from surgeval.errors import BadInput, visible
from surgeval.results import counted

if TYPE_CHECKING:
    from surgeval.protocols.descriptor import Descriptor

_SHOWN = 12  # numbers on the screen: the main ones come first, and --out and --json have all of them


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(writes_pages(compare))


def compare(
    a: Annotated[Path, typer.Argument(help="A run folder.", show_default=False)],
    b: Annotated[Path, typer.Argument(help="Another of the same protocol, on the same data.", show_default=False)],
    resamples: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1_000_000,
            help="Exchanges of videos to draw at most. Default: the protocol's (triplets and training 1000, others "
            "2000).",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Seed of the drawn exchanges. Default: 0.", show_default=False)
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for report.html, tables and figures.")] = None,
    tables: TablesOption = None,
    json: JsonOption = False,
) -> None:
    """Paired differences A − B on the same videos, with intervals and a test, for two runs of any protocol.

    Example: [bold]surgeval compare runs/mine runs/baseline --out runs/mine-and-baseline[/bold]
    """
    from surgeval.pages import table_formats
    from surgeval.protocols.registry import descriptor_of, folder_kind_of

    for folder in (a, b):
        if (kind := folder_kind_of(folder)) is not None:
            raise BadInput(f"{folder}: found a {kind.noun}, expected a run: {kind.to_compare}")
    first, second = (descriptor_of(folder) for folder in (a, b))
    if first.name != second.name:
        raise BadInput(f"{a} and {b}: found {first.name} and {second.name}, expected two runs of one protocol")
    if (a / "run.json").samefile(b / "run.json"):  # also by another path or through a link
        raise BadInput(f"{a} and {b}: found the same run twice, expected two")
    # Its results and their comparison are asked for numbers and texts until the last line is printed.
    with first.answers_for("load", passing=(OSError, MemoryError)), table_formats(*tables or ()):
        drawing = {"resamples": resamples, "seed": seed}
        _compare(first, a, b, {key: value for key, value in drawing.items() if value is not None}, out, json)


def _compare(protocol: Descriptor, a: Path, b: Path, drawing: dict[str, Any], out: Path | None, json: bool) -> None:
    from surgeval import protocols
    from surgeval.protocols.run_page import evidence_of
    from surgeval.report import own_verdicts, readable_comparison, tally, write_comparison_page

    with progress_bar("runs") as bar:
        results = [protocol.part("load")(folder) for folder in bar.track((a, b), "reading", 2)]
        bar.phase("comparing")
        comparison = protocols.compare(*results, **drawing)
    if comparison.a == comparison.b:
        comparison = replace(comparison, a=str(a), b=str(b))
    own = {
        name: verdict
        for name, run in zip((comparison.a, comparison.b), results, strict=True)
        if (verdict := run.verdict())
    }
    if out is not None:
        claim_folder(out, "report.html")
    with progress_bar("pages") as bar:
        bar.phase("page")
        page = write_comparison_page(comparison, out, evidence_of(results), verdicts=own) if out is not None else None
    if json:
        verdicts = {
            "verdict": tally(comparison),
            "own_verdicts": {name: verdict.to_json() for name, verdict in own.items()},
        }
        print_json({**comparison.to_json(), **verdicts, "report": str(page) if page else None})
        return
    if differing := own_verdicts(own):
        rich_console().print(visible(differing))
    rich_console().print(visible(tally(comparison)))
    for title, frame in readable_comparison(comparison).items():
        print_pieces(title, frame.head(_SHOWN))
        if frame.height > _SHOWN:
            where = "on the page" if page is not None else "(--out FOLDER writes all of them, with a page)"
            rich_console().print(f"and {counted(frame.height - _SHOWN, 'more number')} {where}")
    for note in comparison.notes:
        rich_console().print(f"note: {visible(note)}")
    if page is not None:
        rich_console().print(f"open {visible(str(page))}")
