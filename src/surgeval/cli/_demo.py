"""`surgeval demo`: the shortest path through the whole product, offline."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from surgeval.cli._console import console, print_frame, print_json, progress
from surgeval.cli._data import JsonOption, rendering
from surgeval.cli._demo_focus import FocusChapter, focus_chapter
from surgeval.cli._demo_surgxbench import SurgXChapter, surgxbench_chapter
from surgeval.cli._demo_triplets import TripletsChapter, triplets_chapter
from surgeval.cli._report import write_report
from surgeval.errors import DataError

EDITION = "phantom-v1"
_OTHER = "note: not the pinned edition; numpy, scipy or opencv differ from constraints.txt, so quote no numbers from it"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(demo)


def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for everything the demo makes.")] = Path("demo"),
    json: JsonOption = False,
) -> None:
    """Make the surgical phantom, check it, score detectors, rank answerers, ask where models look.

    Example: [bold]surgeval demo --out demo[/bold]
    """
    from surgeval import datasets, phantom

    say = _silent if json else console().print
    say(f"1. {EDITION}: 18 simulated operations in 3 looks, every label known")
    with rendering(phantom.edition(EDITION).videos) as show:
        data = phantom.write_edition(EDITION, out / EDITION, progress=show)
    same = phantom.edition_hash(data) == phantom.PHANTOM_V1_SHA256
    say("   the very pixels and labels of the pinned edition" if same else f"   {_OTHER}")
    dataset = datasets.open_dataset(data)
    with progress("frames") as bar:
        task = bar.add_task("checking", total=None)
        found = datasets.check(dataset, progress=lambda _video, done: bar.update(task, completed=done))
    say(f"2. {found.summary()}")
    if found.problems:
        first = found.problems[0]
        raise DataError(first.file, record=first.record, field=first.field, found=first.found, expected=first.expected)
    page = write_report(data, out / "report", None, None)
    say("3. what is in it, as a page and as tables")
    triplets = triplets_chapter(dataset, out / "triplets")
    say("4. three simulated detectors, scored and compared")
    if not json:
        _show(triplets)
    focus = focus_chapter(dataset, out / "focus")
    say("5. five answerers of its questions, scored and ranked")
    if not json:
        _show(focus)
    looks = surgxbench_chapter(EDITION, out / "surgxbench")
    say("6. three small models: right, and right for the right reason?")
    if json:
        chapters = {"triplets": triplets.to_json(), "focus": focus.to_json(), "surgxbench": looks.to_json()}
        print_json({"data": str(data), "report": str(page), **_counts(found), **chapters})
        return
    _show(looks)
    film = _film(out / "operation.mp4")
    say("\nLook here:")
    say(f"  {page}   the dataset")
    say(f"  {triplets.page}   the better detector")
    say(f"  {focus.page}   the ranking of the answerers")
    say(f"  {focus.pages['keen']}   the better simulated model")
    say(f"  {looks.page}   where three models look, with a gallery")
    say(f"  {film}   twelve seconds of an operation with its truth drawn")
    say(f"  {data / 'frames'}   the frames")
    say("\nThen your own data:\n  surgeval data check FOLDER\n  surgeval report FOLDER --out report")


def _show(chapter: TripletsChapter | FocusChapter | SurgXChapter) -> None:
    print_frame("", chapter.table)
    for sentence in chapter.sentences:
        console().print(f"   {sentence}")


def _film(path: Path) -> Path:
    """Clipping and cutting, seen by source C; made once."""
    from surgeval import phantom

    edition = phantom.edition(EDITION)
    plan = next(plan for plan in phantom.plan_videos(edition.seed, edition.videos) if plan.name == "C3")
    return path if path.exists() else phantom.truth_film(plan, path, seconds=edition.seconds, start=18)


def _silent(text: str) -> None:
    """With --json, standard output holds one object and nothing else."""


def _counts(found: object) -> dict[str, int]:
    return {name: getattr(found, name) for name in ("videos", "frames", "instances", "questions")}
