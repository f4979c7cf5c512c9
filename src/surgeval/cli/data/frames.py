"""`surgeval data frames`: cut video into what models are fed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from surgeval.console import claim_file, print_json, progress_bar, rich_console
from surgeval.console.options import JsonOption, OverwriteOption
from surgeval.console.panels import grouped
from surgeval.errors import BadInput
from surgeval.files import path_inside, safe_name
from surgeval.results import counted


def register(app: typer.Typer) -> None:
    """Add the command to `surgeval data`."""
    app.command("frames")(frames)


@grouped({})
def frames(
    videos: Annotated[list[Path], typer.Argument(help="Video files.", metavar="VIDEO…", show_default=False)],
    out: Annotated[Path, typer.Option(help="Folder; each video gets one of its own in it.")],
    every: Annotated[str | None, typer.Option(help="One frame per so much time: 1s, 0.5s, 2m.")] = None,
    stride: Annotated[int | None, typer.Option(min=1, help="Each n-th frame instead.")] = None,
    overlay_time: Annotated[bool, typer.Option("--overlay-time", help="Burn the time (hh:mm:ss) into it.")] = False,
    clip: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="START END", help="One MP4 of this window (seconds or hh:mm:ss), no frames."),
    ] = None,
    overwrite: OverwriteOption = False,
    json: JsonOption = False,
) -> None:
    """Cut videos into frames or clips, exact to the frame.

    Example: [bold]surgeval data frames operation.mp4 --every 1s --overlay-time --out frames[/bold]

    Example: [bold]surgeval data frames operation.mp4 --clip 00:01:00 00:01:30 --out clips[/bold]
    """
    from surgeval.datasets import clip_video, cut_frames

    if every is not None and stride is not None:
        raise BadInput("--every and --stride: found both, expected one of them")
    if clip is not None and (every is not None or stride is not None):
        raise BadInput("--clip keeps every frame: found --every or --stride as well, expected one or the other")
    stems = [safe_name(video.stem) for video in videos]
    folded = [stem.casefold() for stem in stems]
    if len(set(folded)) != len(folded):
        raise BadInput(f"two videos are called {max(folded, key=folded.count)}: expected different names, or two calls")
    window = (seconds_of(clip[0], "--clip"), seconds_of(clip[1], "--clip")) if clip else None
    step = seconds_of(every, "--every") if every else (1.0 if stride is None else None)
    counts: dict[str, int] = {}
    for stem in stems:
        _claim(path_inside(out, f"{stem}.mp4" if window else stem), videos, overwrite=overwrite)
    for video, stem in zip(videos, stems, strict=True):
        if not video.is_file():
            raise BadInput(f"{video}: found no such file, expected a video")
        if window:
            film = path_inside(out, f"{stem}.mp4")
            counts[str(clip_video(video, film, window, overlay=overlay_time))] = 1
            continue
        with progress_bar("frames") as bar:
            bar.phase(video.name)
            folder = path_inside(out, stem)
            written = cut_frames(
                video,
                folder,
                every=step,
                stride=stride or 1,
                overlay=overlay_time,
                progress=bar.reach,
            )
        counts[str(folder)] = len(written)
    if json:
        print_json(counts)
        return
    for path, count in counts.items():
        rich_console().print(path if window else f"{path}: {counted(count, 'frame')}")


def _claim(place: Path, videos: list[Path], *, overwrite: bool) -> None:
    """Refuse to replace existing files without --overwrite."""
    if not place.is_dir():
        claim_file(place, *videos, overwrite=overwrite)
    elif any(place.iterdir()) and not overwrite:
        raise BadInput(f"{place}: holds files already. Name another folder, or replace its frames with --overwrite")


def seconds_of(text: str, option: str) -> float:
    """Seconds from `1.5`, `1.5s`, `2m` or `hh:mm:ss`."""
    if match := re.fullmatch(r"(\d{1,6}(?:\.\d{1,6})?)(s|m)?", text.strip()):
        return float(match[1]) * (60 if match[2] == "m" else 1)
    if match := re.fullmatch(r"(\d{1,3}):([0-5]\d):([0-5]\d(?:\.\d{1,6})?)", text.strip()):
        return int(match[1]) * 3600 + int(match[2]) * 60 + float(match[3])
    raise BadInput(f"{option}: found {text!r}, expected seconds (1.5 or 1.5s), minutes (2m) or hh:mm:ss")
