"""The index page over runs: headline numbers of each, chance and floors below them, and links to their pages."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from surgeval.engine import load_record
from surgeval.errors import BadInput, SurgevalError
from surgeval.files import leads_out
from surgeval.pages import Link, Section, Table, distinct, write_page
from surgeval.protocols.contract import Headline
from surgeval.protocols.descriptor import Descriptor
from surgeval.protocols.registry import descriptor_of, descriptors, folder_kinds, load_run, runs_in
from surgeval.protocols.result import RunResult
from surgeval.protocols.run_page import claims, evidence_of, runs_table, side_by_side
from surgeval.protocols.verdict import Verdict
from surgeval.report.beside import pages_beside
from surgeval.stats import Measure, number_text

__all__ = ["write_index", "write_run_pages"]

_OPEN = 12  # runs whose verdicts stand open
_LEVELS = {"chance": "chance", "baseline": "baseline"}
_FIRST = 4  # numbers beside each run; the folded table has them all
_SHORT, _LONGEST = 8, 60  # letters of a fingerprint, and of a dataset's name, that a title shows
_BASELINE = "The baseline answers without looking at the images: the page of each run says how."
_OTHERS = "Rankings, comparisons and reports that lie beside the runs."
_APART = "Runs on other data, or with other first numbers, have a table of their own."


def _on_the_page(problem: str) -> None:
    """What could not be read stands on the page already."""


@dataclass(frozen=True, slots=True)
class _Shown:
    """A run of the index: its name there, and its data as what identifies them and as a title calls them."""

    name: str
    headlines: tuple[Headline, ...]
    verdict: Verdict | None = None
    data: str = ""
    data_name: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """The numbers that stand beside it."""
        return tuple(dict.fromkeys(headline.label for headline in self.headlines))[:_FIRST]


def write_run_pages(
    folders: Sequence[str | Path], out: str | Path | None = None, *, on_problem: Callable[[str], None] = _on_the_page
) -> Path:
    """The page of a run (into its own folder, or `out`), of several runs side by side, or an index of unlike runs.

    Runs of an index that cannot be read are named on it, and to `on_problem`.

    >>> import tempfile
    >>> from surgeval import score_recognition
    >>> labels = [[1, 0], [0, 1]] * 2
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = score_recognition(labels, labels, ["v1", "v1", "v2", "v2"]).save(f"{folder}/net")
    ...     write_run_pages([f"{folder}/net"]).relative_to(folder).as_posix()
    'net/report.html'
    >>> write_run_pages([Path("nowhere")])
    Traceback (most recent call last):
    surgeval.errors.DataError: nowhere: no such folder
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
    with kinds[0].answers_for("load"):
        beside = evidence_sections(paths) if alike else ()
    return _index(runs, Path(out), "report.html", "Runs", beside=beside, on_problem=on_problem)


def evidence_sections(folders: Sequence[Path]) -> tuple[Section, ...]:
    """The cases of several runs of one protocol side by side; nothing unless two of them kept any."""
    shown = evidence_of([load_run(folder) for folder in folders])
    return (side_by_side(shown),) if len(shown) > 1 else ()


def write_index(
    folder: str | Path, out: str | Path | None = None, *, title: str | None = None,
    links: Mapping[str, str | Path] | None = None, lead: str = "", on_problem: Callable[[str], None] = _on_the_page,
) -> Path:  # fmt: skip
    """`index.html` over all runs in a folder; a run without a page of its own gets one.

    `links` are pages to start with. What protocols left beside runs, such as a training, has a section of its own, and
    so have the other pages there: rankings, comparisons, reports. Runs that cannot be read are named on the page, and
    to `on_problem`.

    >>> import tempfile
    >>> from surgeval import score_recognition
    >>> labels = [[1, 0], [0, 1]] * 2
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = score_recognition(labels, labels, ["v1", "v1", "v2", "v2"]).save(f"{folder}/net")
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
    unread: list[str] = []
    beside = list[Section]()
    for folder_kind in folder_kinds():
        with _telling(unread, on_problem):
            section = folder_kind.section(folder, target)
            beside += [section] if section is not None else []
    if not runs and not beside and not unread:
        raise BadInput(f"{folder}: found no run in it, expected folders with a run.json")
    kinds: list[tuple[Path, Descriptor]] = []
    for run in runs:
        with _telling(unread, on_problem):
            if leads_out(run, folder):
                raise BadInput(f"{run}: found a link that leads elsewhere, expected a folder")
            kinds.append((run, descriptor_of(run)))
    if others := pages_beside(folder, [Path(page) for page in (links or {}).values()]):
        beside.append(Section("Other pages", _OTHERS, links=_links(others, target)))
    name = title or folder.resolve().name or "Runs"
    return _index(kinds, target, "index.html", name, links or {}, lead, unread, beside, on_problem)


@contextmanager
def _telling(problems: list[str], on_problem: Callable[[str], None]) -> Iterator[None]:
    """A run that cannot be read, or another package's part that fails, must not hide the others."""
    try:
        yield
    except SurgevalError as error:
        problems.append(str(error))
        on_problem(str(error))


