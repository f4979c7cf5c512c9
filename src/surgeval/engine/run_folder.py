"""Run folders: open one for a new or resumed run, keep parts in it, and read the cases of a finished run."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from surgeval.engine.parts import BASE, CorruptPart, EncodedPart, PartInfo, encode_table, part_path, read_part
from surgeval.engine.run_record import Manifest, RecordKeeper, differences, hold_folder, load_record
from surgeval.engine.units import Unit, name_unit
from surgeval.errors import DataError, RunError
from surgeval.files import (
    collect_parquet,
    make_folder,
    scan_parquet_file,
    write_atomically,
)

__all__ = ["PartStore", "load_cases", "open_folder", "open_parts", "read_stored_part"]

_MOST_KEYS = 8  # of settings that differ, named in the message
_FILLED = ("id", "cluster", "status")  # what every case has; cases that were scored in one go have no unit


@contextmanager
def open_folder(folder: Path, manifest: Manifest) -> Iterator[None]:
    """Hold the folder for a run with this manifest; one that holds a run with another manifest is refused."""
    with hold_folder(folder, "run.json", "parts"):
        if (folder / "run.json").exists():
            _refuse_other_settings(folder, manifest)
        make_folder(folder / "parts")
        yield


def _refuse_other_settings(folder: Path, manifest: Manifest) -> None:
    changed = differences(load_record(folder).manifest, manifest)
    if changed:
        more = f"; and {len(changed) - _MOST_KEYS} more" if len(changed) > _MOST_KEYS else ""
        raise RunError(
            f"{folder}: holds a run with other settings ({'; '.join(changed[:_MOST_KEYS])}{more}); name another folder"
        )


def read_stored_part(
    folder: Path, name: str, key: str, on_damage: Callable[[str], None]
) -> tuple[PartInfo, pl.DataFrame] | None:
    """The part of the unit with this name and key, or None if it is absent or damaged; `on_damage` gets a sentence."""
    try:
        return read_part(part_path(folder, name), name)
    except FileNotFoundError:
        return None
    except CorruptPart as damage:
        on_damage(f"the part of unit {key} is damaged ({damage}); it is done again")
        return None


# ── parts of other runs ─────────────────────────────────────────────────────────────────────────────────────────


class PartStore:
    """The parts of a run that names its units as it goes, such as `surgeval detect`. `open_parts` makes one."""

    def __init__(self, folder: str | Path, manifest: Manifest, on_damage: Callable[[str], None]) -> None:
        self._folder, self._identity, self._on_damage = Path(folder), manifest.identity(), on_damage
        self.units = self.finished = self.failed = self.cases = 0

    def find(self, unit: Unit) -> Path | None:
        """The part of this unit if it is there and can be read."""
        self.units += 1
        name = name_unit(self._identity, unit)
        stored = read_stored_part(self._folder, name, unit.key, self._on_damage)
        if stored is None:
            return None
        self._count(stored[0])
        return part_path(self._folder, name)

    def write(self, unit: Unit, table: pl.DataFrame, seconds: float = 0.0) -> Path:
        """Store the rows of a unit, all or none."""
        part = self._encode(unit, table, seconds)
        path = self._write(part)
        self._count(part.info)
        return path

    def rewrite(self, unit: Unit, table: pl.DataFrame) -> Path:
        """Replace the rows of a unit that was stored before, in one step."""
        return self._write(self._encode(unit, table, 0.0))

    def _encode(self, unit: Unit, table: pl.DataFrame, seconds: float) -> EncodedPart:
        return encode_table(name_unit(self._identity, unit), unit.key, table, seconds)

    def _write(self, part: EncodedPart) -> Path:
        path = part_path(self._folder, part.info.name)
        try:
            write_atomically(path, part.data)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from error
        return path

    def _count(self, info: PartInfo) -> None:
        self.finished += 1
        self.cases += info.cases


@contextmanager
def open_parts(
    folder: str | Path,
    manifest: Manifest,
    *,
    resume: bool = True,
    on_damage: Callable[[str], None] = lambda _text: None,
) -> Iterator[PartStore]:
    """Hold a work folder for units that are stored as they are done, and keep its run.json up to date.

    Parts of an earlier call with the same manifest are kept, those of another manifest deleted; with `resume=False`
    all are deleted. `on_damage` gets a sentence about each part that cannot be read.

    >>> import tempfile
    >>> unit = Unit("VID01, frames 0 to 511")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open_parts(f"{folder}/.work", Manifest("detect")) as parts:
    ...         parts.find(unit), parts.write(unit, pl.DataFrame({"score": [0.9]})).suffix
    ...     with open_parts(f"{folder}/.work", Manifest("detect")) as parts:
    ...         parts.find(unit) is None
    (None, '.parquet')
    False
    """
    folder = Path(folder)
    with hold_folder(folder, "run.json", "parts"):
        if not (resume and _has_manifest(folder, manifest)):
            shutil.rmtree(folder / "parts", ignore_errors=True)
        make_folder(folder / "parts")
        store = PartStore(folder, manifest, on_damage)
        with RecordKeeper(folder, manifest, store, "done"):
            yield store


def _has_manifest(folder: Path, manifest: Manifest) -> bool:
    try:
        return not differences(load_record(folder).manifest, manifest)
    except DataError:  # absent, or of an earlier version
        return False


# ── finished runs ───────────────────────────────────────────────────────────────────────────────────────────────


def load_cases(folder: str | Path) -> pl.LazyFrame:
    """All cases of a complete run, in the order of its units: `id, cluster, status, reason, unit` and the values.

    A run that is not complete is refused, because numbers over the units that happened to finish are not the run's. So
    is a file with another number of cases than run.json has, and a case without id, cluster or status.

    >>> import tempfile
    >>> from surgeval.engine import Manifest, Unit, run
    >>> from surgeval.records import Case
    >>> def worker(payload):
    ...     return [Case(f"{payload}/{frame}", payload, values={"score": frame / 2}) for frame in range(2)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = run([Unit("VID01", "VID01")], worker, folder=folder, manifest=Manifest("demo"), progress=False)
    ...     load_cases(folder).select("id", "status", "score").collect().rows()
    [('VID01/0', 'ok', 0.0), ('VID01/1', 'ok', 0.5)]
    """
    folder = Path(folder)
    record = load_record(folder)
    if not record.complete:
        raise RunError(f"{folder}: the run is not complete ({record.status}); run the same command again")
    path = folder / "cases.parquet"
    if not path.exists():
        raise RunError(f"{path} is missing; run the same command again to rebuild it")
    cases = scan_parquet_file(path)
    stored = int(collect_parquet(cases.select(pl.len()), path).item())
    if stored != record.cases:
        raise DataError(path, f"holds {stored} cases, but run.json counts {record.cases}")
    _check_fixed_columns(cases, path)
    return cases


def _check_fixed_columns(cases: pl.LazyFrame, path: Path) -> None:
    """The columns that all runs have are text; id, cluster and status have no gaps."""
    schema = collect_parquet(cases.head(0), path).schema
    for name, dtype in BASE.items():
        actual = schema.get(name)
        if actual != dtype and (name in _FILLED or actual is not None):
            problem = "no such column" if actual is None else f"a column of {actual} instead of text"
            raise DataError(path, problem, field=name)
    for name in _FILLED:
        empty = collect_parquet(cases.select(pl.col(name).is_null()), path).to_series()
        if empty.any():
            raise DataError(
                path, "is missing", record=f"row {(empty.arg_max() or 0) + 1}", field=name, code="key-missing"
            )
