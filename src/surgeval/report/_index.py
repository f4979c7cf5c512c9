"""The index page over runs: headline numbers of each, chance beside them, and links to their pages."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import polars as pl

from surgeval.errors import BadInput, SurgevalError
from surgeval.files import leads_out
from surgeval.pages import Link, Section, Table, distinct, write_page
from surgeval.protocols.contract import Headline, RunResult
from surgeval.protocols.descriptor import Descriptor
from surgeval.protocols.evidence_page import evidence_of, side_by_side
from surgeval.protocols.registry import descriptor_of, descriptors, folder_kinds, load_run, runs_in
from surgeval.stats import number_text

__all__ = ["write_index", "write_run_pages"]

_OPEN = 12  # runs whose verdicts stand open
_FIRST = 4  # numbers beside each run; the folded table has them all


def write_run_pages(folders: Sequence[str | Path], out: str | Path | None = None) -> Path:
    """The page of a run (into its own folder, or `out`), of several runs side by side, or an index of unlike runs.

    >>> import tempfile
    >>> from surgeval import score_recognition
    >>> labels = [[1, 0], [0, 1]] * 2
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = score_recognition(labels, labels, ["v1", "v1", "v2", "v2"], resamples=20).save(f"{folder}/net")
    ...     write_run_pages([f"{folder}/net"]).relative_to(folder).as_posix()
    'net/report.html'
    >>> write_run_pages([Path("nowhere")])
    Traceback (most recent call last):
    surgeval.errors.DataError: nowhere/run.json: found no such file, expected the record of a run
    """
    paths = [Path(folder) for folder in folders]
    kinds = [descriptor_of(folder) for folder in paths]
    if len(paths) == 1 or (len({kind.name for kind in kinds}) == 1 and kinds[0].several):
        results = [load_run(folder) for folder in paths]
        page: Path = kinds[0].part("page")(results, Path(out or paths[0]))
        return page
    if out is None:
        raise BadInput("several runs: found no folder for their page, expected one")
    runs = [(folder, kind) for folder, kind in zip(paths, kinds, strict=True)]
    alike = len({kind.name for kind in kinds}) == 1
    return _index(runs, Path(out), "report.html", "Runs", beside=evidence_sections(paths) if alike else ())


def evidence_sections(folders: Sequence[Path]) -> tuple[Section, ...]:
    """The cases of several runs of one protocol side by side; nothing unless two of them kept any."""
    shown = evidence_of([load_run(folder) for folder in folders])
    return (side_by_side(shown),) if len(shown) > 1 else ()


def write_index(
    folder: str | Path, out: str | Path | None = None, *, title: str | None = None,
    links: Mapping[str, str | Path] | None = None, lead: str = "",
) -> Path:  # fmt: skip
    """`index.html` over all runs in a folder; a run without a page of its own gets one.

    `links` are further pages. What protocols left beside runs, such as a training, has a section of its own.

    >>> import tempfile
    >>> from surgeval import score_recognition
    >>> labels = [[1, 0], [0, 1]] * 2
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = score_recognition(labels, labels, ["v1", "v1", "v2", "v2"], resamples=20).save(f"{folder}/net")
    ...     _ = write_index(folder)
    ...     sorted(path.relative_to(folder).as_posix() for path in Path(folder).rglob("*.html"))
    ['index.html', 'net/report.html']
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_index(Path(folder))
    Traceback (most recent call last):
    surgeval.errors.BadInput: ...: found no run in it, expected folders with a run.json
    """
    folder = Path(folder)
    runs = runs_in(folder)
    target = Path(out or folder)
    beside = [section for kind in folder_kinds() if (section := kind.section(folder, target)) is not None]
    if not runs and not beside:
        raise BadInput(f"{folder}: found no run in it, expected folders with a run.json")
    kinds: list[tuple[Path, Descriptor]] = []
    unread: list[str] = []
    for run in runs:
        try:
            if leads_out(run, folder):
                raise BadInput(f"{run}: found a link that leads elsewhere, expected a folder")
            kinds.append((run, descriptor_of(run)))
        except SurgevalError as error:  # a run that cannot be read must not hide the others
            unread.append(str(error))
    name = title or folder.resolve().name or "Runs"
    return _index(kinds, target, "index.html", name, links or {}, lead, unread, beside)


def _index(
    runs: Sequence[tuple[Path, Descriptor]], out: Path, file: str, title: str,
    links: Mapping[str, str | Path] | None = None, lead: str = "", unread: Sequence[str] = (),
    beside: Sequence[Section] = (),
) -> Path:  # fmt: skip
    sections = []
    if links:
        listed = tuple(Link(text, _relative(Path(page), out)) for text, page in links.items())
        sections.append(Section("Start here", links=listed))
    for kind in descriptors().values():
        folders = [folder for folder, own in runs if own.name == kind.name]
        sections += [_section(kind, folders, out)] if folders else []
    sections += beside
    sections += [Section("Runs that could not be read", "\n\n".join(unread))] if unread else []
    many = f"{len(runs)} run{'s' if len(runs) != 1 else ''} with their headline numbers; e" if runs else "E"
    opening = lead or f"{many}ach name opens its page."
    return write_page(out / file, title, sections, kind="runs", lead=opening)


def _section(kind: Descriptor, folders: Sequence[Path], out: Path) -> Section:
    loaded: dict[Path, RunResult] = {}
    problems: list[str] = []
    for folder in folders:
        try:
            loaded[folder] = load_run(folder)
            page = folder / "report.html"
            if not page.is_file() or page.is_symlink():
                kind.part("page")([loaded[folder]], folder)
        except SurgevalError as error:  # a run that is not finished must not hide the others
            problems.append(str(error))
            loaded.pop(folder, None)
    tables = _tables(list(loaded.values())) if loaded else ()
    names = distinct(run.name for run in loaded.values())
    links = tuple(Link(name, _relative(run / "report.html", out)) for name, run in zip(names, loaded, strict=True))
    return Section(kind.name, "\n\n".join([kind.question, *problems]), tables=tables, links=links)


def _tables(runs: Sequence[RunResult]) -> tuple[Table, ...]:
    """A row per run with the first numbers and what chance reaches; every number is folded below."""
    numbers = _by_number(runs)
    first, names = list(numbers)[:_FIRST], distinct(run.name for run in runs)
    verdicts = [run.verdict() for run in runs]
    judged = any(verdicts)
    grades = [[verdict.grade if verdict else "–"] if judged else [] for verdict in verdicts]
    rows = [[name, *grades[n], *(_cell(numbers[label], n) for label in first)] for n, name in enumerate(names)]
    if any(headline.chance is not None for label in first for headline in numbers[label].values()):
        rows.append(["chance", *[""] * judged, *(_range(numbers[label].values()) for label in first)])
    heads = distinct(["run", *["verdict"] * judged, *first])
    tables = [Table("Verdicts and headline numbers" if judged else "Headline numbers", _frame(heads, rows))]
    if judged:
        because = [[name, verdict.sentence if verdict else "–"] for name, verdict in zip(names, verdicts, strict=True)]
        tables.append(Table("Why", _frame(["run", "because"], because), folded=len(runs) > _OPEN))
    if len(numbers) > _FIRST:
        every = [[label, *(_cell(known, n) for n in range(len(runs)))] for label, known in numbers.items()]
        tables.append(Table("All headline numbers", _frame(distinct(["number", *names]), every), folded=True))
    return tuple(tables)


def _by_number(runs: Sequence[RunResult]) -> dict[str, dict[int, Headline]]:
    """Label → number of the run → headline."""
    headlines: dict[str, dict[int, Headline]] = {}
    for n, run in enumerate(runs):
        for headline in run.headlines():
            headlines.setdefault(headline.label, {})[n] = headline
    return headlines


def _cell(known: Mapping[int, Headline], run: int) -> str:
    return known[run].cell if run in known else "–"


def _range(headlines: Collection[Headline]) -> str:
    """One level, or from the lowest to the highest where runs differ."""
    known = sorted((headline.chance, headline.unit) for headline in headlines if headline.chance is not None)
    texts = [number_text(level, unit) for level, unit in known]
    return "" if not texts else texts[0] if texts[0] == texts[-1] else f"{texts[0]} to {texts[-1]}"


def _frame(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=dict.fromkeys(heads, pl.String), orient="row")


def _relative(page: Path, out: Path) -> str:
    """A link from the index to a page: below it wherever the runs are, and never an address of another kind."""
    return f"./{Path(os.path.relpath(page.resolve(), out.resolve())).as_posix()}"
