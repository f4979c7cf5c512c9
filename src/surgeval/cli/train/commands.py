"""`surgeval train`: TDnet or RT-DETR on the boxes of a dataset; a training that was stopped goes on by itself."""

from __future__ import annotations

import typer

from surgeval.cli.group import command_group
from surgeval.cli.train.options import RTDetrOptions, TrainOptions
from surgeval.cli.train.training import train
from surgeval.console.commands import with_options

app = command_group(
    "Train a detector; the same command again goes on with a training that was stopped.",
    "surgeval train tdnet --data prostatd --fold 1 --device cuda --out runs/tdnet-1",
)


def register(root: typer.Typer) -> None:
    """Add `train` to the commands."""
    root.add_typer(app, name="train")


@app.command()
@with_options(TrainOptions)
def tdnet(options: TrainOptions) -> None:
    """Train TDnet: a detector of triplets with heads for instrument, verb and target, and its distilled student.

    Try [bold]--dry-run[/bold] first: it reads every label, draws some, and says whether they can be learnt.

    Example: [bold]surgeval train tdnet --data phantom --size p --minutes 10 --out runs/tdnet[/bold]

    Example: [bold]surgeval train tdnet --data prostatd --fold 1 --device cuda --out runs/fold1[/bold]
    """
    train("tdnet", options)


@app.command()
@with_options(RTDetrOptions)
def rtdetr(options: RTDetrOptions) -> None:
    """Train RT-DETR, the second baseline: transformers' network with a ResNet, not the paper's rtdetr-l.

    Example: [bold]surgeval train rtdetr --data prostatd --fold 1 --device cuda --out runs/rtdetr-1[/bold]
    """
    train("rtdetr", options)
