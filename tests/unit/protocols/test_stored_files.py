"""Every declared file of a run folder: what fits is read, and anything else is one sentence about its place.

The examples and the damage are made from the declarations, so a new file is tested as soon as it is declared.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import polars as pl
import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

import surgeval
from surgeval.errors import DataError
from surgeval.files import Column, StoredFile, StoredTable

SOURCE = Path(surgeval.__file__).parent
DECLARING = re.compile(r"^class \w+\((?:StoredFile|StoredTable|CaseRow|CausalCase|_Case)\b", re.MULTILINE)
TEXT = "a"


def modules() -> list[str]:
    """The modules that declare a stored file."""
    paths = [path for path in SOURCE.rglob("*.py") if DECLARING.search(path.read_text(encoding="utf-8"))]
    return [".".join(("surgeval", *path.relative_to(SOURCE).with_suffix("").parts)) for path in sorted(paths)]


def declared(base: type[Any]) -> Iterator[type[Any]]:
    for one in base.__subclasses__():
        if one.__module__.startswith("surgeval.") and hasattr(one, "file_name"):
            yield one
        yield from declared(one)


for name in modules():
    import_module(name)
FILES = sorted(set(declared(StoredFile)), key=lambda one: (one.__module__, one.__name__))
TABLES = sorted(set(declared(StoredTable)), key=lambda one: (one.__module__, one.__name__))


def test_the_files_of_all_protocols_are_tried_here() -> None:
    names = {one.file_name for one in (*FILES, *TABLES)}
    assert {"run.json", "scores.json", "details.json", "folds.json", "fold.json", "ablation.json", "page.json",
            "cases.parquet", "objects.parquet", "ranked.parquet", "counts.parquet", "replicates.parquet",
            "pictures.parquet"} <= names  # fmt: skip


# examples


def example(kind: Any) -> Any:
    """A JSON value of this type."""
    origin, options = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return example(options[0])
    if origin in (Union, UnionType):
        return None if NoneType in options else example(options[0])
    if origin is Literal:
        return options[0]
    if origin in (list, tuple, Sequence):
        several = origin is tuple and Ellipsis not in options
        return [example(option) for option in (options if several else options[:1])]
    if origin in (dict, Mapping):
        return {example(options[0]): example(options[1])}
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return {field.alias or name: example(field.annotation) for name, field in kind.model_fields.items()}
    if dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind, include_extras=True)
        return {field.name: example(hints[field.name]) for field in dataclasses.fields(kind)}
    return {str: TEXT, int: 1, float: 0.5, bool: True, Any: TEXT, bytes: TEXT, NoneType: None}.get(kind, TEXT)


def write(file: type[StoredFile], content: object, folder: Path) -> None:
    (folder / file.file_name).write_text(json.dumps(content), encoding="utf-8")


def whole(file: type[StoredFile]) -> dict[str, Any]:
    content = example(file)
    if "convention" in content.get("settings", {}):  # needed by detection
        content["settings"] |= {"convention": "coco", "ties": "free"}
        content["numbers"][0]["metric"] = "mAP50"
    return {"format": file.file_format, **content}


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.__module__.split('.')[-2]}.{file.__name__}")
def test_each_field_of_a_file_is_checked(file: type[StoredFile], tmp_path: Path) -> None:
    content = whole(file)
    write(file, content, tmp_path)
    loaded = file.load(tmp_path)
    loaded.save(tmp_path)
    assert file.load(tmp_path).model_dump(mode="json") == loaded.model_dump(mode="json")
    write(file, {**content, "format": 99}, tmp_path)
    with pytest.raises(DataError, match="Written by an earlier version; run again"):
        file.load(tmp_path)
    for place, field in fields(file):
        for damage in damages(field):
            damaged = json.loads(json.dumps(content))
            holder = damaged
            for key in place[:-1]:
                holder = holder[key]
            damage(holder, place[-1])
            write(file, damaged, tmp_path)
            with pytest.raises(DataError) as caught:
                file.load(tmp_path)
            assert caught.value.path == str(tmp_path / file.file_name)
            assert caught.value.code
            assert str(place[-1]) in (caught.value.field or "") or place[-1] in caught.value.sentence
            assert "\n" not in str(caught.value)


def fields(model: type[BaseModel], place: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], FieldInfo]]:
    """Every field of a model and of the models in it, with its keys."""
    for name, field in model.model_fields.items():
        yield (*place, name), field
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from fields(field.annotation, (*place, name))


def damages(field: FieldInfo) -> Iterator[Callable[[dict[str, Any], str], None]]:
    """Changes of a field that its declaration does not allow: taken away, null, of another type, out of range."""
    if field.is_required():
        yield lambda holder, key: holder.pop(key)
    kind: TypeAdapter[Any] = TypeAdapter(
        Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation  # type: ignore[arg-type]
    )
    odd: tuple[Any, ...] = (None, [{"odd": []}], {"odd": [{}]}, True, -(10**9), -1e300)
    for value in odd:
        try:
            kind.validate_json(json.dumps(value), strict=True)
        except ValidationError:
            yield lambda holder, key, value=value: holder.update({key: value})  # type: ignore[misc]


# tables


def cell(column: Column) -> Any:
    """A value that fits; all bounds of the declared columns hold for it."""
    if column.items is not None:
        return [cell(column.items)]
    if column.choices:
        return column.choices[0]
    return {pl.String: TEXT, pl.Boolean: True, pl.Int64: 1, pl.Float64: 0.5, pl.Binary: b"a"}[type(column.dtype)]


def odd_cells(column: Column) -> Iterator[tuple[str, Any]]:
    """Cells of the right type that do not fit."""
    if not column.nullable:
        yield "null", None
    if column.choices:
        yield "choice", "odd"
    if column.dtype == pl.Float64:
        yield from (("infinite", float("inf")), ("NaN", float("nan")))
    for name, bound in column.bounds if column.dtype.is_numeric() else ():
        yield name, bound - 1 if name in ("ge", "gt") else 2 * abs(bound) + 1
    for kind, value in odd_cells(column.items) if column.items is not None else ():
        yield f"item {kind}", [value]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: f"{table.__module__.split('.')[-2]}.{table.__name__}")
def test_each_column_of_a_table_is_checked(table: type[StoredTable], tmp_path: Path) -> None:
    columns = table.columns()
    row = {name: "ok" if name == "status" else cell(column) for name, column in columns.items()}
    good = pl.DataFrame({name: [value] * 2 for name, value in row.items()}, table.dtypes())
    path = tmp_path / table.file_name
    table.save(good, tmp_path)
    assert pl.read_parquet(path).equals(good) == (table.check(good, path).equals(good))
    for name, column in columns.items():
        other = pl.lit([1] if column.items is None else 1).alias(name)
        if column.optional:
            assert table.check(good.drop(name), path)[name].is_null().all()
        else:
            with pytest.raises(DataError, match=f"{name}: no such column"):
                table.check(good.drop(name), path)
        with pytest.raises(DataError, match=f"{name}: expected"):
            table.check(good.with_columns(other), path)
        for kind, value in odd_cells(column):
            change = pl.Series(name, [row[name], value], column.dtype, strict=False)
            with pytest.raises(DataError) as caught:
                table.check(good.with_columns(change), path)
            assert (caught.value.record, caught.value.field, kind) == ("row 2", name, kind)
            assert caught.value.code
