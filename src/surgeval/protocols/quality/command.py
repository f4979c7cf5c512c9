"""`surgeval run quality`: measure every frame and propose the ones that nobody can use."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from surgeval.console import claim_folder, print_frame, print_json, rich_console
from surgeval.console.options import FormatOption, JsonOption, LabelsOption
from surgeval.console.panels import READING, RUNNING, grouped
from surgeval.errors import BadInput, visible
from surgeval.results import counted

if TYPE_CHECKING:
    from surgeval.protocols.quality.method import QualityRun

__all__ = ["print_quality", "quality_json"]


@grouped(
    {
        READING: "format labels",
        RUNNING: "processes retry",
    }
)
def run(
    data: Annotated[Path, typer.Option(help="A dataset folder or file with frames.", show_default=False)],
    out: Annotated[Path, typer.Option(help="The run's folder: new, or one to resume.", show_default=False)],
    format: FormatOption = None,
    labels: LabelsOption = None,
    processes: Annotated[int, typer.Option(min=1, help="Processes that measure.")] = 1,
    retry: Annotated[bool, typer.Option("--retry", help="Do again only what failed.")] = False,
    json: JsonOption = False,
) -> int:
    """Measure every frame of a dataset and propose the ones to drop: black, dark, bright, out of body, blurred.

    Nothing is deleted. Exit code 1 when a frame could not be read; a run that was stopped is resumed by the same
    command. `surgeval data check --quality` does the same beside its own checks.

    Example: [bold]surgeval run quality --data frames --out runs/quality[/bold]
    """
    from surgeval.protocols.quality.method import run_quality
    from surgeval.protocols.quality.page import write_page_of

    claim_folder(out, "run.json")
    if retry and not (out / "run.json").is_file():
        raise BadInput(f"--retry: {out}: found no run.json, expected the folder of a run")
    done = run_quality(data, out, format=format, labels=labels, processes=processes, retry=retry, progress=not json)
    page = write_page_of([done.scores], out)
    if json:
        print_json({**quality_json(done), "failures": done.summary.to_frame().to_dicts(), "report": str(page)})
    else:
        print_quality(done)
        rich_console().print(f"open {visible(str(page))}")
    return done.summary.exit_code


def quality_json(done: QualityRun) -> dict[str, object]:
    """The frames to drop and the verdict, for machines."""
    verdict = done.verdict()
    return {"drop": done.tables["drop"].to_dicts(), "verdict": verdict.to_json() if verdict else None}


def print_quality(done: QualityRun) -> None:
    """What was done, the verdict and the frames to drop."""
    for line in str(done.summary).splitlines():
        rich_console().print(visible(line))
    verdict = done.verdict()
    if verdict is not None:
        rich_console().print(visible(str(verdict)))
    drop = done.tables["drop"]
    if drop.height:
        print_frame(f"{counted(drop.height, 'frame')} to drop", drop)
