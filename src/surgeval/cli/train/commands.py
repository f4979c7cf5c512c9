"""`surgeval train`: TDnet or RT-DETR on the boxes of a dataset; a training that was stopped goes on by itself."""

from __future__ import annotations

import typer

from surgeval.cli.group import command_group
from surgeval.cli.train.options import RTDetrOptions, TrainOptions
from surgeval.cli.train.training import train
from surgeval.console import takes
from surgeval.console.panels import READING, RUNNING, grouped

app = command_group(
    "Train a detector; the same command again goes on with a training that was stopped.",
    "surgeval train tdnet --data prostatd --fold 1 --device cuda --out runs/tdnet-1",
)

VIDEOS, LEARNING = "Which videos", "Advanced: learning"
_PANELS = {
    VIDEOS: "fold folds all_folds leave_source_out sources val_videos split",
    READING: "task format labels",
    RUNNING: "workers compile evaluate_every",
}


def register(root: typer.Typer) -> None:
    """Add `train` to the commands."""
    root.add_typer(app, name="train")


@app.command()
@grouped({**_PANELS, LEARNING: "aux student preset rate weights fusion sampling seed set"})
@takes(TrainOptions)
def tdnet(options: TrainOptions) -> None:
    """Train TDnet: a detector of triplets with heads for instrument, verb and target, and its distilled student.

    Try [bold]--dry-run[/bold] first: it reads every label, draws some, and says whether they can be learnt.

    Example: [bold]surgeval train tdnet --data phantom --size p --minutes 10 --out runs/tdnet[/bold]

    Example: [bold]surgeval train tdnet --data prostatd --fold 1 --device cuda --out runs/fold1[/bold]
    """
    train("tdnet", options)


@app.command()
@grouped({**_PANELS, LEARNING: "aux rate weights sampling seed set"})
@takes(RTDetrOptions)
def rtdetr(options: RTDetrOptions) -> None:
    """Train RT-DETR, the second baseline: transformers' network with a ResNet, not the paper's rtdetr-l.

    Example: [bold]surgeval train rtdetr --data prostatd --fold 1 --device cuda --out runs/rtdetr-1[/bold]
    """
    train("rtdetr", options)
