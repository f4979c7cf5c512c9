"""`surgeval report`: a page about a dataset, a run, a training, several runs, or a folder of runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from surgeval.cli.single_file import writes_pages
from surgeval.console import claim_folder, open_named, print_json, progress_bar, rich_console
from surgeval.console.options import FormatOption, JsonOption, LabelsOption, SourcesOption, TablesOption
from surgeval.console.panels import READING, grouped
from surgeval.errors import BadInput, visible
from surgeval.files import name_beside

if TYPE_CHECKING:
    from surgeval.datasets import CheckReport, Dataset, Sources


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(writes_pages(report))


@grouped(
    {
        READING: "sources format labels",
    }
)
def report(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH…", help="A dataset, run folders, a training, or a folder of runs.", show_default=False
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="Folder for the page, its tables and figures. Default: the run's own folder.")
    ] = None,
    sources: SourcesOption = None,
    format: FormatOption = None,
    labels: LabelsOption = None,
    tables: TablesOption = None,
    json: JsonOption = False,
) -> int:
    """Write one offline page: about a dataset, about a run from what it stored, or an index of several runs.

    A dataset with errors gets its page too, with the errors on it, and exit code 2. A folder with runs in it, or one
    folder further down, is a folder of runs; `--format` reads it as a dataset all the same. Of its runs those that
    cannot be read are named, with exit code 1.

    Example: [bold]surgeval report my_dataset --out my_report[/bold]

    Example: [bold]surgeval report runs/clip[/bold]

    Example: [bold]surgeval report runs/clip runs/surgvlp --out both[/bold]

    Example: [bold]surgeval report runs[/bold]

    A training folder has its page too, also while the training runs.

    Example: [bold]surgeval report runs/tdnet-training[/bold]

    Tables lie beside the page as CSV; `--tables latex` and `--tables markdown` write them for a paper or a README too.

    Example: [bold]surgeval report runs/clip --tables latex[/bold]
    """
    from surgeval.pages import table_formats

    with table_formats(*tables or ()):
        return _write(paths, out, sources, format, labels, json)


def _write(
    paths: list[Path], out: Path | None, sources: Sources | None, format: str | None, labels: str | None, json: bool
) -> int:
    """The page that fits the paths: of a dataset, of runs, of a training or of a folder of runs."""
    from surgeval.datasets import is_dataset
    from surgeval.protocols.registry import folder_kind_of, is_run
    from surgeval.report import write_index

    for path in paths:
        if not path.exists():
            expected = f"a dataset, a run or a folder of runs{name_beside(path)}"
            raise BadInput(f"{path}: found no such file or folder, expected {expected}")
    kinds = {path: kind for path in paths if (kind := folder_kind_of(path)) is not None}
    if len(paths) == 1 and kinds and not sources:
        says = f"reading the {kinds[paths[0]].noun} and writing its page"
        _tell(_of_folder(paths[0], out, "report.html", says, kinds[paths[0]].write_page), json)
        return 0
    runs = [path for path in paths if is_run(path)]
    if runs and len(runs) < len(paths):
        other = next(path for path in paths if path not in runs)
        raise BadInput(f"{other}: found no run.json, expected run folders only, or one dataset")
    for path, kind in kinds.items():
        raise BadInput(f"{path}: found a {kind.noun}, expected it alone, or runs only: a {kind.noun} has its own page")
    if not runs and len(paths) > 1:
        raise BadInput(f"{paths[1]}: found a second dataset, expected one dataset or several run folders")
    if sources and (runs or kinds):
        raise BadInput("--sources: used only with a dataset; the sources of a run are those that it was scored with.")
    unread: list[str] = []
    if runs:
        page = _of_runs(runs, out, unread)
    elif format is None and paths[0].is_dir() and _holds_runs(paths[0]):  # first: a film may lie beside the runs
        write = partial(write_index, on_problem=unread.append)
        page = _of_folder(paths[0], out, "index.html", "reading the runs and writing their pages", write)
    else:
        if format is None and not is_dataset(paths[0]):
            raise BadInput(f"{paths[0]}: {_instead(paths[0])}, expected a dataset, a run or a folder of runs")
        return _of_dataset(paths[0], _needed(out), sources, format, labels, json)
    _tell(page, json, **({"unread": unread} if unread else {}))
    for problem in unread:
        typer.echo(f"surgeval: {visible(problem)}", err=True)
    return 1 if unread else 0


def _holds_runs(folder: Path) -> bool:
    from surgeval.protocols.registry import folder_kind_of, runs_in

    return bool(runs_in(folder)) or any(folder_kind_of(path) is not None for path in folder.iterdir())


def _instead(path: Path) -> str:
    """What there is where nothing can be reported on; the page of a ranking is made by `surgeval rank` alone."""
    if (path / "ranking.json").is_file() and (path / "report.html").is_file():
        return f"found a ranking, whose page is {path / 'report.html'}"
    return "found nothing to report on"


def _of_dataset(
    path: Path, out: Path, sources: Sources | None, format: str | None, labels: str | None, json: bool
) -> int:
    """The page about a dataset, and 2 when the data has errors: what it counts is then not all there is."""
    page, errors = write_report(path, out, format, labels, sources)
    _tell(page, json, **({"errors": errors} if errors else {}))
    if errors:
        problems = f"{errors} error{'s' if errors > 1 else ''} in the data"
        typer.echo(f"surgeval: {visible(str(path))}: found {problems}, listed on the page", err=True)
    return 2 if errors else 0


def _tell(page: Path, json: bool, **more: int | list[str]) -> None:
    if json:
        print_json({"report": str(page), **more})
    else:
        rich_console().print(f"open {visible(str(page))}")


def _needed(out: Path | None) -> Path:
    if out is None:
        raise BadInput("--out: found none, expected a folder for the report on a dataset")
    return out


def _of_runs(folders: list[Path], out: Path | None, unread: list[str]) -> Path:
    """The page about these runs; those of an index that could not be read are put into `unread`."""
    from surgeval.report import write_run_pages

    if len(folders) > 1 and out is None:
        raise BadInput("--out: found none, expected a folder for the page about several runs")
    if out is not None and any(out.resolve() == folder.resolve() for folder in folders):
        raise BadInput(f"--out {out}: found one of the run folders, expected another folder")
    if out is not None:
        claim_folder(out, "report.html")
    with progress_bar("pages") as bar:
        bar.phase(f"reading the {'runs and writing their' if len(folders) > 1 else 'run and writing its'} page")
        return write_run_pages(folders, out, on_problem=unread.append)


def _of_folder(
    folder: Path, out: Path | None, mark: str, says: str, write: Callable[[Path, Path | None], Path]
) -> Path:
    """The page that `write` makes of a folder, beside what is in it or in a folder of its own."""
    if out is not None and out.resolve() != folder.resolve():
        claim_folder(out, mark)
    with progress_bar("pages") as bar:
        bar.phase(says)
        return write(folder, out)


def write_report(
    path: Path, out: Path, format: str | None, labels: str | None, sources: Sources | None = None
) -> tuple[Path, int]:
    """Check the dataset, draw a contact sheet and write the page: errors are reported there, and counted here."""
    claim_folder(out, "report.html")
    dataset = open_named(path, format, labels)
    checked = check_dataset(dataset)
    return write_checked(dataset, out, checked, sources), checked.errors


def check_dataset(dataset: Dataset) -> CheckReport:
    """Every problem of a dataset, with a progress line."""
    from surgeval import datasets

    with progress_bar("frames") as bar:
        bar.phase("reading")
        return datasets.check(dataset, images=False, progress=lambda _video, done: bar.reach(done))


def write_checked(dataset: Dataset, out: Path, checked: CheckReport, sources: Sources | None = None) -> Path:
    """The page about an opened dataset and what its check said."""
    from surgeval import datasets
    from surgeval.report import write_dataset_page

    with progress_bar("frames") as bar:
        bar.phase("drawing and writing the page")
        sheet = datasets.contact_sheet(dataset, on_problem=_ignore) if checked.images else None
        return write_dataset_page(dataset, out, sources=sources, check=checked, sheet=sheet, on_problem=_ignore)


def _ignore(problem: object) -> None:
    """Problems have been collected by the check already and stand on the page."""
