"""Opening a run folder: new, to be resumed, or refused with the reason; and reading a finished one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from surgeval.engine._columns import BASE
from surgeval.engine._manifest import COMPLETE, Manifest, differences, load_record
from surgeval.engine._parts import Damaged, stored_part
from surgeval.errors import DataError, RunError
from surgeval.files import LOCK, collect_parquet, folder_lock, make_folder, remove_temporary, scan_parquet_file

__all__ = ["check_filled", "load_cases", "load_units", "open_folder"]

_MOST_KEYS = 8
_FILLED = ("id", "cluster", "status")  # what every case has; scores that were made elsewhere have no unit


@contextmanager
def open_folder(folder: Path, manifest: Manifest) -> Iterator[None]:
    """Hold the folder for a run with this manifest, cleared of what a killed run left half written."""
    if folder.exists() and not folder.is_dir():
        raise RunError(f"{folder}: found a file, expected a folder for the run")
    _refuse_foreign(folder)
    make_folder(folder)
    with folder_lock(folder):
        if (folder / "run.json").exists():
            _refuse_other(folder, manifest)
        _refuse_link(folder / "parts")
        make_folder(folder / "parts")
        remove_temporary(folder, folder / "parts")
        yield


def load_cases(folder: str | Path) -> pl.LazyFrame:
    """All cases of a complete run, in the order of its units: `id, cluster, status, reason, unit` and the values.

    A run that is not complete is refused: numbers over the units that happened to finish are not the run's numbers, nor
    are those over the cases that somebody left in the file. So is a case without id, cluster or status.

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
    if record.status not in COMPLETE:
        raise RunError(f"{folder}: found a run that is {record.status}, expected a complete one; run it again first")
    path = folder / "cases.parquet"
    if not path.exists():
        raise RunError(f"{path}: found no such file although the run is complete; run it again to make it")
    cases = scan_parquet_file(path, "the cases of the run")
    stored = int(collect_parquet(cases.select(pl.len()), path, "the cases of the run").item())
    if stored != record.cases:
        raise DataError(path, f"found {stored} cases, expected the {record.cases} that run.json counts")
    _check_fixed(cases, path)
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


def load_units(folder: str | Path) -> pl.DataFrame:
    """One row per finished unit, by key: `unit, cases, failed, seconds`; works on unfinished runs as well.

    >>> import tempfile
    >>> from surgeval.engine import Manifest, Unit, run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = run([Unit("VID01")], lambda payload: [], folder=folder, manifest=Manifest("demo"), progress=False)
    ...     load_units(folder).select("unit", "cases", "failed").rows()
    [('VID01', 0, 0)]
    """
    rows = []
    for path in sorted((Path(folder) / "parts").glob("*.parquet")):
        try:
            _, info = stored_part(path, path.stem)
        except Damaged as error:
            raise RunError(f"{path}: {error}; run the same command again to repair it") from None
        rows.append((info.unit, info.cases, info.failed, info.seconds))
    schema = {"unit": pl.String, "cases": pl.Int64, "failed": pl.Int64, "seconds": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row").sort("unit")


def _check_fixed(cases: pl.LazyFrame, path: Path) -> None:
    """The columns that all runs have are text, and those that a case is known by have no gaps."""
    schema = collect_parquet(cases.head(0), path, "the cases of the run").schema
    for name, dtype in BASE.items():
        found = schema.get(name)
        if found != dtype and (name in _FILLED or found is not None):
            said = "no such column" if found is None else f"a column of {found}"
            raise DataError(path, f"found {said}, expected a column of text", field=name)
    check_filled(collect_parquet(cases.select(_FILLED), path, "the cases of the run"), _FILLED, path, failed=True)


def _refuse_foreign(folder: Path) -> None:
    """A folder that holds something else is never written into."""
    if not folder.is_dir() or (folder / "run.json").exists():
        return
    own = {LOCK, ".run.json.tmp", "parts"}  # what a run killed in its first moments may have left
    other = sorted(path.name for path in folder.iterdir() if path.name not in own)
    if other and not (folder / "run.json").exists():  # another process may have started it just now
        raise RunError(f"{folder}: found {other[0]!r} but no run.json, expected a new or empty folder, or a run's")


def _refuse_link(parts: Path) -> None:
    """Half-written files are deleted from the parts: not from a folder elsewhere."""
    if parts.is_symlink():
        raise RunError(f"{parts}: found a link, expected a folder of the run's own")


def _refuse_other(folder: Path, manifest: Manifest) -> None:
    changed = differences(load_record(folder).manifest, manifest)
    if changed:
        more = f"; and {len(changed) - _MOST_KEYS} more" if len(changed) > _MOST_KEYS else ""
        raise RunError(
            f"{folder}: found a run with other settings ({'; '.join(changed[:_MOST_KEYS])}{more}),"
            " expected the same ones; name another folder"
        )
