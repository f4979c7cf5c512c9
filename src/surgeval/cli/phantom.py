"""`surgeval phantom`: train the small models that come with the phantom, and examine what was trained."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from surgeval.cli.group import command_group
from surgeval.console import print_json, print_table, require_models
from surgeval.errors import BadInput
from surgeval.results import counted

if TYPE_CHECKING:
    from surgeval.phantom.training import Examined
    from surgeval.stats import Interval

app = command_group("Train and examine the embedded models.", "surgeval phantom examine phantom-clip")


def register(root: typer.Typer) -> None:
    """Add `phantom` to the command."""
    root.add_typer(app, name="phantom")


@app.command()
def train(
    name: Annotated[
        str,
        typer.Argument(
            help="phantom-clip, phantom-clip-resnet, phantom-shortcut, phantom-llava, phantom-sycophant, or all."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder to write OUT/NAME into.")],
    device: Annotated[str, typer.Option(help="cpu, or cuda for minutes instead of hours.")] = "cpu",
    steps: Annotated[int | None, typer.Option(help="Optimiser steps.")] = None,
    batch: Annotated[int | None, typer.Option(help="Frames in a step.")] = None,
    rate: Annotated[float | None, typer.Option(help="Highest learning rate.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of weights and draws.")] = None,
    videos: Annotated[int | None, typer.Option(help="Training videos.")] = None,
    workers: Annotated[int | None, typer.Option(help="Rendering processes: one per core.")] = None,
    frames: Annotated[Path | None, typer.Option(help="File that keeps the rendered frames.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Render, train and save as fp16; what is not given is taken from the model's recipe.

    Example: [bold]surgeval phantom train phantom-clip --out weights --device cuda[/bold]
    """
    require_models("phantom")
    from surgeval.phantom.training import NAMES, recipe_for, train_embedded

    recipes = {
        model: recipe_for(model, videos=videos, steps=steps, batch=batch, rate=rate, seed=seed)
        for model in (NAMES if name == "all" else [name])
    }
    report = train_embedded(
        recipes, out, device=device, workers=workers, frames=frames, log=lambda line: typer.echo(line, err=True)
    )
    if json:
        print_json(report)
        return
    rows = [
        [model, told["recipe"]["videos"], told["recipe"]["steps"], told["seconds_training"], told["losses"][-1],
         str(out / model)]
        for model, told in report.items()
    ]  # fmt: skip
    print_table("Trained", ("model", "videos", "steps", "seconds", "last loss", "folder"), rows)


@app.command()
def examine(
    models: Annotated[
        list[str] | None,
        typer.Argument(help="Embedded names, or folders that training wrote (default: the embedded CLIPs)."),
    ] = None,
    held_out: Annotated[int, typer.Option(help="Test videos beside those of phantom-v1.")] = 0,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    workers: Annotated[int | None, typer.Option(help="Rendering processes: one per core.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Is it right, where does it look, what does it lose? On test videos in both tints, with intervals by video.

    Example: [bold]surgeval phantom examine phantom-clip phantom-shortcut[/bold]
    """
    if workers is not None and workers < 1:
        raise BadInput(f"workers: found {workers}, expected at least 1")
    require_models("phantom")
    from surgeval.phantom.training import CLIPS, examine_embedded

    results = examine_embedded(
        models or CLIPS,
        held_out=held_out,
        device=device,
        workers=workers or os.cpu_count() or 1,
        log=lambda line: typer.echo(line, err=True),
    )
    if json:
        print_json([_plain(result) for result in results])
        return
    show(results)


def show(results: Sequence[Examined]) -> None:
    """One table per set of videos: a row per measure, a column per model."""
    for result in results:
        first = next(iter(result.models.values()))
        rows = [[row.name, *(str(scores[row.name]) for scores in result.models.values())] for row in first]
        print_table(_title(result), ("", *result.models), rows)
        for lead in result.leads.values():
            typer.echo(f"accuracy, {lead.interval.name}: {lead}")
        typer.echo("")


def _title(result: Examined) -> str:
    first = next(iter(result.models.values()))["accuracy"]
    return f"{result.videos}, tint {result.tint}: {counted(first.n, 'frame')} of {counted(first.clusters, 'video')}"


def _plain(result: Examined) -> dict[str, Any]:
    return {
        "videos": result.videos,
        "tint": result.tint,
        "models": {name: {row.name: _row(row) for row in rows} for name, rows in result.models.items()},
        "leads": {lead.interval.name: _row(lead.interval) for lead in result.leads.values()},
    }


def _row(interval: Interval) -> dict[str, float | int | None]:
    ends = {key: getattr(interval, key) for key in ("estimate", "low", "high")}
    known = {key: value if value == value else None for key, value in ends.items()}  # NaN is no JSON
    return {**known, "n": interval.n, "videos": interval.clusters}
