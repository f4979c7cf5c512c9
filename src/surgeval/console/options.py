"""Options that several commands share, in the same words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

__all__ = [
    "BoxesOption",
    "FormatOption",
    "JsonOption",
    "LabelsOption",
    "MappingOption",
    "MethodName",
    "MethodOption",
    "OrderOption",
    "OverwriteOption",
    "ResamplesOption",
    "SeedOption",
    "SourcesOption",
    "StartLayerOption",
    "TablesOption",
    "WordsName",
]

FormatOption = Annotated[
    str | None, typer.Option("--format", help="The source format, where it cannot be told from the files.")
]
LabelsOption = Annotated[
    str | None, typer.Option("--labels", help="Label space: a packaged name (cholect50, …) or a JSON file.")
]
MappingOption = Annotated[
    Path | None,
    typer.Option("--mapping", help="TOML or JSON file that says what the columns of a table of boxes mean."),
]
BoxesOption = Annotated[
    Path | None,
    typer.Option("--boxes", help="A second dataset whose boxes the instruments take, by video, time and class."),
]
ResamplesOption = Annotated[
    int,
    typer.Option("--resamples", min=1, max=1_000_000, metavar="N", help="Exchanges or resamples of videos to draw."),
]
SeedOption = Annotated[int, typer.Option("--seed", min=0, metavar="N", help="Seed of everything that is drawn.")]
SourcesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--sources",
        metavar="PATTERN=NAME",
        help="Which videos are of which source (hospital): 'esad*=ESAD' (repeatable, or with commas), or a .csv file "
        "with the columns video and source, or a .json file. ProstaTD's videos are known.",
    ),
]
OverwriteOption = Annotated[
    bool, typer.Option("--overwrite", help="Replace an existing output; input files are never replaced.")
]
TablesOption = Annotated[
    list[str] | None,
    typer.Option("--tables", metavar="FORMAT", help="Write the tables as latex or markdown too (repeatable)."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]

# Which heatmap.
MethodName: TypeAlias = Literal["auto", "rollout", "gradcam", "cross", "token-gradcam"]
WordsName: TypeAlias = Literal["mean", "first", "max"]  # how the maps of a name's tokens become one
MethodOption = Annotated[MethodName, typer.Option(help="Default: what the tower allows.")]
OrderOption = Annotated[str, typer.Option(help="Rollout: chefer or seed.")]
StartLayerOption = Annotated[int, typer.Option(help="Rollout: first block; -1 = the last only.")]
