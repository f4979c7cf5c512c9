"""Parquet tables of a run folder, each declared once: a pydantic model says what a row holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, Self, Union, get_args, get_origin

import polars as pl
from pydantic.fields import FieldInfo

from surgeval.errors import DataError
from surgeval.files.reading import check_regular, read_error
from surgeval.files.stored import StoredPart
from surgeval.files.tables import collect_parquet, scan_parquet_file, write_parquet_file
from surgeval.files.validate import format_value

__all__ = ["Column", "StoredTable"]

_TYPES: dict[object, pl.DataType] = {
    str: pl.String(), bool: pl.Boolean(), int: pl.Int64(), float: pl.Float64(), bytes: pl.Binary(),
}  # fmt: skip
_WORDS = {pl.String: "text", pl.Boolean: "true or false", pl.Int64: "whole numbers", pl.Float64: "numbers",
          pl.Binary: "bytes", pl.List: "lists"}  # fmt: skip
_LARGEST = 1e100  # no number of a run comes near it, and sums of squares stay finite
_BOUNDS = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}


@dataclass(frozen=True, slots=True)
class Column:
    """What the cells of a column may hold; `items` is that of a list's items. Bounds of lists and texts are lengths."""

    dtype: pl.DataType
    nullable: bool = False
    optional: bool = False
    choices: tuple[str, ...] = ()
    bounds: tuple[tuple[str, float], ...] = ()
    items: Column | None = None


class StoredTable(StoredPart):
    """A Parquet file with a fixed name; a subclass declares its columns as the fields of a row.

    A field of type `T | None` may be null, one with a default may be absent (it is null then). `Literal`, `Field(ge=…)`
    and the like say which values it may have. Numbers have to be finite. An alias names a column such as `class`.
    `limit` is in bytes, `most` in rows.

    >>> import tempfile
    >>> class ScoreRow(StoredTable, name="scores.parquet"):
    ...     video: str
    ...     score: float | None
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ScoreRow.save(pl.DataFrame({"video": ["VID01"], "score": [0.9]}), folder)
    ...     ScoreRow.load(folder).rows()
    [('VID01', 0.9)]
    >>> ScoreRow.check(pl.DataFrame({"video": ["VID01", None], "score": [0.9, 0.1]}), "scores.parquet")
    Traceback (most recent call last):
    surgeval.errors.DataError: scores.parquet: row 2: video: is missing
    """

    file_name: ClassVar[str]
    size_limit: ClassVar[int]
    most_rows: ClassVar[int]
    always_filled: ClassVar[tuple[str, ...]] = ()  # columns that need a value in every row

    def __init_subclass__(cls, name: str = "", limit: int = 1 << 33, most: int = 1 << 27, **options: Any) -> None:
        super().__init_subclass__(**options)
        if name:
            cls.file_name, cls.size_limit, cls.most_rows = name, limit, most

    @classmethod
    def columns(cls) -> dict[str, Column]:
        """Every column by its name."""
        return _columns(cls)

    @classmethod
    def dtypes(cls) -> pl.Schema:
        """The types of the columns.

        >>> StoredTable.dtypes()
        Schema()
        """
        return pl.Schema({name: column.dtype for name, column in cls.columns().items()})

    @classmethod
    def load(cls, folder: str | Path) -> pl.DataFrame:
        """The declared columns of the file in this folder. `DataError` says what does not fit."""
        path = Path(folder) / cls.file_name
        try:
            check_regular(path)
            size = path.stat().st_size
        except OSError as error:
            raise read_error(path, error) from None
        if size > cls.size_limit:
            raise DataError(path, f"{size} bytes; the limit is {cls.size_limit}", code="file-too-large")
        table = scan_parquet_file(path)
        rows = int(collect_parquet(table.select(pl.len()), path).item())
        if rows > cls.most_rows:
            raise DataError(path, f"{rows} rows; the limit is {cls.most_rows}", code="file-too-large")
        known = [name for name in table.collect_schema() if name in cls.columns()]
        return cls.check(collect_parquet(table.select(known), path), path)

    @classmethod
    def check(cls, table: pl.DataFrame, path: str | Path) -> pl.DataFrame:
        """The declared columns of a table, in their order. `DataError` for the first that does not fit."""
        columns = [_fit(table, name, column, path) for name, column in cls.columns().items()]
        checked = pl.DataFrame(columns)
        needed = cls.needs_values(checked)
        for name, column in cls.columns().items():
            _check_cells(checked[name], column, None if name in cls.always_filled else needed, path)
        return checked

    @classmethod
    def needs_values(cls, table: pl.DataFrame) -> pl.Series | None:
        """The rows that must have a value in columns that are not nullable; None for all."""
        return None

    @classmethod
    def join_rows(cls, rows: Iterable[Self]) -> pl.DataFrame:
        """Rows, as a JSON file of other columns may hold them, as a table.

        >>> StoredTable.join_rows([]).shape
        (0, 0)
        """
        listed = list(rows)
        return pl.DataFrame({name: [getattr(row, name) for row in listed] for name in cls.columns()}, cls.dtypes())

    @classmethod
    def save(cls, table: pl.DataFrame, folder: str | Path) -> None:
        """Write the declared columns of a table atomically."""
        write_parquet_file(table.select(cls.dtypes().names()).cast(cls.dtypes()), Path(folder) / cls.file_name)


