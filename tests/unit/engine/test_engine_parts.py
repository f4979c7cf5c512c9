from __future__ import annotations

import enum
import hashlib
import io
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.files.test_parquet_guard import nested

from surgeval.engine._columns import case_frame, common_type, fit
from surgeval.engine._compact import RunSchema
from surgeval.engine._parts import Damaged, encode, inspect, read_frame, stored_part
from surgeval.errors import BadInput, RunError
from surgeval.files import atomic_file, remove_temporary, try_parquets, write_atomically
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
        reason=st.sampled_from(["", "no answer", "\x01surgeval-digest:" + "0" * 64]),
        values=st.fixed_dictionaries({}, optional={key: st.none() | value for key, value in scalars.items()}),
    ),
    max_size=8,
)


@given(cases_strategy)
def test_a_part_gives_back_every_case_and_its_failures(cases: list[Case]) -> None:
    data = encode(NAME, "VID01\x01surgeval-digest:", cases, 1.5)
    info = inspect(data, NAME)
    assert (info.cases, info.failed) == (len(cases), sum(case.status != "ok" for case in cases))
    rows = read_frame(data).to_dicts()
    assert [row["id"] for row in rows] == [case.id for case in cases]
    for row, case in zip(rows, cases, strict=True):
        for key, value in case.values.items():
            assert row[key] == value or (value != value and row[key] != row[key])


@given(st.data())
def test_any_flipped_bit_and_any_cut_is_noticed(data: st.DataObject) -> None:
    part = bytearray(encode(NAME, "VID01", [Case("a", "VID01", values={"score": 0.25})], 0.0))
    if data.draw(st.booleans()):
        part[data.draw(st.integers(0, len(part) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    else:
        del part[data.draw(st.integers(0, len(part) - 1)) :]
    with pytest.raises(Damaged):
        inspect(bytes(part), NAME)


def test_a_part_under_another_units_name_is_not_trusted() -> None:
    with pytest.raises(Damaged, match="another unit"):
        inspect(encode(NAME, "VID01", [], 0.0), "1" * 32)


MARK, BLANK = b"\x01surgeval-digest:", b"0" * 64


def signed(data: bytes) -> bytes:
    """Bytes with the mark and the digest that fits them, as whoever hands on a run can make it."""
    return data.replace(MARK + BLANK, MARK + hashlib.blake2b(data, digest_size=32).hexdigest().encode())


def forged(about: str) -> bytes:
    buffer = io.BytesIO()
    pl.DataFrame({"id": ["a"]}).write_parquet(
        buffer, metadata={"surgeval.part": about, "surgeval.digest": (MARK + BLANK).decode()}
    )
    return signed(buffer.getvalue())


@pytest.mark.parametrize(
    "data",
    [
        signed(b"PAR1" + MARK + BLANK + b"PAR1"),
        signed(b"PAR1" + MARK + BLANK + nested(200_000)[4:]),  # ends the interpreter that reads it
        *map(forged, ["", "{}", "[]", "1e999", "[" * 99, f'{{"name": "{NAME}", "unit": 1, "cases": 1e400}}']),
        forged(f'{{"name": "{NAME}", "unit": "u", "cases": 1, "failures": [["error"]], "seconds": 0}}'),
        forged(f'{{"name": "{NAME}", "unit": "u", "cases": "x", "failures": 7, "seconds": null}}'),
    ],
)
def test_a_part_whose_digest_was_made_to_fit_is_damaged_and_nothing_else(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / f"{NAME}.parquet"
    path.write_bytes(data)
    with pytest.raises(Damaged):
        stored_part(path, NAME)


def test_many_parts_are_tried_by_one_child_and_one_that_ends_it_costs_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = 3
    for k in range(8):
        whole = encode(NAME, "VID01", [Case("a", "VID01")], 0.0)
        (tmp_path / f"{k}.parquet").write_bytes(
            signed(b"PAR1" + MARK + BLANK + nested(200_000)[4:]) if k == bad else whole
        )
    started: list[Any] = []
    begin = subprocess.run

    def counted(*given: Any, **named: Any) -> Any:
        started.append(given)
        return begin(*given, **named)

    monkeypatch.setattr(subprocess, "run", counted)
    paths = [tmp_path / f"{k}.parquet" for k in range(8)]
    try_parquets([*paths, tmp_path / "absent.parquet"])
    assert len(started) == 2  # another one after the file that ended the first
    for k, path in enumerate(paths):
        if k == bad:
            with pytest.raises(Damaged, match=r"damaged file|nested too deeply"):
                stored_part(path, NAME)
        else:
            assert stored_part(path, NAME)[1].cases == 1
    assert len(started) == 2


def test_a_part_is_a_parquet_file_like_any_other(tmp_path: Path) -> None:
    path = tmp_path / "part.parquet"
    path.write_bytes(encode(NAME, "VID01", [Case("a", "VID01")], 0.0))
    assert pl.read_parquet(path).row(0) == ("a", "VID01", "ok", "", "VID01")


def test_many_different_reasons_are_counted_without_being_kept() -> None:
    cases = [Case(str(i), "VID01", "error", f"request {i} failed") for i in range(1000)]
    info = inspect(encode(NAME, "VID01", cases, 0.0), NAME)
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
        ([{"unit": 1}], "values: found the key 'unit', expected text other than id, cluster"),
        ([{"a": {"b": 1}}], r"values\.a: found dict, expected true or false"),
        ([{"a": 2**63}], r"values\.a: found 9223372036854775808, expected an integer of at most 64 bits"),
        ([{"a": "1"}, {"a": 0.5}], r"values\.a: found both String and Float64, expected one type"),
        ([{"a": [True, 1]}], r"values\.a: found both Boolean and Int64"),
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
    with pytest.raises(RunError, match="score: found String in unit VID03, expected Float64 as in unit VID02"):
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
