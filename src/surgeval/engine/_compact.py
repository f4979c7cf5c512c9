"""Many parts → one `cases.parquet`, in the order of the units, with bounded memory.

The bytes depend on the cases and their order alone: not on the executor, on the order in which units finished or on
how often the run was killed. The parts stay, since `--retry` needs them.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

import polars as pl
from polars.io.plugins import register_io_source

from surgeval.engine._columns import BASE, Schema, common_type, fit
from surgeval.engine._parts import Damaged, part_path, read_frame, read_schema, stored_part
from surgeval.engine._units import Job
from surgeval.errors import RunError
from surgeval.files import atomic_file, trust_parquet

__all__ = ["RunSchema", "compact"]

_ROWS = 65_536  # per row group; fixed, because the bytes of the file depend on it


class RunSchema:
    """The columns met so far, each with the unit that fixed its type."""

    def __init__(self) -> None:
        self.types: dict[str, pl.DataType] = dict(BASE)
        self._unit: dict[str, str] = {}

    def add(self, unit: str, schema: Schema) -> None:
        """Take in one part's columns; a type that cannot be reconciled is an error naming the column."""
        for name, dtype in schema.items():
            old = self.types.get(name, pl.Null())
            merged = common_type(old, dtype)
            if merged is None:
                raise RunError(
                    f"cases: {name}: found {dtype} in unit {unit}, expected {old} as in unit {self._unit.get(name)};"
                    " let the worker give one type and use a new folder"
                )
            if name not in self.types or merged != old:
                self.types[name], self._unit[name] = merged, unit


def compact(folder: Path, jobs: Sequence[Job]) -> None:
    """Write `cases.parquet` from the parts of these units, in this order."""
    schema = RunSchema()
    for job in jobs:
        schema.add(job.unit.key, read_schema(part_path(folder, job.name)))

    def frames(*_: Any) -> Iterator[pl.DataFrame]:
        for job in jobs:
            yield fit(_read(part_path(folder, job.name), job.name), schema.types)

    with atomic_file(folder / "cases.parquet") as file:
        _sink(frames, schema.types, file)
    trust_parquet(folder / "cases.parquet")


def _read(path: Path, name: str) -> pl.DataFrame:
    try:
        return read_frame(stored_part(path, name)[0])
    except Damaged as error:
        raise RunError(f"{path}: {error}, although it was whole before; run the same command again") from None


def _sink(frames: Callable[..., Iterator[pl.DataFrame]], schema: Schema, file: BinaryIO) -> None:
    target = _Target(file)
    source = register_io_source(frames, schema=dict(schema))
    try:
        source.sink_parquet(cast(IO[bytes], target), row_group_size=_ROWS, maintain_order=True)
    except pl.exceptions.PolarsError:
        if target.error is not None:  # polars turns a full disk into a "file out of specification"
            raise target.error from None
        raise


class _Target(io.RawIOBase):
    """The file as polars sees it, remembering the system error that polars would hide."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self._file, self.error = file, None

    error: OSError | None

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        try:
            return self._file.write(data)
        except OSError as error:
            self.error = error
            raise
