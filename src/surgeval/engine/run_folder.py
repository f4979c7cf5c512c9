"""Run folders: open one for a new or resumed run, and read the cases of a finished one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from surgeval.engine.parts import BASE
from surgeval.engine.run_record import Manifest, differences, load_record
from surgeval.errors import DataError, RunError
from surgeval.files import LOCK, collect_parquet, folder_lock, make_folder, remove_temporary, scan_parquet_file

__all__ = ["check_filled", "load_cases", "open_folder"]

_MOST_KEYS = 8  # of settings that differ, named in the message
_FILLED = ("id", "cluster", "status")  # what every case has; cases that were scored in one go have no unit


@contextmanager
def open_folder(folder: Path, manifest: Manifest) -> Iterator[None]:
    """Lock the folder for a run with this manifest, and remove the temporary files of a killed run."""
    if folder.exists() and not folder.is_dir():
        raise RunError(f"{folder}: a run needs a folder, and this is a file")
    _refuse_foreign_files(folder)
    make_folder(folder)
    with folder_lock(folder):
        if (folder / "run.json").exists():
            _refuse_other_settings(folder, manifest)
        make_folder(folder / "parts")
        remove_temporary(folder, folder / "parts")
        yield


def _refuse_foreign_files(folder: Path) -> None:
    """Refuse a folder that holds something else than a run."""
    if not folder.is_dir() or (folder / "run.json").exists():
        return
    own = {LOCK, ".run.json.tmp", "parts"}  # what a run killed in its first moments may have left
    other = sorted(path.name for path in folder.iterdir() if path.name not in own)
    if other and not (folder / "run.json").exists():  # another process may have created it just now
        raise RunError(f"{folder}: holds {other[0]!r} but no run.json; name a new or empty folder, or that of a run")


def _refuse_other_settings(folder: Path, manifest: Manifest) -> None:
    changed = differences(load_record(folder).manifest, manifest)
    if changed:
        more = f"; and {len(changed) - _MOST_KEYS} more" if len(changed) > _MOST_KEYS else ""
        raise RunError(
            f"{folder}: holds a run with other settings ({'; '.join(changed[:_MOST_KEYS])}{more}); name another folder"
        )


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
    cases = scan_parquet_file(path, "the cases of the run")
    stored = int(collect_parquet(cases.select(pl.len()), path, "the cases of the run").item())
    if stored != record.cases:
        raise DataError(path, f"holds {stored} cases, but run.json counts {record.cases}")
    _check_fixed_columns(cases, path)
    return cases


def check_filled(cases: pl.DataFrame, columns: Iterable[str], path: str | Path, *, failed: bool = False) -> None:
    """Refuse cases of the file at `path` that lack one of these values, naming the first row (from 1) and the column.

    Cases that failed may lack them, unless `failed` says that those need them too.

    >>> cases = pl.DataFrame({"status": ["ok", "ok", "missing"], "frame": ["000001", None, None]})
    >>> check_filled(cases.filter(pl.col("frame").is_not_null()), ["frame"], "cases.parquet")  # all are there
    >>> check_filled(cases, ["frame"], "cases.parquet")
    Traceback (most recent call last):
    surgeval.errors.DataError: cases.parquet: row 2: frame: found nothing, expected text
    """
    needed = pl.lit(True) if failed else pl.col("status") == "ok"
    for name in columns:
        empty = cases.select(pl.col(name).is_null() & needed).to_series()
        if empty.any():
            expected = "text" if cases[name].dtype == pl.String else "a value"
            raise DataError(
                path, f"found nothing, expected {expected}", record=f"row {(empty.arg_max() or 0) + 1}", field=name
            )


def _check_fixed_columns(cases: pl.LazyFrame, path: Path) -> None:
    """The columns that all runs have are text; id, cluster and status have no gaps."""
    schema = collect_parquet(cases.head(0), path, "the cases of the run").schema
    for name, dtype in BASE.items():
        actual = schema.get(name)
        if actual != dtype and (name in _FILLED or actual is not None):
            problem = "no such column" if actual is None else f"a column of {actual} instead of text"
            raise DataError(path, problem, field=name)
    check_filled(collect_parquet(cases.select(_FILLED), path, "the cases of the run"), _FILLED, path, failed=True)
