"""`surgeval data`: look at, check, convert and make datasets."""

from __future__ import annotations

import re
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from surgeval.cli.group import command_group
from surgeval.cli.protocols import print_result
from surgeval.console import claim_folder, open_named, print_json, print_table, progress_bar, rich_console
from surgeval.console.options import BoxesOption, FormatOption, JsonOption, LabelsOption, MappingOption
from surgeval.console.panels import READING, RUNNING, grouped
from surgeval.errors import BadInput, visible
from surgeval.protocols.registry import PROTOCOLS
from surgeval.results import counted

if TYPE_CHECKING:
    from surgeval.datasets import CheckReport, Dataset, Problem
    from surgeval.protocols.quality import QualityRun

app = command_group("Look at, check, convert and make datasets.", "surgeval data check my_dataset")


SHOWN = 5  # films named in a line


@app.command("list")
def list_formats(json: JsonOption = False) -> None:
    """List the formats that can be read, the packaged label spaces and the official splits.

    Example: [bold]surgeval data list[/bold]
    """
    from surgeval import vocab
    from surgeval.datasets import dataset_formats, writers

    spaces = {name: vocab.load_labels(name) for name in vocab.label_space_names()}
    if json:
        print_json(
            {
                "formats": {name: form.title for name, form in dataset_formats().items()},
                "writers": list(writers()),
                "label_spaces": {name: space.to_json() for name, space in spaces.items()},
                "splits": {name: list(vocab.folds(name)) for name in vocab.fold_names()},
            }
        )
        return
    print_table("formats", ["name", "what"], [(name, form.title) for name, form in dataset_formats().items()])
    rich_console().print(f"\nwritten by data convert --to: {', '.join(writers())}\n")
    rows = [
        (name, len(space.instruments), len(space.verbs), len(space.targets), len(space.triplets), len(space.phases))
        for name, space in spaces.items()
    ]
    print_table("label spaces", ["name", "instruments", "verbs", "targets", "triplets", "phases"], rows)
    rich_console().print()
    print_table("splits", ["name", "folds"], [(name, ", ".join(vocab.folds(name))) for name in vocab.fold_names()])


@app.command()
@grouped(
    {
        READING: "format labels mapping boxes",
        RUNNING: "processes retry limit",
    }
)
def check(
    path: Annotated[Path, typer.Argument(help="A dataset folder or file.", show_default=False)],
    format: FormatOption = None,
    labels: LabelsOption = None,
    mapping: MappingOption = None,
    boxes: BoxesOption = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND", help="A kind of problem that is known and accepted (repeatable)."),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit code 2 for warnings too.")] = False,
    images: Annotated[bool, typer.Option(help="Decode every image; without it only their headers are read.")] = True,
    quality: Annotated[
        bool, typer.Option("--quality", help="Also measure every frame and propose the ones to drop.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for tables; with --quality the run folder, which can be resumed."),
    ] = None,
    processes: Annotated[int, typer.Option(min=1, help="Processes for --quality.")] = 1,
    retry: Annotated[bool, typer.Option("--retry", help="With --quality: do again only what failed.")] = False,
    limit: Annotated[int, typer.Option(min=0, help="Examples to print of equal problems.")] = 3,
    json: JsonOption = False,
) -> int:
    """Name every problem in a dataset, with file and record.

    Exit code 2 when there are errors: records that cannot be used. Warnings are odd but usable and end with 0, unless
    --strict.

    Example: [bold]surgeval data check cholect50/ --allow frame-unlabelled[/bold]

    Example: [bold]surgeval data check frames/ --quality --out runs/quality[/bold]

    Example: [bold]surgeval data check cholect45/ --boxes cholec80-bbox/[/bold]
    """
    from surgeval import datasets

    if quality and (mapping or boxes):
        raise BadInput(
            "--quality: found --mapping or --boxes as well, expected one or the other: it looks at pixels only"
        )
    dataset = open_named(path, format, labels, mapping, boxes)
    if format is None and path.is_dir() and dataset.format == "video":
        typer.echo(f"note: {visible(str(path))}: found no labels, read as video: {visible(_films(path))}", err=True)
    if out is not None:
        claim_folder(out, "run.json" if quality else "tables/problems.csv")
    accepted = frozenset(allow or ())
    _check_kinds(accepted, dataset)
    listing = _Listing(accepted, limit)
    with progress_bar("frames") as bar:
        bar.phase("checking")
        report = datasets.check(
            dataset, images=images, on_problem=listing, progress=lambda _video, done: bar.reach(done)
        )
    drops = _measure(path, format, labels, out, processes, retry, quiet=json) if quality else None
    if out is not None:
        _save(out, listing, drops)
    for kind in sorted(accepted - report.counts.keys()):
        typer.echo(f"note: --allow {kind}: no problem of this kind was found", err=True)
    if json:
        print_json(_check_json(path, report, listing, drops))
    else:
        listing.show()
        _print_check(report, accepted)
        if drops is not None:
            print_result(drops, drops.scores, PROTOCOLS["quality"].tables("run"))
    if listing.errors or (strict and listing.found):
        return 2
    return drops.summary.exit_code if drops else 0


