"""Files from outside: regular ones up to a limit, JSON that is one value, and hashes that stay what they were."""

from __future__ import annotations

import hashlib
import json
import math
import os
import signal
from pathlib import Path

import pytest

from surgeval.detector.inference import detector_digest
from surgeval.errors import DataError
from surgeval.files import (
    BrokenJson,
    copy_atomically,
    file_digest,
    parse_json,
    read_bounded,
    read_json_file,
    read_json_lines,
    read_json_object,
)
from surgeval.models.weights import digest

WEIGHTS = b"\0\1weights\xff" * 100_000  # more than a chunk


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    (tmp_path / "net.onnx").write_bytes(WEIGHTS)
    return tmp_path / "net.onnx"


def test_pipes_devices_and_folders_are_refused_instead_of_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "endless").symlink_to("/dev/zero")
    signal.alarm(60)  # ends a run that waits
    for name, words, code in (("pipe", "a named pipe", "file-not-regular"), (".", "a folder", "file-missing"),
                              ("endless", "a named pipe, a device", "file-not-regular"),
                              ("none", "no such file", "file-missing"),
                              ("no\0name", "no such file", "file-missing")):  # fmt: skip
        for read in (lambda path: read_bounded(path, 10), file_digest):
            with pytest.raises(DataError, match=words) as caught:
                read(tmp_path / name)
            assert caught.value.code == code
    with pytest.raises(DataError, match="a named pipe"):
        copy_atomically(tmp_path / "pipe", tmp_path / "copy")
    signal.alarm(0)
    assert not (tmp_path / "copy").exists()


def test_a_file_over_the_limit_is_refused_also_if_it_hides_its_size(tmp_path: Path) -> None:
    (tmp_path / "labels.json").write_bytes(b" " * 2000)
    with pytest.raises(DataError, match=r"labels\.json: 2000 bytes; the limit is 1000") as caught:
        read_json_file(tmp_path / "labels.json", limit=1000)
    assert caught.value.code == "file-too-large"
    with pytest.raises(DataError, match="the limit is 10"):
        read_bounded("/proc/self/status", 10)  # its size is given as 0


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "cut off at line 1 column 1"),
        (b'{"a": [1,\n2', "cut off at line 2 column 2"),
        (b'{"a" 1}', "not valid JSON at line 1 column 6"),
        (b"\xff\xfe", "not valid UTF-8: byte 0xff at offset 0"),
        (b"[" * 100_000, "nested too deeply"),
        (b"1" * 10_000, "thousands of digits"),
    ],
)
def test_what_is_wrong_with_a_file_is_one_sentence(tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / "labels.json"
    path.write_bytes(data)
    with pytest.raises(DataError) as error:
        read_json_file(path)
    assert words in error.value.sentence
    assert (error.value.path, error.value.code) == (str(path), "file-broken")
    assert len(str(error.value)) < 500


def test_ordinary_json_is_read_as_the_standard_library_reads_it(tmp_path: Path) -> None:
    value = {"a": [1, -2, 3.5, 1e300, True, None, "x[[{{", 'q"\\[' * 100], "b": {"c": [[]] * 1000}, "ü": 10**299}
    path = tmp_path / "a.json"
    path.write_text("\ufeff" + json.dumps(value), encoding="utf-8")
    assert read_json_file(path) == value


def test_surrogate_pairs_are_ordinary_text_and_halves_are_spelled_out() -> None:
    assert parse_json('["\\ud83d\\ude00", "\\\\ud800"]') == ["\U0001f600", "\\ud800"]
    assert parse_json('{"clip \\ud800": ["\\udfff", NaN]}').keys() == {"clip \\ud800"}


def test_repeated_keys_and_nan_are_refused_where_asked(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"a": 1, "b": {"x": NaN, "x": 2}}')
    assert read_json_object(path)["b"] == {"x": 2}
    with pytest.raises(DataError, match="the key 'x' occurs twice in one object"):
        read_json_object(path, distinct=True)
    with pytest.raises(DataError, match="the number NaN is not allowed"):
        read_json_object(path, finite=True)


@pytest.mark.parametrize("number", ["1e400", "-1e400", "1" * 280 + "e100"])
def test_a_number_as_large_as_infinity_is_refused_where_numbers_are_finite(number: str) -> None:
    assert math.isinf(parse_json(f"[{number}]")[0])
    with pytest.raises(BrokenJson, match="is too large"):
        parse_json(f"[{number}]", finite=True)


@pytest.mark.parametrize("text", ["[]", "1", '"a"', "null"])
def test_a_file_that_holds_no_object_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(DataError, match="expected a JSON object"):
        read_json_object(tmp_path / "a.json")


def test_a_broken_line_is_named_by_its_number(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"epoch": 1}\n\n{"epoch"')
    with pytest.raises(DataError, match="line 3: cut off"):
        list(read_json_lines(tmp_path / "a.jsonl"))


def test_a_file_s_hash_is_that_of_sha256sum_and_several_are_read_as_one(weights: Path, tmp_path: Path) -> None:
    (tmp_path / "head").write_bytes(b"head")
    assert file_digest(weights) == hashlib.sha256(WEIGHTS).hexdigest()
    assert file_digest(weights, tmp_path / "head") == hashlib.sha256(WEIGHTS + b"head").hexdigest()
    assert file_digest() == hashlib.sha256().hexdigest()


def test_the_identity_of_a_model_is_made_of_its_files_hashes_and_its_settings(weights: Path) -> None:
    content = hashlib.sha256(WEIGHTS).digest()
    assert detector_digest(weights) == digest([weights]) == hashlib.sha256(content).hexdigest()
    settings = hashlib.sha256(repr(224).encode()).digest()
    assert digest([weights, weights], 224) == hashlib.sha256(content + content + settings).hexdigest()