def _index(
    runs: Sequence[tuple[Path, Descriptor]], out: Path, file: str, title: str,
    links: Mapping[str, str | Path] | None = None, lead: str = "", unread: Sequence[str] = (),
    beside: Sequence[Section] = (), on_problem: Callable[[str], None] = _on_the_page,
) -> Path:  # fmt: skip
    sections, failed, measures = list[Section](), list(unread), list[Measure]()
    if links:
        sections.append(Section("Start here", links=_links(links, out)))
    for kind in descriptors().values():
        folders = [folder for folder, own in runs if own.name == kind.name]
        with _telling(failed, on_problem), kind.answers_for("load"):
            sections += [_section(kind, folders, out, on_problem, measures)] if folders else []
    sections += beside
    sections += [Section("Runs that could not be read", "\n\n".join(failed))] if failed else []
    many = f"{len(runs)} run{'s' if len(runs) != 1 else ''} with their headline numbers; e" if runs else "E"
    opening = lead or f"{many}ach name opens its page."
    return write_page(out / file, title, sections, kind="runs", lead=opening, measures=measures)


def _section(
    kind: Descriptor, folders: Sequence[Path], out: Path, on_problem: Callable[[str], None], measures: list[Measure]
) -> Section:
    """The runs of one protocol; what their numbers mean is appended to `measures`."""
    loaded: dict[Path, _Shown] = {}
    problems: list[str] = []
    for folder in folders:
        with _telling(problems, on_problem), kind.answers_for("load"):
            run = load_run(folder)
            page = folder / "report.html"
            if not page.is_file() or page.is_symlink():
                kind.part("page")([run], folder)
            measures += [measure for measure in run.measures if measure.key not in {known.key for known in measures}]
            loaded[folder] = _Shown(run.name, run.headlines(), run.verdict(), *_data_of(folder, run))
    names = distinct(run.name for run in loaded.values())
    shown = [replace(run, name=name) for name, run in zip(names, loaded.values(), strict=True)]
    links = tuple(Link(name, _relative(run / "report.html", out)) for name, run in zip(names, loaded, strict=True))
    text = [kind.question, *([_APART] if len(_alike(shown)) > 1 else [])]
    text += [_BASELINE] if any(headline.baseline is not None for run in shown for headline in run.headlines) else []
    text += problems
    return Section(kind.name, "\n\n".join(text), tables=_tables(shown), links=links)


def _data_of(folder: Path, run: RunResult) -> tuple[str, str]:
    """What identifies the data of a run, and what a title calls them; empty where the run does not say."""
    record = load_record(folder)
    stated = record.dataset if isinstance(record.dataset, Mapping) else {"content": record.dataset}
    content = run.data_identity or stated.get("content")
    rest = {key: value for key, value in stated.items() if key != "name"}  # the same data, whatever they are called
    name = stated.get("name") or record.config.get("label_space")
    known = str(name or "data")[:_LONGEST]
    short = f" ({content[:_SHORT]})" if content and isinstance(content, str) else ""
    return run.data_identity or json.dumps(rest, sort_keys=True), f"{known}{short}" if name or short else ""


