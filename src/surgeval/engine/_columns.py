"""Cases as a typed table, and one schema for all parts of a run.

The types are few on purpose: true/false, 64-bit integer, 64-bit float, text, bytes and lists of them. Missing values
are null; an integer column that meets a float becomes float; any other disagreement is an error that names the column.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import polars as pl

from surgeval.errors import BadInput
from surgeval.records import Case

__all__ = ["BASE", "Schema", "case_frame", "common_type", "fit"]

Schema = Mapping[str, pl.DataType]
BASE: dict[str, pl.DataType] = {name: pl.String() for name in ("id", "cluster", "status", "reason", "unit")}


def case_frame(unit: str, cases: Sequence[Case]) -> pl.DataFrame:
    """The table of one unit's cases: the five fixed columns, then `values` in the order they were first met."""
    keys = list(dict.fromkeys(_key(key) for case in cases for key in case.values))
    columns = [
        pl.Series("id", [_text(case.id, "id") for case in cases], dtype=pl.String),
        pl.Series("cluster", [_text(case.cluster, "cluster") for case in cases], dtype=pl.String),
        pl.Series("status", [_text(case.status, "status") for case in cases], dtype=pl.String),
        pl.Series("reason", [_text(case.reason, "reason") for case in cases], dtype=pl.String),
        pl.Series("unit", [unit] * len(cases), dtype=pl.String),
    ]
    return pl.DataFrame([*columns, *(_column(key, cases) for key in keys)])


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


def fit(frame: pl.DataFrame, schema: Schema) -> pl.DataFrame:
    """The frame with exactly these columns: absent ones are null, integers become floats where the schema says so."""
    return frame.select(
        pl.col(name).cast(dtype) if name in frame.columns else pl.lit(None, dtype=dtype).alias(name)
        for name, dtype in schema.items()
    )


def _column(key: str, cases: Sequence[Case]) -> pl.Series:
    values = [_plain(case.values.get(key), key) for case in cases]
    return pl.Series(key, values, dtype=_type_of_all(values, key))


def _plain(value: object, key: str) -> object:
    """Numpy scalars and arrays, tuples and subclasses (enumerations) as the plain Python values they stand for."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if value is None or isinstance(value, bool | bytes):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise BadInput(f"values.{key}: found {value}, expected an integer of at most 64 bits")
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, list | tuple):
        return [_plain(item, key) for item in value]
    kinds = "true or false, a number, text, bytes, or a list of them"
    raise BadInput(f"values.{key}: found {type(value).__name__}, expected {kinds}")


def _type_of(value: object, key: str) -> pl.DataType:
    if value is None:
        return pl.Null()
    if isinstance(value, list):
        return pl.List(_type_of_all(value, key))
    return _SCALARS[type(value)]


_SCALARS: dict[type, pl.DataType] = {
    bool: pl.Boolean(), int: pl.Int64(), float: pl.Float64(), str: pl.String(), bytes: pl.Binary(),
}  # fmt: skip


def _type_of_all(values: Iterable[object], key: str) -> pl.DataType:
    dtype: pl.DataType = pl.Null()
    for value in values:
        other = _type_of(value, key)
        merged = common_type(dtype, other)
        if merged is None:
            raise BadInput(f"values.{key}: found both {dtype} and {other}, expected one type in all cases")
        dtype = merged
    return dtype


def _inner(dtype: pl.List) -> pl.DataType:
    inner = dtype.inner
    return inner if isinstance(inner, pl.DataType) else inner()


def _key(key: object) -> str:
    if not isinstance(key, str) or key in BASE:
        raise BadInput(f"values: found the key {key!r}, expected text other than {', '.join(BASE)}")
    return key


def _text(value: object, field: str) -> str:
    if not isinstance(value, str):
        raise BadInput(f"case: {field}: found {type(value).__name__}, expected text")
    return value
