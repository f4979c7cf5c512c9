"""`surgeval compare`: is one method really better than another on the same videos?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from surgeval.cli._console import console, print_json
from surgeval.cli._data import JsonOption
from surgeval.cli._score import print_pieces


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(compare)


def compare(
    a: Annotated[Path, typer.Argument(help="A folder that `surgeval score … --out` wrote.", show_default=False)],
    b: Annotated[Path, typer.Argument(help="Another, scored on the same data.", show_default=False)],
    json: JsonOption = False,
) -> None:
    """Paired differences A − B with intervals over the same resamples of videos.

    Example: [bold]surgeval compare runs/mine runs/baseline[/bold]
    """
    from surgeval.protocols._triplets.readable import readable_comparison
    from surgeval.protocols.triplets import compare_triplets

    found = compare_triplets(a, b)
    table = found.table()
    if json:
        print_json({"a": found.a, "b": found.b, "settings": found.settings, "differences": table.to_dicts()})
        return
    for one in readable_comparison(found):
        print_pieces(one.title, one.frame)
    if len(table) and table["few_clusters"][0]:
        console().print(
            f"note: only {table['clusters'][0]} videos: too few for a test or a claim about videos in general"
        )
