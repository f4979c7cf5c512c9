"""Parts: one Parquet file per finished unit, and `cases.parquet`, which holds the cases of all of them.

The footer of a part names its unit, counts its failures and says how many seconds it took. Column types are few:
boolean, 64-bit integer, 64-bit float, text, bytes and lists of them. Missing values are null, an integer column that
meets a float becomes float, and any other disagreement between parts is an error that names the column.
"""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import polars as pl
from polars.io.plugins import register_io_source

from surgeval.engine.units import Job
from surgeval.errors import BadInput, RunError
from surgeval.files import atomic_file, keep_os_errors
from surgeval.records import Case

__all__ = [
    "BASE",
    "CorruptPart",
    "EncodedPart",
    "Failure",
    "PartInfo",
    "RunSchema",
    "case_frame",
    "common_type",
    "compact",
    "encode_part",
    "encode_table",
    "fit",
    "part_path",
    "read_part",
]

Schema = Mapping[str, pl.DataType]
BASE: dict[str, pl.DataType] = {name: pl.String() for name in ("id", "cluster", "status", "reason", "unit")}

_ABOUT = "surgeval.part"  # key of the footer
_MOST_REASONS = 200  # distinct ones kept per unit; more are counted under "other reasons"
_ROWS = 65_536  # per row group of cases.parquet; fixed, because the bytes of the file depend on it


class CorruptPart(Exception):
    """A part that cannot be read; its unit has to be done again."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The number of cases of one unit that failed for one reason."""

    status: str
    reason: str
    cases: int


@dataclass(frozen=True, slots=True)
class PartInfo:
    """The footer of a part."""

    name: str
    unit: str
    cases: int
    failures: tuple[Failure, ...]
    seconds: float

    @property
    def failed(self) -> int:
        """The number of cases that are not `ok`."""
        return sum(failure.cases for failure in self.failures)


@dataclass(frozen=True, slots=True)
class EncodedPart:
    """A finished unit: its footer, its columns and the bytes of its file."""

    info: PartInfo
    schema: Schema
    data: bytes


def part_path(folder: Path, name: str) -> Path:
    """The path of the part of the unit with this name."""
    return folder / "parts" / f"{name}.parquet"


def encode_part(name: str, unit: str, cases: Sequence[Case], seconds: float) -> EncodedPart:
    """The part of a unit with these cases."""
    return encode_table(name, unit, case_frame(unit, cases), seconds, _count_failures(cases))


def encode_table(
    name: str, unit: str, table: pl.DataFrame, seconds: float = 0.0, failures: tuple[Failure, ...] = ()
) -> EncodedPart:
    """The part of a unit with these rows; for runs that do not make cases, such as `surgeval detect`."""
    info = PartInfo(name, unit, table.height, failures, round(seconds, 3))
    about = {
        "name": name,
        "unit": unit,
        "cases": info.cases,
        "failures": [[failure.status, failure.reason, failure.cases] for failure in info.failures],
        "seconds": info.seconds,
    }
    buffer = io.BytesIO()
    table.write_parquet(buffer, metadata={_ABOUT: json.dumps(about)})
    return EncodedPart(info, table.schema, buffer.getvalue())


