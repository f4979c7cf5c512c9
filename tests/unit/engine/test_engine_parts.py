from __future__ import annotations

import enum
import io
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surgeval.engine.parts import CorruptPart, RunSchema, case_frame, common_type, encode_part, fit, read_part
from surgeval.errors import BadInput, RunError
from surgeval.files import atomic_file, remove_temporary, write_atomically
from surgeval.records import Case

NAME = "0" * 32
scalars = {
    "flag": st.booleans(),
    "count": st.integers(-(2**63), 2**63 - 1),
    "score": st.floats(),
    "text": st.text(st.characters(exclude_categories=["Cs"])),
    "curve": st.lists(st.floats(allow_nan=False)),
}
cases_strategy = st.lists(
    st.builds(
        Case,
        id=st.text(st.characters(exclude_categories=["Cs"])),
        cluster=st.sampled_from(["VID01", "VID02"]),
        status=st.sampled_from(["ok", "error"]),
        reason=st.sampled_from(["", "no answer", "no\nframe"]),
        values=st.fixed_dictionaries({}, optional={key: st.none() | value for key, value in scalars.items()}),
    ),
    max_size=8,
)


@given(cases_strategy)
def test_a_part_gives_back_every_case_and_its_failures(
    tmp_path_factory: pytest.TempPathFactory, cases: list[Case]
) -> None:
    path = tmp_path_factory.getbasetemp() / "part.parquet"
    part = encode_part(NAME, "VID01", cases, 1.5)
    path.write_bytes(part.data)
    info, frame = read_part(path, NAME)
    assert (info.cases, info.failed) == (len(cases), sum(case.status != "ok" for case in cases))
    assert (info, frame.schema) == (part.info, part.schema)
    rows = frame.to_dicts()
    assert [row["id"] for row in rows] == [case.id for case in cases]
    for row, case in zip(rows, cases, strict=True):
        for key, value in case.values.items():
            assert row[key] == value or (value != value and row[key] != row[key])


def test_a_part_that_is_cut_short_is_corrupt(tmp_path: Path) -> None:
    path = tmp_path / "part.parquet"
    data = encode_part(NAME, "VID01", [Case("a", "VID01", values={"score": 0.25})], 0.0).data
    for length in range(len(data)):
        path.write_bytes(data[:length])
        with pytest.raises(CorruptPart):
            read_part(path, NAME)


def test_a_part_under_another_units_name_is_corrupt(tmp_path: Path) -> None:
    path = tmp_path / "part.parquet"
    path.write_bytes(encode_part(NAME, "VID01", [], 0.0).data)
    with pytest.raises(CorruptPart, match="another unit"):
        read_part(path, "1" * 32)


ABOUT = {"name": NAME, "unit": "u", "cases": 1, "failures": [], "seconds": 0.0}


@pytest.mark.parametrize(
    "about",
    [
        *("", "{}", "[]", "1e999", "[" * 99),
        *(json.dumps({**ABOUT, **changed}) for changed in (
            {"failures": [["error"]]}, {"cases": "x"}, {"failures": 7}, {"seconds": None}, {"cases": 2},
        )),
    ],
)  # fmt: skip
def test_a_part_whose_footer_does_not_fit_is_corrupt(tmp_path: Path, about: str) -> None:
    buffer = io.BytesIO()
    pl.DataFrame({"id": ["a"]}).write_parquet(buffer, metadata={"surgeval.part": about})
    path = tmp_path / "part.parquet"
    path.write_bytes(buffer.getvalue())
    with pytest.raises(CorruptPart):
        read_part(path, NAME)


def test_a_part_is_a_parquet_file_like_any_other(tmp_path: Path) -> None:
    path = tmp_path / "part.parquet"
    path.write_bytes(encode_part(NAME, "VID01", [Case("a", "VID01")], 0.0).data)
    assert pl.read_parquet(path).row(0) == ("a", "VID01", "ok", "", "VID01")


def test_many_different_reasons_are_counted_without_being_kept() -> None:
    cases = [Case(str(i), "VID01", "error", f"request {i} failed") for i in range(1000)]
    info = encode_part(NAME, "VID01", cases, 0.0).info
    assert info.failed == 1000
    assert len(info.failures) == 201 and info.failures[-1].reason == "other reasons"


class Verb(enum.StrEnum):
    CUT = "cut"


def test_numpy_values_and_enumerations_are_stored_as_what_they_stand_for() -> None:
    values = {"a": np.float32(0.5), "b": np.int16(3), "c": np.array([[1, 2]]), "d": Verb.CUT, "e": np.bool_(True)}
    row = case_frame("u", [Case("a", "c", values=values)]).to_dicts()[0]
    assert [row[key] for key in "abcde"] == [0.5, 3, [[1, 2]], "cut", True]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([{"unit": 1}], "values: the key 'unit' must be text other than id, cluster"),
        ([{"a": {"b": 1}}], r"values\.a: expected true or false, .*got dict"),
        ([{"a": 2**63}], r"values\.a: 9223372036854775808 does not fit into 64 bits"),
        ([{"a": "1"}, {"a": 0.5}], r"values\.a: all cases must have one type, got String and Float64"),
        ([{"a": [True, 1]}], r"values\.a: .* got Boolean and Int64"),
    ],
)
def test_values_a_table_cannot_hold_are_named(values: list[dict[str, object]], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        case_frame("u", [Case("a", "c", values=value) for value in values])


types = st.recursive(
    st.sampled_from([pl.Null(), pl.Boolean(), pl.Int64(), pl.Float64(), pl.String(), pl.Binary()]),
    lambda inner: inner.map(pl.List),
    max_leaves=3,
)


@given(types, types, types)
def test_the_common_type_does_not_depend_on_the_order_of_parts(a: pl.DataType, b: pl.DataType, c: pl.DataType) -> None:
    assert common_type(a, b) == common_type(b, a)
    ab, bc = common_type(a, b), common_type(b, c)
    if ab is not None and bc is not None:
        assert common_type(ab, c) == common_type(a, bc)


def test_columns_a_part_lacks_become_null() -> None:
    frame = case_frame("u", [Case("a", "c", values={"n": 1, "empty": []})])
    schema = {"id": pl.String(), "m": pl.Boolean(), "n": pl.Float64(), "empty": pl.List(pl.String())}
    assert fit(frame, schema).rows() == [("a", None, 1.0, [])]


def test_parts_that_disagree_name_the_column_and_both_units() -> None:
    schema = RunSchema()
    schema.add("VID01", {"score": pl.Null()})
    schema.add("VID02", {"score": pl.Float64()})
    with pytest.raises(RunError, match="score: String in unit VID03, but Float64 in unit VID02"):
        schema.add("VID03", {"score": pl.String()})


def test_a_file_that_fails_half_way_leaves_the_old_one_and_no_trace(tmp_path: Path) -> None:
    path = tmp_path / "cases.parquet"
    write_atomically(path, b"old")

    def half() -> None:
        with atomic_file(path) as file:
            file.write(b"ne")
            raise OSError("pulled plug")

    with pytest.raises(OSError, match="pulled plug"):
        half()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_only_temporary_files_are_removed(tmp_path: Path) -> None:
    for name in (".a.parquet.tmp", "a.parquet", ".hidden", "notes.tmp"):
        (tmp_path / name).touch()
    assert remove_temporary(tmp_path, tmp_path / "absent") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == [".hidden", "a.parquet", "notes.tmp"]
