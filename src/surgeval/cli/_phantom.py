"""`surgeval phantom`: train the small models that come with the phantom."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from surgeval.cli._console import print_json, print_table
from surgeval.errors import BadInput

app = typer.Typer(
    help="Train the embedded models.\n\nExample: [bold]surgeval phantom train all --out weights --device cuda[/bold]",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


def register(root: typer.Typer) -> None:
    """Add `phantom` to the command."""
    root.add_typer(app, name="phantom")


@app.callback()
def _group() -> None:
    """Keeps `train` a sub-command although it is the only one."""


@app.command()
def train(
    name: Annotated[str, typer.Argument(help="phantom-clip, phantom-clip-resnet, phantom-shortcut, or all.")],
    out: Annotated[Path, typer.Option("--out", help="Folder to write OUT/NAME into.")],
    device: Annotated[str, typer.Option("--device", help="cpu, or cuda for minutes instead of hours.")] = "cpu",
    steps: Annotated[int, typer.Option("--steps", help="Optimiser steps.")] = 6000,
    batch: Annotated[int, typer.Option("--batch", help="Frames in a step.")] = 512,
    videos: Annotated[int, typer.Option("--videos", help="Training videos of 150 frames each.")] = 300,
    held_out: Annotated[int, typer.Option("--held-out", help="Test videos beside those of phantom-v1.")] = 18,
    workers: Annotated[int | None, typer.Option("--workers", help="Rendering processes: one per core.")] = None,
    frames: Annotated[Path | None, typer.Option("--frames", help="File that keeps the rendered frames.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Render, train, save as fp16 and examine on held-out videos in both tints.

    Example: [bold]surgeval phantom train phantom-clip --out weights --device cuda[/bold]
    """
    try:
        from surgeval.phantom.training import NAMES, Recipe, train_embedded
    except ImportError as error:
        raise BadInput(f"training: found no {error.name} package, expected `pip install 'surgeval[models]'`") from None
    report = train_embedded(
        NAMES if name == "all" else [name],
        out,
        device=device,
        recipe=Recipe(steps=steps, batch=batch),
        videos=videos,
        held_out=held_out,
        workers=workers,
        frames=frames,
        log=lambda line: typer.echo(line, err=True),
    )
    if json:
        print_json(report)
        return
    columns = ("accuracy", "triplet_top5", "ac_lift", "occlusion_effect")
    rows = [
        [model, where, *(_spelled(result[column]) for column in columns)]
        for model, told in report["models"].items()
        for where, result in told["examinations"].items()
    ]
    print_table("Examination on held-out videos", ("model", "videos", *columns), rows)


def _spelled(value: list[float]) -> str:
    return f"{value[0]:.3f} [{value[1]:.3f}, {value[2]:.3f}]"