@cache
def _columns(row: type[StoredTable]) -> dict[str, Column]:
    return {field.alias or name: _column(row, name, field) for name, field in row.model_fields.items()}


def _column(row: type[StoredTable], name: str, field: FieldInfo) -> Column:
    column = _parse(field.annotation, field.metadata)
    if column is None:
        raise TypeError(f"{row.__name__}.{name}: {field.annotation} is not the type of a column")
    optional = not field.is_required()
    return Column(column.dtype, column.nullable or optional, optional, column.choices, column.bounds, column.items)


def _parse(annotation: Any, metadata: Iterable[Any] = ()) -> Column | None:
    """The column of a type; None for a type that no column has."""
    origin, options = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _parse(options[0], [*metadata, *options[1:]])
    bounds = tuple(_bounds(metadata))
    if origin in (Union, UnionType):
        kinds = [option for option in options if option is not NoneType]
        column = _parse(kinds[0], metadata) if len(kinds) == 1 else None
        return column and Column(column.dtype, True, False, column.choices, column.bounds, column.items)
    if origin is Literal:
        return Column(pl.String(), choices=options)
    if origin in (list, tuple):
        items = _parse(options[0])
        return items and Column(pl.List(items.dtype), bounds=bounds, items=items)
    return Column(_TYPES[annotation], bounds=bounds) if annotation in _TYPES else None


def _bounds(metadata: Iterable[Any]) -> Iterator[tuple[str, float]]:
    for item in metadata:
        if isinstance(item, FieldInfo):
            yield from _bounds(item.metadata)
        for name in _BOUNDS:
            if hasattr(item, name):
                yield name, getattr(item, name)
        for name, bound in (("min_length", "ge"), ("max_length", "le")):
            if hasattr(item, name):
                yield bound, getattr(item, name)


def _fit(table: pl.DataFrame, name: str, column: Column, path: str | Path) -> pl.Series:
    """A column in its declared type; one without a value may have none, and numbers may be whole or of 32 bits."""
    if name not in table.columns:
        if column.optional:
            return pl.Series(name, [None] * table.height, dtype=column.dtype)
        raise DataError(path, "no such column", field=name, code="key-missing")
    values = table[name]
    if values.dtype == column.dtype:
        return values
    if not _holds(column.dtype, values.dtype):
        code = "not-text" if column.dtype == pl.String else "wrong-shape"
        raise DataError(
            path, f"expected {_describe(column.dtype)}, got a column of {values.dtype}", field=name, code=code
        )
    return values.cast(column.dtype)


