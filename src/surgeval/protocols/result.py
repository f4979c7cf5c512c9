"""A run of a protocol: the result that is loaded from its folder, and how the folder is read and written.

A protocol declares its files once: the settings in run.json by a `RunSettings`, the rows of cases.parquet by a
`CaseRow`, further files by `StoredFile` and `StoredTable` of `surgeval.files`. A folder is read as a file from outside:
what passes these declarations is plain, typed data, and anything else a `DataError`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import polars as pl
from pydantic import ConfigDict

from surgeval.engine import RunRecord, load_cases, load_record
from surgeval.errors import BadInput
from surgeval.files import (
    NullableFloat,
    StoredPart,
    StoredTable,
    check_stored,
    collect_parquet,
    failure_reason,
    folder_lock,
    make_folder,
)
from surgeval.protocols.contract import Headline, headlines_of
from surgeval.results import Result
from surgeval.stats import Interval, Measure, measure_intervals, number_text, numbers_table

if TYPE_CHECKING:
    from surgeval.engine import RunSummary
    from surgeval.pages import Evidence
    from surgeval.protocols.verdict import Verdict

__all__ = ["CaseRow", "FinishedRun", "MeasuredResult", "RecordedResult", "RunFiles", "RunResult", "RunSettings",
           "StoredInterval", "check_output", "names_on_page", "refuse_dataset", "write_run"]  # fmt: skip


SettingsT = TypeVar("SettingsT", bound="RunSettings")


class RunResult(Result):
    """A run, loaded: what its page, the index page, `compare` and a notebook need."""

    __slots__ = ()

    name: str
    protocol: str
    notes: tuple[str, ...]
    measures: Sequence[Measure] = ()  # the protocol's numbers, declared

    @property
    def data_identity(self) -> str:
        """What identifies the scored data, where the result knows it better than `dataset` of run.json; else empty."""
        return ""

    def headlines(self) -> tuple[Headline, ...]:
        """The numbers to read first, best known first."""
        raise NotImplementedError

    @property
    def recipe_settings(self) -> Mapping[str, Any]:
        """The settings that recipes of numbers name."""
        known: Mapping[str, Any] = getattr(self, "settings", {})
        return known

    @property
    def recipes(self) -> dict[str, str]:
        """By label, the recipe of each headline number: how it was combined, and the settings that change it."""
        known = {headline.key: headline for headline in self.headlines()}
        return {known[measure.key].label: measure.signature(self.recipe_settings, known[measure.key].interval)
                for measure in self.measures if measure.key in known}  # fmt: skip

    def number(self) -> Interval:
        """The first of the headlines, with its interval."""
        for headline in self.headlines():
            return headline.interval
        raise BadInput(f"{self.name} has no number: none is defined on its cases.")

    def evidence(self) -> Evidence | None:
        """Every case as the page's evidence browser shows it; None where a protocol or a run has none."""
        return None

    def verdict(self) -> Verdict | None:
        """The grade by the rules of docs/verdicts.md; None where a protocol has no rules."""
        return self._verdict

    @property
    def _verdict(self) -> Verdict | None:
        """What a protocol with rules overrides, cached: page, index and `repr` all read it."""
        return None

    @property
    def reply_warnings(self) -> tuple[str, ...]:
        """What is probably wrong with answers or servers, to be read before the numbers."""
        return ()

    def sentences(self) -> tuple[str, ...]:
        """What a command prints between the verdict and the tables."""
        return ()

    @property
    def exit_code(self) -> int:
        """What a command that made the result exits with: 1 where something is left to do."""
        return 0

    def headline_table(self) -> pl.DataFrame:
        """The numbers to read first, as a command prints them, with the blind baseline or else chance."""
        rows = [
            (one.label, one.cell, "" if baseline is None else number_text(baseline, one.unit))
            for one in self.headlines()
            for baseline in (one.chance if one.baseline is None else one.baseline,)
        ]
        table = pl.DataFrame(rows, schema=dict.fromkeys(("number", "value", "baseline"), pl.String), orient="row")
        return table if any(table["baseline"]) else table.drop("baseline")

    def to_json(self) -> dict[str, Any]:
        """The verdict, the numbers and the notes as plain values, for `--json`."""
        verdict = self.verdict()
        numbers = [
            {"key": one.key, "label": one.label, **one.interval.to_json(), "chance": one.chance}
            for one in self.headlines()
        ]
        return {"name": self.name, "verdict": verdict.to_json() if verdict else None, "numbers": numbers,
                "notes": list(self.notes)}  # fmt: skip

    def json_details(self) -> dict[str, Any]:
        """What `--json` prints beside `to_json`, for example whole tables."""
        return {}

    def __repr__(self) -> str:
        numbers = "; ".join(f"{headline.label} {headline.cell}" for headline in self.headlines()[:3])
        verdict = self.verdict()
        return f"{type(self).__name__} {self.name!r}: {f'{verdict.grade}; ' if verdict else ''}{numbers or 'no number'}"