def _films(folder: Path) -> str:
    """The films that are read: one may lie in a folder of something else."""
    from surgeval.datasets.io import video_files

    files = video_files(folder)
    more = len(files) - SHOWN
    return ", ".join(file.name for file in files[:SHOWN]) + (f" and {more} more" if more > 0 else "")


def _check_kinds(accepted: frozenset[str], dataset: Dataset) -> None:
    """Refuse a misspelt kind before an hour of reading; readers of other packages have kinds of their own."""
    from difflib import get_close_matches

    from surgeval.datasets import PROBLEM_KINDS

    unknown = sorted(accepted.difference(PROBLEM_KINDS))
    if unknown and type(dataset).__module__.startswith("surgeval."):
        near = get_close_matches(unknown[0], PROBLEM_KINDS, 3)
        known = f"{', '.join(near)} (near it)" if near else f"one of {', '.join(PROBLEM_KINDS)}"
        raise BadInput(f"--allow: found {unknown[0]!r}, which is no kind of problem, expected {known}")


class _Listing:
    """Keeps the problems that were not accepted beforehand, and prints equal ones together."""

    def __init__(self, accepted: frozenset[str], limit: int) -> None:
        self.found: list[Problem] = []
        self._accepted, self._limit = accepted, limit

    @property
    def errors(self) -> bool:
        """Whether any of them makes a record unusable."""
        return any(problem.level == "error" for problem in self.found)

    def __call__(self, problem: Problem) -> None:
        if problem.kind not in self._accepted:
            self.found.append(problem)

    def show(self) -> None:
        """One line for each kind of problem in the same field, the most frequent first, with the first examples."""
        groups: dict[tuple[str, ...], list[Problem]] = {}
        for problem in self.found:
            field = re.sub(r"[0-9]+", "#", problem.field or "")  # segments[2] and segments[7] are one field
            groups.setdefault((problem.level, problem.kind, field), []).append(problem)
        hidden = 0
        for (level, kind, _), equal in sorted(groups.items(), key=lambda item: (item[0][0], -len(item[1]))):
            if len(equal) == 1 and self._limit:
                rich_console().print(f"{level}: {equal[0]} ({kind})")
                continue
            files = len({problem.path for problem in equal})
            rich_console().print(
                f"{level}: {kind}: {len(equal):,} times in {counted(files, 'file')}"
                + (", first:" if self._limit else "")
            )
            for problem in equal[: self._limit]:
                rich_console().print(f"  {problem}")
            hidden += len(equal) - self._limit
        if hidden > 0:
            rich_console().print(f"{hidden:,} more like these: --limit N prints N of each, --out DIR saves all")


def _measure(
    path: Path, format: str | None, labels: str | None, out: Path | None, processes: int, retry: bool, *, quiet: bool
) -> QualityRun:
    from surgeval.protocols.quality import run_quality

    with tempfile.TemporaryDirectory() as scratch:
        return run_quality(
            path,
            out=out or Path(scratch) / "quality",
            format=format,
            labels=labels,
            processes=processes,
            retry=retry,
            progress=not quiet,
        )


def _save(out: Path, listing: _Listing, drops: QualityRun | None) -> None:
    import polars as pl

    from surgeval.pages import save_tables

    columns = ("level", "kind", "path", "record", "field", "sentence")
    rows = [[getattr(problem, column) for column in columns] for problem in listing.found]
    tables = {"problems": pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String), orient="row")}
    if drops is not None:
        tables["drop"] = drops.to_frame()
    save_tables(tables, out / "tables")


