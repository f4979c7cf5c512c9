"""The index page over runs: headline numbers of each, chance beside them, and links to their pages."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from surgeval.errors import BadInput, SurgevalError
from surgeval.pages import Link, Section, Table, write_page
from surgeval.protocols.contract import RunResult
from surgeval.protocols.descriptor import Descriptor
from surgeval.protocols.registry import descriptor, descriptor_of, load_run, runs_in

__all__ = ["write_index", "write_run_pages"]


def write_run_pages(folders: Sequence[Path], out: Path | None = None) -> Path:
    """The page of a run (into its own folder, or `out`), of several runs side by side, or an index of unlike runs.

    >>> write_run_pages([Path("nowhere")])
    Traceback (most recent call last):
    surgeval.errors.DataError: nowhere/run.json: found no such file, expected the record of a run
    """
    kinds = [descriptor_of(folder) for folder in folders]
    if len(folders) == 1 or (len({one.name for one in kinds}) == 1 and kinds[0].several):
        results = [load_run(folder) for folder in folders]
        page: Path = kinds[0].part("page")(results, out or folders[0])
        return page
    if out is None:
        raise BadInput("several runs: found no folder for their page, expected one")
    return _index([(folder, one) for folder, one in zip(folders, kinds, strict=True)], out, "report.html", "Runs")


def write_index(
    folder: Path, out: Path | None = None, *, title: str | None = None, links: Mapping[str, Path] | None = None,
    lead: str = "",
) -> Path:  # fmt: skip
    """`index.html` over all runs in a folder; a run without a page of its own gets one. `links` are further pages.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_index(Path(folder))
    Traceback (most recent call last):
    surgeval.errors.BadInput: ...: found no run in it, expected folders with a run.json
    """
    runs = runs_in(folder)
    if not runs:
        raise BadInput(f"{folder}: found no run in it, expected folders with a run.json")
    kinds = [(run, descriptor_of(run)) for run in runs]
    name = title or folder.resolve().name or "Runs"
    return _index(kinds, out or folder, "index.html", name, links or {}, lead)


def _index(
    runs: Sequence[tuple[Path, Descriptor]], out: Path, file: str, title: str,
    links: Mapping[str, Path] | None = None, lead: str = "",
) -> Path:  # fmt: skip
    sections = []
    if links:
        listed = tuple(Link(text, _relative(page, out)) for text, page in links.items())
        sections.append(Section("Start here", links=listed))
    kinds = dict.fromkeys(one.name for _, one in runs)
    sections += [_section(descriptor(kind), [run for run, one in runs if one.name == kind], out) for kind in kinds]
    many = f"{len(runs)} run{'s' if len(runs) > 1 else ''}"
    said = lead or f"{many} with their headline numbers; each name opens its page."
    return write_page(out / file, title, sections, kind="runs", lead=said)


def _section(kind: Descriptor, folders: Sequence[Path], out: Path) -> Section:
    loaded: dict[Path, RunResult] = {}
    problems: list[str] = []
    links = []
    for folder in folders:
        try:
            loaded[folder] = load_run(folder)
            page = folder / "report.html"
            if not page.is_file():
                kind.part("page")([loaded[folder]], folder)
            links.append(Link(loaded[folder].name, _relative(page, out)))
        except SurgevalError as error:  # a run that is not finished must not hide the others
            problems.append(str(error))
    tables = (Table("Headline numbers", _headlines(loaded.values())),) if loaded else ()
    return Section(
        kind.name, "\n\n".join([kind.question, *problems]), tables=tables, links=tuple(links),
    )  # fmt: skip


def _headlines(results: object) -> pl.DataFrame:
    """A row per number, a column per run; what chance reaches stands beside it where all runs agree on it."""
    runs = list(results)  # type: ignore[call-overload]
    labels: dict[str, str] = {}
    cells: dict[str, dict[str, str]] = {}
    names = [f"{one.name}" for one in runs]
    for number, run in enumerate(runs):
        for one in run.headlines():
            labels.setdefault(one.key, one.label)
            chance = "" if one.chance is None else f" (chance {one.chance:.3f})"
            cells.setdefault(one.key, {})[str(number)] = f"{one.interval.cell()}{chance}"
    rows = [[label, *(cells[key].get(str(n), "–") for n in range(len(runs)))] for key, label in labels.items()]
    heads = ["number", *(name if names.count(name) == 1 else f"{name} ({n + 1})" for n, name in enumerate(names))]
    return pl.DataFrame(rows, schema=dict.fromkeys(heads, pl.String), orient="row")


def _relative(page: Path, out: Path) -> str:
    """A link from the index to a page: below it wherever the runs are, and never an address of another kind."""
    return Path(os.path.relpath(page.resolve(), out.resolve())).as_posix()