class RecordedResult(RunResult):
    """A result that keeps the record of the run it was read from."""

    __slots__ = ()

    record: RunRecord

    @property
    def settings(self) -> Mapping[str, Any]:
        """As run.json holds them."""
        return self.record.config


class MeasuredResult(RecordedResult):
    """A result whose numbers are the `measures` of its `cases`, which have a column `cluster` (the video)."""

    cases: pl.DataFrame

    @cached_property
    def numbers(self) -> Mapping[str, Interval]:
        """Every measure that the cases define, with its interval over videos."""
        return measure_intervals(self.measures, self.cases)

    def headlines(self) -> tuple[Headline, ...]:
        """The measures to read first, each with its baseline."""
        return headlines_of(self.measures, self.numbers)

    @property
    def tables(self) -> Mapping[str, pl.DataFrame]:
        """`numbers`: a row per measure."""
        return {"numbers": numbers_table(self.measures, self.numbers, settings=self.settings)}


class FinishedRun(Result):
    """What a `run_…` function returns: its `summary`, with the tables and figures of the run it wrote."""

    __slots__ = ()

    summary: RunSummary

    @property
    def loaded(self) -> RunResult:
        """The run, as `load_run` gives it."""
        raise NotImplementedError

    @property
    def scored(self) -> RunResult | None:
        """The run, as `load_run` gives it; None while it has no scores."""
        return self.loaded

    @property
    def exit_code(self) -> int:
        """What the command exits with: 1 where a case failed or something else is left to do."""
        return self.summary.exit_code or (self.scored.exit_code if self.scored is not None else 0)

    def to_json(self) -> dict[str, Any]:
        """The run's numbers, and what failed, for `--json`."""
        numbers = self.scored.to_json() if self.scored is not None else {}
        return {**numbers, "failures": self.summary.to_frame().to_dicts()}

    @property
    def tables(self) -> Mapping[str, pl.DataFrame]:
        """Those of the run, and `failures`: what could not be done, by reason."""
        return {**self.loaded.tables, "failures": self.summary.to_frame()}

    @property
    def figures(self) -> Mapping[str, Any]:
        """Those of the run."""
        return self.loaded.figures


def names_on_page(results: Sequence[RunResult]) -> list[str]:
    """The names of the runs of one page, which must differ; a page without runs is refused.

    >>> names_on_page([])
    Traceback (most recent call last):
    surgeval.errors.BadInput: A page needs at least one run.
    """
    if not results:
        raise BadInput("A page needs at least one run.")
    names = [run.name for run in results]
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise BadInput(f"Two runs are named {twice!r}. Give them different names.")
    return names


# ── the files of a run ──────────────────────────────────────────────────────────────────────────────────────────


class RunSettings(StoredPart):
    """The settings in run.json that a protocol's code reads; keys that it does not declare are left out."""

    model_config = ConfigDict(extra="ignore")


