"""A spreadsheet computes nothing that we wrote, and we read back what we wrote."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surgeval.files import guard, unguard
from surgeval.pages import unguarded

texts = st.lists(
    st.sampled_from(["'", "=", "+", "-", "@", "＝", "＋", "－", "＠", " ", "\u3000", "\u200b", "\ufeff", "\t", "\n",
                     "\0", "a", "1", "\xa0"]),
    max_size=6,
).map("".join) | st.text(max_size=8)  # fmt: skip


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "＝", "＋", "－", "＠", "﹦", "﹢", "﹣", "﹫"])
@pytest.mark.parametrize("before", ["", " ", "   ", "\t", "\n", "\xa0", "\u3000", "\u2009", "\u200b", "\ufeff",
                                    "\u2060", "\0", "\xad", "\u202e", " \u200b ", "\U000e0020"])  # fmt: skip
def test_a_formula_is_guarded_whatever_stands_before_its_sign(before: str, sign: str) -> None:
    assert guard(f"{before}{sign}1+1") == f"'{before}{sign}1+1"


@pytest.mark.parametrize("text", ["grasper", "", " ", "a=b", "'quoted'", "−1", "– none", "3-4", "手＝", "it's", "'"])
def test_other_text_stays_as_it_is(text: str) -> None:
    assert guard(text) == text == unguard(text)


@given(text=texts)
def test_the_guard_is_taken_off_exactly(text: str) -> None:
    assert unguard(guard(text)) == text
    assert guard(text) in (text, f"'{text}")


@given(first=texts, second=texts)
def test_two_texts_stay_two_cells(first: str, second: str) -> None:
    assert (guard(first) == guard(second)) == (first == second)


def test_a_column_is_read_back_with_its_missing_cells() -> None:
    column = pl.Series("video", ["=1", "'=1", None, "VID01"])
    guarded = pl.Series("video", [None if text is None else guard(text) for text in column])
    assert unguarded(guarded).to_list() == column.to_list()
    assert unguarded(pl.Series("video", [None], dtype=pl.String)).to_list() == [None]
