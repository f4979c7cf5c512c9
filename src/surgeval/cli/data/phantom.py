"""`surgeval data phantom`: a surgical scene whose every label is known."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from surgeval.console import print_json, progress_bar, rich_console
from surgeval.console.options import JsonOption
from surgeval.console.panels import RUNNING, grouped
from surgeval.errors import BadInput

Tint: TypeAlias = Literal["none", "random", "by_instrument"]


def register(app: typer.Typer) -> None:
    """Add the command to `surgeval data`."""
    app.command("phantom")(make_phantom)


@grouped(
    {
        RUNNING: "split mp4 processes",
    }
)
def make_phantom(
    out: Annotated[Path, typer.Option(help="The folder to make; finished videos in it are kept.")],
    seed: Annotated[
        int | None, typer.Option(min=0, help="Another seed, another set of operations. Default: 1.")
    ] = None,
    videos: Annotated[int | None, typer.Option(min=1, max=1000, help="How many operations. Default: 3.")] = None,
    seconds: Annotated[float | None, typer.Option(min=2, max=7200, help="Length of each. Default: 60.")] = None,
    size: Annotated[str | None, typer.Option(help="Frame size. Default: 448x256.", metavar="WxH")] = None,
    tint: Annotated[Tint, typer.Option(help="Colour cue in the tissue, for shortcut studies.")] = "none",
    edition: Annotated[
        str | None, typer.Option(help="A fixed edition (phantom-v1) instead of your own settings.")
    ] = None,
    split: Annotated[str | None, typer.Option(help="Only the train, val or test videos.")] = None,
    mp4: Annotated[bool, typer.Option("--mp4", help="Also write each operation as a 25 frames/s video.")] = False,
    processes: Annotated[int | None, typer.Option(min=1, help="Default: one per core.")] = None,
    json: JsonOption = False,
) -> None:
    """Make a surgical phantom: procedural laparoscopy whose every label is known.

    Example: [bold]surgeval data phantom --out D --seed 7 --videos 2 --seconds 10[/bold]

    Example: [bold]surgeval data phantom --out phantom-v1 --edition phantom-v1[/bold]
    """
    from surgeval import phantom

    own = {"--seed": seed, "--videos": videos, "--seconds": seconds, "--size": size}
    options = [name for name, value in own.items() if value is not None]
    if edition is not None and options:
        raise BadInput(f"--edition {edition} fixes all of it: found {options[0]} as well, expected one or the other")
    count = 3 if videos is None else videos
    width, height = _size(size or "448x256")
    fixed = phantom.edition(edition) if edition else None
    plans = (
        phantom.plan_videos(fixed.seed, fixed.videos)
        if fixed
        else phantom.plan_videos(1 if seed is None else seed, count)
    )
    with rendering(sum(split in (None, plan.split) for plan in plans)) as show:
        if edition is not None:
            folder = phantom.write_edition(
                edition, out, tint=tint, split=split, processes=processes, progress=show, mp4=mp4
            )
        else:
            folder = phantom.write_phantom(
                out,
                seed=1 if seed is None else seed,
                videos=count,
                seconds=60.0 if seconds is None else seconds,
                width=width,
                height=height,
                tint=tint,
                split=split,
                processes=processes,
                progress=show,
                mp4=mp4,
            )
    if json:
        print_json({"out": str(folder)})
    else:
        rich_console().print(f"{folder}: look at it with: surgeval report {folder} --out report")


@contextmanager
def rendering(videos: int) -> Iterator[Callable[[str, int, int], None]]:
    """A progress display for a phantom of so many operations, fed with (operation, frames done, frames)."""
    with progress_bar("frames") as bar:
        bar.phase("rendering")
        frames: dict[str, tuple[int, int]] = {}

        def show(video: str, done: int, total: int) -> None:
            frames[video] = done, total
            finished, known = (sum(pair[k] for pair in frames.values()) for k in (0, 1))
            bar.reach(finished, known * videos // len(frames))  # operations are equally long

        yield show


def _size(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{2,4})x(\d{2,4})", text)
    if not match or any(int(number) % 2 or not 64 <= int(number) <= 2160 for number in match.groups()):
        raise BadInput(f"--size: found {text!r}, expected WIDTHxHEIGHT, both even and from 64 to 2160, like 448x256")
    return int(match[1]), int(match[2])
