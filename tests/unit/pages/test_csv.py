"""CSV files that keep their numbers and give a spreadsheet nothing to run."""

from __future__ import annotations

import csv
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surgeval.errors import BadInput
from surgeval.pages import save_tables


def rows(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@sum", "\tx", "\rx", '=HYPERLINK("http://x","y")'])
def test_text_that_a_spreadsheet_would_compute_gets_an_apostrophe(tmp_path: Path, text: str) -> None:
    (path,) = save_tables({"t": pl.DataFrame({text: [text, "hook"], "n": [-1, 2]})}, tmp_path)
    assert rows(path) == [[f"'{text}", "n"], [f"'{text}", "-1"], ["hook", "2"]]


@pytest.mark.parametrize("name", ["../out", "a/b", "", "A", "con.txt", "-x"])
def test_a_table_name_cannot_leave_the_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInput, match="table"):
        save_tables({name: pl.DataFrame({"a": [1]})}, tmp_path / "tables")
    assert not (tmp_path / "tables").exists()


def test_a_folder_that_is_a_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "tables").write_text("")
    with pytest.raises(BadInput, match="tables cannot be written"):
        save_tables({"t": pl.DataFrame({"a": [1]})}, tmp_path / "tables")


@given(cells=st.lists(st.text(st.characters(codec="utf-8"), max_size=12), min_size=1, max_size=5))
def test_every_cell_comes_back_but_for_the_apostrophe(
    tmp_path_factory: pytest.TempPathFactory, cells: list[str]
) -> None:
    table = pl.DataFrame({"n": range(len(cells)), "text": cells})
    (path,) = save_tables({"t": table}, tmp_path_factory.mktemp("csv"))
    back = [row[1] for row in rows(path)[1:]]
    assert [text.removeprefix("'") for text in back] == [text.removeprefix("'") for text in cells]
    assert not any(text.startswith(("=", "+", "-", "@", "\t", "\r")) for text in back)