def _alike(runs: Sequence[_Shown]) -> list[list[_Shown]]:
    """Runs on the same data with the same first numbers, which stand in one table with their baselines."""
    sets: dict[tuple[str, tuple[str, ...]], list[_Shown]] = {}
    for shown in runs:
        sets.setdefault((shown.data, shown.columns), []).append(shown)
    return list(sets.values())


def _titles(sets: Sequence[Sequence[_Shown]]) -> list[str]:
    """Behind a table's title, what tells these sets apart: their data and first numbers; nothing where all agree."""
    several = len({alike[0].data for alike in sets}) > 1
    titles = []
    for first in (alike[0] for alike in sets):
        mains = {alike[0].columns[:1] for alike in sets if alike[0].data == first.data}
        where = f" on {first.data_name}" if several and first.data_name else ""
        titles.append(where + (f": {''.join(first.columns[:1]) or 'no number'}" if len(mains) > 1 else ""))
    return distinct(titles)


def _tables(runs: Sequence[_Shown]) -> tuple[Table, ...]:
    """A table for each set of runs that belong together, why their verdicts are so, and every number folded below."""
    sets = _alike(runs)
    titles = _titles(sets)
    verdicts = {shown.name: shown.verdict for shown in runs}
    tables = [_first_numbers(alike, verdicts, title) for alike, title in zip(sets, titles, strict=True)]
    if any(verdicts.values()):
        because = [[name, verdict.sentence if verdict else "–"] for name, verdict in verdicts.items()]
        tables.append(Table("Why", _frame(["run", "because"], because), folded=len(runs) > _OPEN))
    for alike, title in zip(sets, titles, strict=True):
        numbers = _by_number(alike)
        if len(numbers) > _FIRST:
            every = [[label, *(_cell(known, n) for n in range(len(alike)))] for label, known in numbers.items()]
            heads = distinct(["number", *(shown.name for shown in alike)])
            tables.append(Table(f"All headline numbers{title}", _frame(heads, every), folded=True))
    return tuple(tables)


def _first_numbers(alike: Sequence[_Shown], verdicts: Mapping[str, Verdict | None], title: str) -> Table:
    """A row per run with its grade and first numbers, then what chance and the baseline reach."""
    numbers = _by_number(alike)
    first = alike[0].columns
    own = [verdicts[shown.name] for shown in alike]
    judged = any(own)
    runs = [(shown.name, verdicts[shown.name], shown.headlines) for shown in alike]
    frame, bars = runs_table(runs, first, "run")
    rows = []
    for level in ("chance", "baseline"):
        cells = [_range(numbers[label].values(), level) for label in first]
        rows += [[_LEVELS[level], *[""] * judged, *cells]] if any(cells) else []
    frame = pl.concat([frame, _frame(frame.columns, rows)])
    said = "Grades and headline numbers" if judged else "Headline numbers"
    note = claims({shown.name: verdicts[shown.name] for shown in alike})
    return Table(f"{said}{title}", frame, note, bars=bars)


def _by_number(runs: Sequence[_Shown]) -> dict[str, dict[int, Headline]]:
    """Label → number of the run → headline."""
    headlines: dict[str, dict[int, Headline]] = {}
    for n, run in enumerate(runs):
        for headline in run.headlines:
            headlines.setdefault(headline.label, {})[n] = headline
    return headlines


def _cell(known: Mapping[int, Headline], run: int) -> str:
    return known[run].cell if run in known else "–"


def _range(headlines: Collection[Headline], level: str = "chance") -> str:
    """One level, or from the lowest to the highest where runs differ."""
    known = sorted((value, headline.unit) for headline in headlines if (value := getattr(headline, level)) is not None)
    texts = [number_text(value, unit) for value, unit in known]
    return "" if not texts else texts[0] if texts[0] == texts[-1] else f"{texts[0]} to {texts[-1]}"


def _frame(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=dict.fromkeys(heads, pl.String), orient="row")


def _links(pages: Mapping[str, str | Path], out: Path) -> tuple[Link, ...]:
    return tuple(Link(text, _relative(Path(page), out)) for text, page in pages.items())


def _relative(page: Path, out: Path) -> str:
    """A link from the index to a page: below it wherever the runs are, and never an address of another kind."""
    return f"./{Path(os.path.relpath(page.resolve(), out.resolve())).as_posix()}"
