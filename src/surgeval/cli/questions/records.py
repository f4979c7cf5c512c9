"""`surgeval questions records`: raw material (videos with phases, images with gaze and dictation) as source records."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from surgeval.console import claim_folder, open_named, print_json, progress_bar, rich_console
from surgeval.console.options import FormatOption, JsonOption, LabelsOption
from surgeval.console.panels import READING, RUNNING, grouped
from surgeval.errors import BadInput, visible
from surgeval.results import counted

if TYPE_CHECKING:
    from surgeval.records import Gaze


@grouped({READING: "format labels", RUNNING: "shortest longest all_fixations"})
def records(
    data: Annotated[
        Path,
        typer.Argument(help="A dataset with phases, phases as CSV, or cases as JSONL.", show_default=False),
    ],
    out: Annotated[Path, typer.Option(help="Folder for records.jsonl and its pictures.")],
    scenario: Annotated[str, typer.Option(help="Of clips; cases name their own.")] = "open_surgery",
    videos: Annotated[Path | None, typer.Option(help="Folder of the films that a table names.")] = None,
    gaze: Annotated[Path | None, typer.Option(help="Gaze of the videos, if the data hold none.")] = None,
    gaze_mapping: Annotated[
        Path | None, typer.Option(help="What the columns of the gaze file mean (TOML or JSON).")
    ] = None,
    procedure: Annotated[str, typer.Option(help="Where the data do not say.")] = "",
    site: Annotated[str, typer.Option(help="Where the data do not say.")] = "",
    frames: Annotated[int, typer.Option(min=1, max=64, help="Frames of a clip.")] = 6,
    shortest: Annotated[float, typer.Option(min=0, help="Seconds of a clip; shorter ones are left out.")] = 2.0,
    longest: Annotated[float, typer.Option(min=0.1, help="Seconds of a clip; longer ones are cut.")] = 30.0,
    all_fixations: Annotated[
        bool, typer.Option("--all-fixations", help="Keep the fixations between labelled frames too.")
    ] = False,
    format: FormatOption = None,
    labels: LabelsOption = None,
    json: JsonOption = False,
) -> None:
    """Make source records: videos cut along their phases, or images with regions, gaze and dictation aligned.

    Short clips, and fixations between labelled frames, are in no record; the output says how many.

    Example: [bold]surgeval questions records phantom --scenario laparoscopy --site "gallbladder" --out scenes[/bold]

    Example: [bold]surgeval questions records cases.jsonl --out scenes[/bold]
    """
    from surgeval.questions import ClipOptions, dataset_clips, image_records, table_clips

    claim_folder(out, "records.jsonl")
    if (out / "records.jsonl").exists() and data.exists() and data.samefile(out / "records.jsonl"):
        raise BadInput(f"--out {out}: its records.jsonl is the input, which is never replaced. Name another folder")
    options = ClipOptions(scenario, frames, shortest, longest, procedure, site, all_fixations)
    notes: list[str] = []
    looked = _gaze(gaze, gaze_mapping, notes)
    with progress_bar("images" if data.suffix == ".jsonl" else "clips", show=not json) as bar:
        bar.phase("reading")
        if data.suffix == ".jsonl":
            scenes = image_records(data, out, announce=notes.append)
        elif data.suffix == ".csv":
            if videos is None:
                raise BadInput(f"{data}: found a table of phases, expected --videos with the films beside it")
            scenes = table_clips(data, videos, out, options, looked, announce=notes.append)
        else:
            scenes = dataset_clips(open_named(data, format, labels), out, options, looked, announce=notes.append)
    bare, notes = sum(not record.gaze for record in scenes), [_name_flag(note) for note in notes]
    if json:
        print_json({"out": str(out), "records": len(scenes), "without_gaze": bare, "notes": notes})
        return
    rich_console().print(f"{counted(len(scenes), 'record')} in {out / 'records.jsonl'}, {bare} of them without gaze")
    for note in notes:
        rich_console().print(f"note: {visible(note)}")


def _name_flag(note: str) -> str:
    """The note with the option as it is typed.

    >>> _name_flag("7 of 14 fixations are left out (option all_fixations)")
    '7 of 14 fixations are left out (--all-fixations)'
    """
    return re.sub(r"\(option (\w+)\)$", lambda option: f"(--{option[1].replace('_', '-')})", note)


def _gaze(path: Path | None, mapping: Path | None, notes: list[str]) -> dict[str, Sequence[Gaze]] | None:
    """The fixations of each video in a gaze file; a note says how many lie outside the frame."""
    if path is None:
        return None
    from surgeval.datasets.gaze import find_fixations, read_gaze
    from surgeval.questions import off_frame_sentence

    tracks = {name: find_fixations(track) for name, track in read_gaze(path, mapping=mapping).items()}
    outside = sum(track.off_frame for track in tracks.values())
    if outside:
        notes.append(off_frame_sentence(path, outside))
    return {name: track.on_frame() for name, track in tracks.items()}
