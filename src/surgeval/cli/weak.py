"""`surgeval weak-boxes`: the heatmaps of a model that was never shown a box, as detections."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from surgeval.console import claim_file, open_named, print_json, progress_bar, require_models, rich_console
from surgeval.console.options import FormatOption, JsonOption, LabelsOption, OverwriteOption
from surgeval.console.panels import READING, RUNNING, grouped
from surgeval.errors import BadInput, visible
from surgeval.results import counted

PromptsName: TypeAlias = Literal["paired", "triplets", "instruments"]
_CUTTING = "Advanced: from maps to boxes"
_SUFFIXES = (".parquet", ".csv", ".json")
_TOLD = 5  # frames that could not be read, by name


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="weak-boxes")(weak_boxes)


@grouped({_CUTTING: "top threshold least most iou", READING: "video format labels", RUNNING: "batch device overwrite"})
def weak_boxes(
    data: Annotated[Path, typer.Option(help="A dataset with images.", show_default=False)],
    model: Annotated[
        str, typer.Option(help="One that scores prompts, as in `surgeval models list`.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="The table: .parquet or .csv; COCO as .json.", show_default=False)],
    prompts: Annotated[
        PromptsName,
        typer.Option(help="Triplets on their instrument's map, on their own map, or instruments alone."),
    ] = "paired",
    top: Annotated[int, typer.Option(min=1, help="Prompts of a frame, the likeliest, that get boxes.")] = 5,
    threshold: Annotated[float, typer.Option(help="Share of a map's range from which a pixel counts.")] = 0.5,
    least: Annotated[float, typer.Option(help="Smallest piece, as a share of what was seen.")] = 0.002,
    most: Annotated[int, typer.Option(min=1, help="Boxes of one map, the hottest.")] = 3,
    iou: Annotated[float, typer.Option(help="Overlap above which the weaker box of a class goes.")] = 0.5,
    video: Annotated[list[str] | None, typer.Option(help="Only this video (repeatable).")] = None,
    format: FormatOption = None,
    labels: LabelsOption = None,
    batch: Annotated[int, typer.Option(min=1, max=1024, help="Frames at a time.")] = 16,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1 …")] = "cpu",
    overwrite: OverwriteOption = False,
    json: JsonOption = False,
) -> None:
    """Turn the heatmaps of a model that scores prompts into boxes: the baseline that needs no labelled box.

    The table goes into `surgeval score triplets` as it is (with --prompts instruments: --components i).

    Example: [bold]surgeval weak-boxes --model phantom-clip --data phantom/ --out weak.parquet[/bold]
    """
    require_models("weak-boxes")
    if out.suffix.lower() not in _SUFFIXES:
        raise BadInput(f"--out {out}: found suffix {out.suffix!r}, expected {', '.join(_SUFFIXES)}")
    claim_file(out, data, model, overwrite=overwrite)
    with progress_bar("frames", show=not json) as bar:
        bar.phase(f"loading {visible(model)}")
        from surgeval.datasets.predictions import ground_truth, write_detections
        from surgeval.models import open_contrastive
        from surgeval.protocols.weak_boxes import WeakSettings
        from surgeval.protocols.weak_boxes import weak_boxes as look

        settings = WeakSettings(prompts, top, threshold, least, most, iou, batch)
        net = open_contrastive(model, device=device)
        dataset = open_named(data, format, labels)
        truth = ground_truth(dataset, video)
        bar.phase("looking", len(truth.frames))
        looked = look(net, dataset, settings, videos=truth.videos)
        bar.phase("writing")
        report = write_detections(looked.table, out, dataset=truth)
    for sentence in looked.unread[:_TOLD]:
        typer.echo(visible(f"note: {sentence}"), err=True)
    if json:
        print_json({"model": net.name, "out": str(report.path), "frames": looked.frames, "unread": list(looked.unread),
                    "boxes": report.rows, "losses": list(report.losses)})  # fmt: skip
        return
    missing = f", {len(looked.unread):,} without a picture" if looked.unread else ""
    rich_console().print(f"{counted(looked.frames, 'frame')}{missing}, {report.rows:,} boxes")
    for loss in report.losses:
        rich_console().print(f"lost: {visible(loss)}")
    rich_console().print(visible(str(report.path)))
