"""`surgeval demo`: the shortest path through the whole product, offline."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from surgeval.cli.data.phantom import rendering
from surgeval.cli.demo_chapters import telling
from surgeval.cli.markup import literal
from surgeval.cli.report import write_checked
from surgeval.cli.single_file import writes_pages
from surgeval.console import claim_folder, print_frame, print_json, progress_bar, rich_console
from surgeval.console.options import JsonOption
from surgeval.errors import visible
from surgeval.processes import WorkerProcess
from surgeval.protocols.registry import descriptors

if TYPE_CHECKING:
    from surgeval.datasets import Problem
    from surgeval.protocols.contract import Chapter

EDITION = "phantom-v1"
_LEAD = (
    "Small models and simulated answerers on simulated operations whose every label is known: what each protocol says "
    "of them can be checked against how they were made. Each name opens its page."
)
_OTHER = "note: not the pinned edition; numpy, scipy or opencv differ from constraints.txt, so quote no numbers from it"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(writes_pages(demo))


def demo(
    out: Annotated[Path, typer.Option(help="Folder for everything the demo makes.")] = Path("demo"),
    json: JsonOption = False,
) -> int:
    """Make the surgical phantom, check it, and take it through every protocol that has a chapter; ends with one page.

    What another package's protocol fails at is named, with exit code 1.

    Example: [bold]surgeval demo --out demo[/bold]
    """
    from surgeval import datasets, phantom
    from surgeval.report import write_index

    claim_folder(out, "index.html")
    say = _silent if json else rich_console().print
    say(f"1. {EDITION}: 18 simulated operations in 3 looks, every label known")
    with rendering(phantom.edition(EDITION).videos) as show:
        data = phantom.write_edition(EDITION, out / EDITION, progress=show)
    dataset = datasets.open_dataset(data)
    film = None if json else WorkerProcess(_film, out / "operation.mp4", name="surgeval-film")
    plain: dict[str, Any] = {}
    failures: list[str] = []

    def fail(failure: str) -> None:
        failures.append(failure)
        typer.echo(f"surgeval: note: {visible(failure)}", err=True)

    # The chapters begin at once: hashing and checking keep one core busy, and an error there ends them.
    chaptered = [protocol for protocol in descriptors().values() if protocol.chapter]
    with film or nullcontext(), telling(chaptered, data, EDITION, out) as chapters:
        same = phantom.edition_hash(data) == phantom.PHANTOM_V1_SHA256
        say("   the very pixels and labels of the pinned edition" if same else f"   {_OTHER}")
        with progress_bar("frames") as bar:
            bar.phase("checking")
            checked = datasets.check(dataset, progress=lambda _video, done: bar.reach(done))
        say(f"2. {checked.summary()}")
        _refuse(checked.problems)
        page = write_checked(dataset, out / "report", checked)
        say("3. what is in it, as a page and as tables")
        pages, number = {"The dataset": page}, 3
        for told in chapters:
            chapter, ranked = told.chapter, told.ranked
            if isinstance(chapter, str):
                if told.failed:
                    fail(chapter)
                else:
                    say(f"left out: {chapter}")
                plain[told.name] = {"left_out": chapter}
                continue
            number += 1
            say(f"{number}. {chapter.title}")
            if not json:
                print_frame("", chapter.table)
                for sentence in chapter.sentences:
                    say(f"   {sentence}")
            plain[told.name] = chapter.to_json()
            pages |= {_link_text(chapter): chapter.page, **chapter.pages}
            if ranked is not None:
                if not json:
                    print_frame("", ranked.table)
                pages |= {f"The ranking: {chapter.title}": ranked.page, "What each team is told": ranked.feedback}
                plain[told.name]["ranking"] = ranked.plain
        film_made = film is not None and film.wait() == 0
    index = write_index(out, title="The demo", links=pages, lead=_LEAD, on_problem=fail)
    code = 1 if failures else 0
    if film is None:
        counts = {name: getattr(checked, name) for name in ("videos", "frames", "instances", "questions")}
        print_json({"data": str(data), "report": str(page), "index": str(index), **counts, **plain})
        return code
    say(f"\nOpen {index}\n" if film_made else f"\nOpen {index} (the film could not be made)\n")
    say(f"  {out / 'operation.mp4'}   eight seconds of an operation with its truth drawn")
    say(f"  {data / 'frames'}   the frames")
    untold = [protocol for protocol in descriptors().values() if not protocol.chapter and protocol.run]
    if untold:
        say("\nNot in the demo:")
    for protocol in untold:
        say(literal(f"  surgeval run {protocol.name} --data {data} --out runs/{protocol.name}   {protocol.question}"))
    say("\nThen your own data:\n  surgeval data check FOLDER\n  surgeval report FOLDER --out report")
    return code


def _link_text(chapter: Chapter) -> str:
    """What the chapter is about; and of which run the page is, where it is of one among several."""
    title = chapter.title[:1].upper() + chapter.title[1:]
    if len(chapter.runs) > 1 and chapter.page.parent in chapter.runs:
        return f"{title}: the page of {chapter.page.parent.name}, the others are below"
    return title


def _refuse(problems: Sequence[Problem]) -> None:
    """Raise the first error; oddities are no reason to stop."""
    from surgeval.datasets import raise_errors

    for problem in problems:
        raise_errors(problem)


def _film(_connection: Connection, path: Path) -> None:
    """Clipping and cutting, seen by source C; made once."""
    from surgeval import phantom

    edition = phantom.edition(EDITION)
    plan = next(plan for plan in phantom.plan_videos(edition.seed, edition.videos) if plan.name == "C3")
    if not path.exists():
        phantom.truth_film(plan, path, seconds=edition.seconds, start=18, length=8)


def _silent(text: str) -> None:
    """With --json, standard output holds one object and nothing else."""
