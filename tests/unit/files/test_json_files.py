"""JSON that nobody vouches for: whatever is wrong is one sentence, in bounded time."""

from __future__ import annotations

import json
import math
import os
import tracemalloc
from pathlib import Path

import pytest

from surgeval.errors import DataError
from surgeval.files import (
    MAX_DEPTH,
    BrokenJson,
    parse_json,
    read_bounded,
    read_json_file,
    read_json_object,
    too_deep,
)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "cut off at line 1 column 1"),
        (b'{"a": [1,\n2', "cut off at line 2 column 2"),
        (b'{"a" 1}', "not JSON at line 1 column 6"),
        (b"\xff\xfe", "byte 0xff at offset 0, which is no UTF-8 text"),
        (b"[" * 100_000, f"nesting deeper than {MAX_DEPTH} levels"),
        (b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), f"nesting deeper than {MAX_DEPTH} levels"),
        (b'{"a":' * 500 + b"1" + b"}" * 500, f"nesting deeper than {MAX_DEPTH} levels"),
        (b'{"mean": 1' + b"0" * 400 + b"}", "a number with 401 digits"),
        (b'{"mean": -1' + b"0" * 400 + b"}", "a number with 401 digits"),
        (b"1" * 10_000, "a number with 10000 digits"),
        (b'{"name": "\\ud800"}', "text that is no Unicode"),
        (b'{"\\udfff": 1}', "text that is no Unicode"),
        (b" " * 2000, "2000 bytes, expected a label file of at most 1000 bytes"),
    ],
)
def test_what_is_wrong_with_a_file_is_one_sentence(tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / "labels.json"
    path.write_bytes(data)
    limit = 1000 if words.startswith("2000") else 1 << 20
    with pytest.raises(DataError) as error:
        read_json_file(path, limit=limit)
    assert words in str(error.value)
    assert str(error.value).startswith(f"{path}: found ")
    assert "expected a label file" in str(error.value)
    assert len(str(error.value)) < 500


def test_ordinary_json_is_read_as_the_standard_library_reads_it(tmp_path: Path) -> None:
    value = {"a": [1, -2, 3.5, 1e300, True, None, "x[[{{", 'q"\\[' * 100], "b": {"c": [[]] * 1000}, "ü": 10**299}
    path = tmp_path / "a.json"
    path.write_text("\ufeff" + json.dumps(value), encoding="utf-8")
    assert read_json_file(path) == value


def test_surrogate_pairs_are_ordinary_text() -> None:
    assert parse_json('["\\ud83d\\ude00", "\\\\ud800"]') == ["\U0001f600", "\\ud800"]
    assert parse_json('["\\ud800", 1' + "0" * 400 + "]", lenient=True) == ["\ud800", 10**400]


def test_the_deepest_allowed_nesting_passes() -> None:
    text = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert parse_json(text) == json.loads(text)
    with pytest.raises(BrokenJson, match="nesting"):
        parse_json(f"[{text}]")


def test_brackets_in_texts_are_no_nesting() -> None:
    value = ["[" * 1000, '"[' * 1000, "\\" * 7 + "[" * 100, ["{"] * 100]
    assert parse_json(json.dumps(value)) == value


def test_repeated_keys_and_nan_are_refused_where_asked(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"a": 1, "b": {"x": NaN, "x": 2}}')
    assert read_json_object(path)["b"] == {"x": 2}
    with pytest.raises(DataError, match="found the key 'x' twice in one object"):
        read_json_object(path, distinct=True)
    with pytest.raises(DataError, match="found the value NaN"):
        read_json_object(path, finite=True)


@pytest.mark.parametrize(("text", "kind"), [("[]", "list"), ("1", "number"), ('"a"', "text"), ("null", "null")])
def test_what_is_no_object_is_named(tmp_path: Path, text: str, kind: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(DataError, match=f"found a JSON {kind}, expected folds: an object"):
        read_json_object(tmp_path / "a.json")


def test_pipes_devices_and_folders_are_refused_instead_of_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "endless").symlink_to("/dev/zero")
    for name, words in (("pipe", "a named pipe"), ("endless", "a named pipe, a device"), (".", "a folder"),
                        ("no\0name", "no such file")):  # fmt: skip
        with pytest.raises(DataError, match=f"found {words}"):
            read_bounded(tmp_path / name, 10)


def test_a_file_that_grows_while_it_is_read_stays_bounded() -> None:
    with pytest.raises(DataError, match="expected a status of at most 10 bytes"):
        read_bounded(Path("/proc/self/status"), 10)  # its size is given as 0


def test_a_long_text_costs_no_more_than_its_length() -> None:
    text = json.dumps([[]] * 100 + ["a" * 2_000_000])
    tracemalloc.start()
    try:
        assert not too_deep(text, 0, len(text))
        assert tracemalloc.get_traced_memory()[1] < 20_000_000  # 240 MB where every letter is remembered
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("number", ["1e400", "-1e400", "1" * 280 + "e100"])
def test_a_number_as_large_as_infinity_is_none_where_numbers_are_finite(number: str) -> None:
    assert math.isinf(parse_json(f"[{number}]")[0])
    with pytest.raises(BrokenJson, match="which is too large"):
        parse_json(f"[{number}]", finite=True)