def _check_json(path: Path, report: CheckReport, listing: _Listing, drops: QualityRun | None) -> dict[str, object]:
    counts = ("videos", "frames", "unlabelled", "instances", "boxes", "masks", "images", "questions", "intent")
    value: dict[str, object] = {
        "path": str(path),
        "format": report.format,
        **{name: getattr(report, name) for name in counts},
        "problems": [{"kind": p.kind, "level": p.level, "sentence": str(p)} for p in listing.found],
        "counts": dict(report.counts),
        "errors": report.errors,
        "warnings": report.warnings,
    }
    if drops is None:
        return value
    return {**value, **{name: measured for name, measured in drops.to_json().items() if name in ("drop", "verdict")}}


def _print_check(report: CheckReport, accepted: frozenset[str]) -> None:
    if report.counts:
        rows = [(kind, n, "allowed" if kind in accepted else "") for kind, n in sorted(report.counts.items())]
        print_table("problems", ["kind", "count", ""], rows)
    rich_console().print(report.summary() if report.counts else f"{report.summary()}: no problems")


@app.command()
@grouped(
    {
        READING: "format labels mapping boxes",
    }
)
def convert(
    path: Annotated[Path, typer.Argument(help="A dataset folder or file.", show_default=False)],
    to: Annotated[str, typer.Option(help="The format to write; `surgeval data list` names them.")],
    out: Annotated[Path | None, typer.Option(help="A new or empty folder.")] = None,
    format: FormatOption = None,
    labels: LabelsOption = None,
    mapping: MappingOption = None,
    boxes: BoxesOption = None,
    size: Annotated[int | None, typer.Option(help="Pad every frame to a square and resize it (ProstaTD: 640).")] = None,
    restore: Annotated[
        bool, typer.Option("--restore", help="Undo --size: back to the original frame size and points (labelme).")
    ] = False,
    merge: Annotated[
        Path | None, typer.Option(help="JSON map that consolidates labels (ProstaTD, appendix A.4).")
    ] = None,
    min_count: Annotated[int, typer.Option(min=0, help="Drop triplets with fewer instances.")] = 0,
    images: Annotated[bool, typer.Option(help="Copy the images too.")] = True,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what the format cannot hold; write nothing.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Write a dataset in another format and say what that format cannot hold.

    Example: [bold]surgeval data convert prostatd/ --to coco --out prostatd-coco[/bold]

    Example: [bold]surgeval data convert raw/ --to labelme --size 640 --merge merge.json --out square[/bold]

    Example: [bold]surgeval data convert studio/ --to yolo8 --dry-run[/bold]
    """
    from surgeval import datasets

    if dry_run and (size or restore):
        raise BadInput("--dry-run: found --size or --restore as well, expected neither: they change no label")
    if out is None and not dry_run:
        raise BadInput("--out: found nothing, expected a new or empty folder (or --dry-run, which writes nothing)")
    dataset = open_named(path, format, labels, mapping, boxes)
    rules = datasets.MergeMap.load(merge) if merge else None
    if out is None or dry_run:
        lost = datasets.export_losses(dataset, to, merge=rules, min_count=min_count, images=images)
        if json:
            print_json({"format": to, "losses": list(lost)})
        else:
            for loss in lost or (f"{to}: nothing would be lost",):
                rich_console().print(loss)
        return
    with progress_bar("frames") as bar:
        bar.phase(f"writing {to}")
        report = datasets.convert(
            dataset,
            out,
            to,
            size=size,
            restore=restore,
            merge=rules,
            min_count=min_count,
            images=images,
            progress=lambda _video, _frame: bar.advance(),
        )
    if json:
        print_json({**asdict(report), "out": str(report.out)})
        return
    for loss in report.losses:
        rich_console().print(f"lost: {loss}")
    dropped = f", {report.instances_dropped} dropped" if report.instances_dropped else ""
    rich_console().print(
        f"{report.out}: {report.format}: {counted(report.videos, 'video')}, {counted(report.frames, 'frame')}, "
        f"{counted(report.images, 'image')}, {report.instances_written} of {counted(report.instances_read, 'instance')}"
        f"{dropped}, {counted(report.questions, 'question')}"
    )