def _holds(wanted: pl.DataType, stored: pl.DataType) -> bool:
    if isinstance(wanted, pl.List) and isinstance(stored, pl.List):
        return _holds(_inner(wanted), _inner(stored))
    if wanted == stored or stored == pl.Null:
        return True
    return (wanted == pl.Float64 and (stored.is_integer() or stored == pl.Float32)) or (
        wanted == pl.Int64 and stored.is_integer() and stored not in (pl.UInt64, pl.Int128, pl.UInt128)
    )


def _inner(dtype: pl.List) -> pl.DataType:
    return dtype.inner if isinstance(dtype.inner, pl.DataType) else dtype.inner()


def _describe(dtype: pl.DataType) -> str:
    if isinstance(dtype, pl.List):
        return f"lists of {_describe(_inner(dtype))}"
    return _WORDS[type(dtype)]


def _check_cells(values: pl.Series, column: Column, needed: pl.Series | None, path: str | Path) -> None:
    empty = values.is_null()
    if not column.nullable and empty.any():
        absent = empty if needed is None else empty & needed
        if absent.any():
            raise DataError(path, "is missing", record=_row(absent), field=values.name, code="key-missing")
    for bad, sentence, code in _faults(values, column):
        if bad.any():
            at = int(bad.arg_max() or 0)
            value = values[at].to_list() if isinstance(values[at], pl.Series) else values[at]
            raise DataError(
                path, f"expected {sentence}, got {format_value(value)}", record=_row(bad), field=values.name, code=code
            )


def _row(bad: pl.Series) -> str:
    return f"row {int(bad.arg_max() or 0) + 1}"


def _faults(values: pl.Series, column: Column) -> Iterator[tuple[pl.Series, str, str]]:
    """The rows that break each of the rules, what is expected, and the kind of problem; null breaks none."""
    if column.choices:
        yield (
            (~values.is_in(list(column.choices))).fill_null(False),
            f"one of {', '.join(map(repr, column.choices))}",
            "wrong-value",
        )
    if column.dtype == pl.Float64:
        yield (~values.is_finite()).fill_null(False), "a finite number", "not-finite"
        yield (values.abs() > _LARGEST).fill_null(False), f"a number within ±{_LARGEST:g}", "wrong-value"
    if column.items is not None:
        for bad, words in _outside(values.list.len(), column.bounds):
            yield bad, f"a list of {words} items", "wrong-shape"
        yield from _item_faults(values, column.items)
    elif column.dtype in (pl.String, pl.Binary):
        for bad, words in _outside(values.cast(pl.Binary).bin.size(), column.bounds):
            yield bad, f"{words} bytes", "wrong-value"
    else:
        for bad, words in _outside(values, column.bounds):
            yield bad, f"a value of {words}", "wrong-value"


def _item_faults(values: pl.Series, items: Column) -> Iterator[tuple[pl.Series, str, str]]:
    rows = pl.DataFrame({"row": pl.int_range(len(values), eager=True), "item": values}).explode(
        "item", empty_as_null=False, keep_nulls=False
    )
    faults = list(_faults(rows["item"], items))
    if not items.nullable:
        faults.insert(0, (rows["item"].is_null(), "a list without empty items", "key-missing"))
    for bad, words, code in faults:
        if bad.any():
            marked = pl.zeros(len(values), pl.Int8, eager=True).scatter(rows["row"].filter(bad), 1) == 1
            yield marked, f"a list of items of which each is {words}" if code != "key-missing" else words, code


def _outside(values: pl.Series, bounds: Iterable[tuple[str, float]]) -> Iterator[tuple[pl.Series, str]]:
    tests = {"ge": values.__lt__, "gt": values.__le__, "le": values.__gt__, "lt": values.__ge__}
    for name, bound in bounds:
        yield tests[name](bound).fill_null(False), f"{_BOUNDS[name]} {bound:g}"