class CaseRow(StoredTable, name="cases.parquet"):
    """A row of cases.parquet. A subclass declares the values of a case; a case that failed may lack them."""

    id: str
    cluster: str
    status: str
    reason: str | None = None

    always_filled: ClassVar[tuple[str, ...]] = ("id", "cluster", "status")

    @classmethod
    def check(cls, table: pl.DataFrame, path: str | Path) -> pl.DataFrame:
        """The declared columns of a table; values that no case has because all of them failed are null."""
        if table.schema.get("status") == pl.String and not (table["status"] == "ok").any():
            absent = [name for name in cls.columns() if name not in table.columns]
            table = table.with_columns(pl.lit(None).alias(name) for name in absent)
        return super().check(table, path)

    @classmethod
    def needs_values(cls, table: pl.DataFrame) -> pl.Series:
        """All rows but those of failed cases."""
        return table["status"] == "ok"

    @classmethod
    def load(cls, folder: str | Path) -> pl.DataFrame:
        """The cases of a complete run."""
        path = Path(folder) / cls.file_name
        return cls.check(collect_parquet(load_cases(folder), path), path)


@dataclass(frozen=True)
class RunFiles(Generic[SettingsT]):
    """A run folder of a protocol: its record, with the settings checked.

    >>> import tempfile
    >>> from surgeval.engine import Manifest, scored_record
    >>> class Settings(RunSettings):
    ...     limit: float
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with write_run(folder, scored_record(Manifest("quality", {"limit": 0.5, "colour": "red"}), cases=0)):
    ...         CaseRow.save(CaseRow.dtypes().to_frame(), folder)
    ...     files = RunFiles.open(folder, "quality", Settings)
    ...     files.settings, CaseRow.load(folder).height
    (Settings(limit=0.5), 0)
    """

    folder: Path
    record: RunRecord
    settings: SettingsT

    @classmethod
    def open(cls, folder: str | Path, protocol: str, settings: type[SettingsT]) -> RunFiles[SettingsT]:
        """Read run.json. `DataError` for the run of another protocol, or settings that do not fit."""
        path = Path(folder)
        record = load_record(path, protocol)
        return RunFiles(path, record, check_stored(settings, record.config, path / record.file_name, "config"))


class StoredInterval(StoredPart):
    """An interval in a JSON file; null where it is not defined."""

    estimate: NullableFloat
    low: NullableFloat
    high: NullableFloat
    level: float = 0.95
    method: str = "t"
    scheme: str = "cluster"
    point: str = "flat"
    n: int = 0
    clusters: int = 0
    resamples: int = 0
    name: str = ""
    note: str = ""

    @classmethod
    def of(cls, interval: Interval | None) -> StoredInterval | None:
        """What is stored of an interval.

        >>> StoredInterval.of(None)
        """
        return None if interval is None else cls(**asdict(interval))

    def to_interval(self) -> Interval:
        """The interval that was stored."""
        return Interval(**self.model_dump(mode="python"))


def check_output(folder: str | Path, protocol: str, *, own: str = "run.json") -> None:
    """Refuse a folder for a result that holds the run of another protocol, or a dataset.

    A folder with the file `own` holds an earlier result.

    >>> check_output("a new folder", "focus")
    """
    path = Path(folder)
    if (path / "run.json").exists():
        if (other := load_record(path).protocol) != protocol:
            raise BadInput(f"{path}: holds a run of {other}. Name a new folder or one with a run of {protocol}.")
    elif not (path / own).exists():
        refuse_dataset(path)


def refuse_dataset(out: str | Path) -> None:
    """Refuse to write a result into a folder that holds a dataset: its files would become part of the data.

    >>> refuse_dataset(Path("a new folder"))
    """
    from surgeval.datasets import is_dataset

    if Path(out).is_dir() and is_dataset(out):
        raise BadInput(f"{out} holds a dataset. Name a new folder or one of an earlier result.")


@contextmanager
def write_run(folder: str | Path, record: RunRecord | None) -> Iterator[Path]:
    """Lock a folder and let the caller write the files of a result into it.

    run.json is deleted first and written last, so that a folder with run.json is complete. The page is deleted: it
    would show the earlier result. Without a record run.json stays as it is, that of the run which asked the model.
    """
    home = Path(folder)
    try:
        make_folder(home)
        with folder_lock(home):
            if record is not None:
                (home / record.file_name).unlink(missing_ok=True)
            (home / "report.html").unlink(missing_ok=True)
            yield home
            if record is not None:
                record.save(home)
    except OSError as error:
        raise BadInput(f"{home}: the result cannot be written: {failure_reason(error)}") from error
