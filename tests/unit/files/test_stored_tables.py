"""Parquet tables of a run folder: what a save wrote a load returns, and anything else is one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import polars as pl
import pytest
from pydantic import Field

from surgeval.errors import DataError
from surgeval.files import StoredTable

Share = Annotated[float, Field(ge=0, le=1)]


class BoxRow(StoredTable, name="boxes.parquet", limit=20_000, most=100):
    video: str
    side: Literal["label", "prediction"]
    score: Share
    area: float | None
    shares: Annotated[list[Share], Field(min_length=1)] | None
    frame: int = 0


GOOD: dict[str, list[Any]] = {
    "video": ["VID01", "VID02"],
    "side": ["label", "prediction"],
    "score": [0.5, 1.0],
    "area": [None, 3.0],
    "shares": [[0.1, 0.9], None],
    "frame": [1, 2],
}


def test_a_load_returns_what_a_save_wrote(tmp_path: Path) -> None:
    table = pl.DataFrame(GOOD)
    BoxRow.save(table.with_columns(colour=pl.lit("red")), tmp_path)
    assert BoxRow.load(tmp_path).equals(table)


def test_an_absent_column_is_null_where_its_field_has_a_default() -> None:
    table = pl.DataFrame({**GOOD, "colour": ["red", "blue"]}).drop("frame")
    assert BoxRow.check(table, "t")["frame"].to_list() == [None, None]


def test_whole_numbers_and_empty_columns_are_numbers() -> None:
    table = pl.DataFrame({**GOOD, "score": [0, 1], "area": [None, None]})
    checked = BoxRow.check(table, "t")
    assert checked.schema == BoxRow.dtypes()
    assert checked["score"].to_list() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("change", "sentence", "code"),
    [
        ({"video": ["VID01", None]}, "t: row 2: video: is missing", "key-missing"),
        ({"video": [1, 2]}, "t: video: expected text, got a column of Int64", "not-text"),
        (
            {"side": ["label", "floor"]},
            "t: row 2: side: expected one of 'label', 'prediction', got 'floor'",
            "wrong-value",
        ),
        ({"score": [0.5, 2.0]}, "t: row 2: score: expected a value of at most 1, got 2.0", "wrong-value"),
        ({"score": [float("nan"), 0.5]}, "t: row 1: score: expected a finite number, got NaN", "not-finite"),
        ({"score": ["high", "low"]}, "t: score: expected numbers, got a column of String", "wrong-shape"),
        ({"area": [float("inf"), 0.5]}, "t: row 1: area: expected a finite number, got Infinity", "not-finite"),
        ({"area": [1e308, 0.5]}, "t: row 1: area: expected a number within ±1e+100, got 1e+308", "wrong-value"),
        ({"shares": [[], [0.5]]}, "t: row 1: shares: expected a list of at least 1 items, got []", "wrong-shape"),
        ({"shares": [[0.1, 3.0], [0.5]]}, "t: row 1: shares: ", "wrong-value"),
        ({"shares": [[0.1], [0.5, None]]}, "t: row 2: shares: expected a list without empty items", "key-missing"),
        ({"frame": [0.5, 1.5]}, "t: frame: expected whole numbers, got a column of Float64", "wrong-shape"),
    ],
)
def test_a_cell_that_does_not_fit_is_named(change: dict[str, list[object]], sentence: str, code: str) -> None:
    with pytest.raises(DataError) as caught:
        BoxRow.check(pl.DataFrame({**GOOD, **change}, strict=False), "t")
    assert str(caught.value).startswith(sentence)
    assert caught.value.code == code


def test_an_absent_column_is_named() -> None:
    with pytest.raises(DataError, match="t: score: no such column"):
        BoxRow.check(pl.DataFrame(GOOD).drop("score"), "t")


@pytest.mark.parametrize("rows", [101, 5000])
def test_a_file_over_its_limits_is_refused(tmp_path: Path, rows: int) -> None:
    table = pl.DataFrame({name: values[:1] * rows for name, values in GOOD.items()}).with_columns(
        area=pl.int_range(rows).cast(pl.Float64).sin()
    )
    BoxRow.save(table, tmp_path)
    with pytest.raises(DataError, match="the limit is") as caught:
        BoxRow.load(tmp_path)
    assert caught.value.code == "file-too-large"


@pytest.mark.parametrize("damage", ["absent", "folder", "text"])
def test_what_is_no_table_is_refused(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "boxes.parquet"
    if damage == "folder":
        path.mkdir()
    elif damage == "text":
        path.write_text("video,score\n")
    with pytest.raises(DataError, match=r"boxes\.parquet"):
        BoxRow.load(tmp_path)


def test_a_type_that_no_column_has_is_a_mistake_of_the_declaration() -> None:
    class OddRow(StoredTable):
        video: dict[str, int]

    with pytest.raises(TypeError, match=r"OddRow\.video"):
        OddRow.columns()