def read_part(path: Path, name: str) -> tuple[PartInfo, pl.DataFrame]:
    """The footer and the rows of the part of this unit; raises `CorruptPart`, and `FileNotFoundError` if absent."""
    if path.exists() and not path.is_file():  # opening a pipe would wait for ever
        raise CorruptPart("it is not a file")
    data = path.read_bytes()
    try:
        about = json.loads(pl.read_parquet_metadata(io.BytesIO(data))[_ABOUT])
        failures = tuple(Failure(str(status), str(reason), int(cases)) for status, reason, cases in about["failures"])
        info = PartInfo(str(about["name"]), str(about["unit"]), int(about["cases"]), failures, float(about["seconds"]))
        frame = pl.read_parquet(io.BytesIO(data))
    except (KeyError, TypeError, ValueError, OverflowError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
        raise CorruptPart("it cannot be read" if data else "it is empty") from None
    if info.name != name:
        raise CorruptPart("it belongs to another unit")
    if frame.height != info.cases:
        raise CorruptPart(f"it has {frame.height} cases and its footer counts {info.cases}")
    return info, frame


def _count_failures(cases: Sequence[Case]) -> tuple[Failure, ...]:
    counts = Counter((case.status, case.reason) for case in cases if case.status != "ok")
    failures: Counter[tuple[str, str]] = Counter()
    for (status, reason), count in counts.items():
        known = len(failures) < _MOST_REASONS
        failures[status, reason if known else "other reasons"] += count
    return tuple(Failure(status, reason, count) for (status, reason), count in failures.items())


# ── cases as a table ────────────────────────────────────────────────────────────────────────────────────────────


def case_frame(unit: str, cases: Sequence[Case]) -> pl.DataFrame:
    """The table of one unit's cases: the five fixed columns, then `values` in the order they were first met."""
    keys = list(dict.fromkeys(_check_key(key) for case in cases for key in case.values))
    columns = [
        pl.Series("id", [_check_text(case.id, "id") for case in cases], dtype=pl.String),
        pl.Series("cluster", [_check_text(case.cluster, "cluster") for case in cases], dtype=pl.String),
        pl.Series("status", [_check_text(case.status, "status") for case in cases], dtype=pl.String),
        pl.Series("reason", [_check_text(case.reason, "reason") for case in cases], dtype=pl.String),
        pl.Series("unit", [unit] * len(cases), dtype=pl.String),
    ]
    return pl.DataFrame([*columns, *(_column(key, cases) for key in keys)])


def _check_key(key: object) -> str:
    if not isinstance(key, str) or key in BASE:
        raise BadInput(f"values: the key {key!r} must be text other than {', '.join(BASE)}")
    return key


def _check_text(value: object, field: str) -> str:
    if not isinstance(value, str):
        raise BadInput(f"case: {field}: expected text, got {type(value).__name__}")
    return value


def _column(key: str, cases: Sequence[Case]) -> pl.Series:
    values = [_to_python(case.values.get(key), key) for case in cases]
    return pl.Series(key, values, dtype=_type_of_all(values, key))


def _to_python(value: object, key: str) -> object:
    """A plain Python value for numpy scalars and arrays, tuples and subclasses (enumerations)."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if value is None or isinstance(value, bool | bytes):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise BadInput(f"values.{key}: {value} does not fit into 64 bits")
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, list | tuple):
        return [_to_python(item, key) for item in value]
    kinds = "true or false, a number, text, bytes, or a list of them"
    raise BadInput(f"values.{key}: expected {kinds}, got {type(value).__name__}")


_SCALARS: dict[type, pl.DataType] = {
    bool: pl.Boolean(), int: pl.Int64(), float: pl.Float64(), str: pl.String(), bytes: pl.Binary(),
}  # fmt: skip


def _type_of(value: object, key: str) -> pl.DataType:
    if value is None:
        return pl.Null()
    if isinstance(value, list):
        return pl.List(_type_of_all(value, key))
    return _SCALARS[type(value)]


def _type_of_all(values: Iterable[object], key: str) -> pl.DataType:
    dtype: pl.DataType = pl.Null()
    for value in values:
        other = _type_of(value, key)
        merged = common_type(dtype, other)
        if merged is None:
            raise BadInput(f"values.{key}: all cases must have one type, got {dtype} and {other}")
        dtype = merged
    return dtype


def common_type(a: pl.DataType, b: pl.DataType) -> pl.DataType | None:
    """The type that holds both, or None.

    >>> common_type(pl.Int64(), pl.Float64()), common_type(pl.String(), pl.Float64())
    (Float64, None)
    """
    if a == b or b == pl.Null():
        return a
    if a == pl.Null():
        return b
    if {a, b} == {pl.Int64(), pl.Float64()}:
        return pl.Float64()
    if isinstance(a, pl.List) and isinstance(b, pl.List):
        inner = common_type(_inner(a), _inner(b))
        return None if inner is None else pl.List(inner)
    return None


def _inner(dtype: pl.List) -> pl.DataType:
    inner = dtype.inner
    return inner if isinstance(inner, pl.DataType) else inner()


def fit(frame: pl.DataFrame, schema: Schema) -> pl.DataFrame:
    """The frame with exactly these columns: absent ones are null, integers become floats where the schema says so."""
    return frame.select(
        pl.col(name).cast(dtype) if name in frame.columns else pl.lit(None, dtype=dtype).alias(name)
        for name, dtype in schema.items()
    )


# ── cases.parquet ───────────────────────────────────────────────────────────────────────────────────────────────


class RunSchema:
    """The columns of all parts so far, each with the unit that fixed its type."""

    def __init__(self) -> None:
        self.types: dict[str, pl.DataType] = dict(BASE)
        self._unit: dict[str, str] = {}

    def add(self, unit: str, schema: Schema) -> None:
        """Add one part's columns; types that cannot be reconciled are an error naming the column."""
        for name, dtype in schema.items():
            old = self.types.get(name, pl.Null())
            merged = common_type(old, dtype)
            if merged is None:
                raise RunError(
                    f"cases: {name}: {dtype} in unit {unit}, but {old} in unit {self._unit.get(name)};"
                    " let the worker give one type and use a new folder"
                )
            if name not in self.types or merged != old:
                self.types[name], self._unit[name] = merged, unit


def compact(folder: Path, jobs: Sequence[Job]) -> None:
    """Write `cases.parquet` from the parts of these units, in this order, with one part in memory at a time.

    Its bytes depend on the cases and their order alone: not on the executor, on the order in which units finished or
    on how often the run was killed. The parts stay, because a retry needs them.
    """
    schema = RunSchema()  # in the order of the units, because the order of columns follows from it
    for job in jobs:
        schema.add(job.unit.key, _read_schema(part_path(folder, job.name)))

    def frames(*_: Any) -> Iterator[pl.DataFrame]:
        for job in jobs:
            path = part_path(folder, job.name)
            try:
                yield fit(read_part(path, job.name)[1], schema.types)
            except CorruptPart as error:
                raise RunError(f"{path}: {error}; run the same command again") from None

    path = folder / "cases.parquet"
    source = register_io_source(frames, schema=dict(schema.types))
    with atomic_file(path) as file, keep_os_errors(file, path) as stream:
        source.sink_parquet(cast(IO[bytes], stream), row_group_size=_ROWS, maintain_order=True)


def _read_schema(path: Path) -> Schema:
    with path.open("rb") as file:  # polars takes a path as a pattern: `runs/v[1]` would be `runs/v1`
        return pl.read_parquet_schema(file)
