"""Versioned JSON files of a run folder: what a save wrote a load returns, and anything else is one sentence."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import Field, NonNegativeInt, ValidationError

import surgeval.files.stored
from surgeval.errors import DataError
from surgeval.files import NullableFloat, StoredFile


class Receipt(StoredFile, name="receipt.json", format=2, limit=400):
    status: Literal["running", "done"]
    cases: NonNegativeInt
    seconds: float = 0.0
    videos: tuple[str, ...] = ()
    config: dict[str, Any] = Field(default_factory=dict)


def write(folder: Path, **values: object) -> None:
    (folder / "receipt.json").write_text(json.dumps({"format": 2, "status": "done", "cases": 3, **values}))


def load_error(folder: Path) -> DataError:
    with pytest.raises(DataError) as caught:
        Receipt.load(folder)
    return caught.value


def test_a_load_returns_what_a_save_wrote(tmp_path: Path) -> None:
    receipt = Receipt(status="done", cases=3, seconds=0.5, videos=("VID01", "größe"), config={"a": [1, {"b": None}]})
    receipt.save(tmp_path)
    assert Receipt.load(tmp_path) == receipt
    assert list(json.loads((tmp_path / "receipt.json").read_text()))[:2] == ["format", "status"]


@pytest.mark.parametrize("stored", [1, 3, None, "2", 2.5])
def test_another_format_is_that_of_an_earlier_version(tmp_path: Path, stored: object) -> None:
    write(tmp_path, format=stored, cases="none of this is looked at")
    error = load_error(tmp_path)
    assert (error.sentence, error.code) == ("Written by an earlier version; run again.", "format-version")


def test_a_file_without_format_is_that_of_an_earlier_version(tmp_path: Path) -> None:
    (tmp_path / "receipt.json").write_text('{"status": "done", "cases": 3}')
    assert load_error(tmp_path).sentence == "Written by an earlier version; run again."


@pytest.mark.parametrize(
    ("values", "field", "sentence", "code"),
    [
        ({"cases": "3"}, "cases", "expected a whole number, got '3'", "not-a-number"),
        ({"cases": -1}, "cases", "expected a value greater than or equal to 0, got -1", "wrong-value"),
        ({"status": "lost"}, "status", "expected 'running' or 'done', got 'lost'", "wrong-value"),
        ({"seconds": float("nan")}, "seconds", "expected a finite number, got NaN", "not-finite"),
        ({"videos": ["VID01", 2]}, "videos[1]", "expected text, got 2", "not-text"),
        ({"config": []}, "config", "expected an object, got []", "wrong-shape"),
        ({"colour": 1}, "colour", "unknown key", "key-unknown"),
    ],
)
def test_a_value_that_does_not_fit_is_named(
    tmp_path: Path, values: dict[str, object], field: str, sentence: str, code: str
) -> None:
    write(tmp_path, **values)
    error = load_error(tmp_path)
    assert (error.field, error.sentence, error.code) == (field, sentence, code)
    assert str(error) == f"{tmp_path / 'receipt.json'}: {field}: {sentence}"


def test_every_value_that_does_not_fit_is_named(tmp_path: Path) -> None:
    write(tmp_path, status="lost", cases=-1, videos=[1, 2, 3, 4])
    error = load_error(tmp_path)
    assert error.field == "status"
    assert "; cases: expected" in error.sentence
    assert error.sentence.endswith("; videos[1]: expected text, got 2; and 2 more")


def test_a_number_that_is_not_defined_is_null_in_the_file(tmp_path: Path) -> None:
    class Score(StoredFile, name="score.json", format=1, compact=True):
        estimates: tuple[NullableFloat, ...]

    Score(estimates=(0.5, float("nan"))).save(tmp_path)
    assert (tmp_path / "score.json").read_text() == '{\n"format": 1,\n"estimates": [\n 0.5,\n null\n]\n}\n'
    loaded = Score.load(tmp_path).estimates
    assert loaded[0] == 0.5
    assert loaded[1] != loaded[1]
    (tmp_path / "score.json").write_text('{"format": 1, "estimates": [1e999]}')
    with pytest.raises(DataError, match="finite"):
        Score.load(tmp_path)


def test_a_whole_number_that_json_does_not_hold_exactly_is_refused(tmp_path: Path) -> None:
    write(tmp_path, cases=2**53)
    assert Receipt.load(tmp_path).cases == 2**53
    write(tmp_path, cases=2**53 + 1)
    assert load_error(tmp_path).sentence == "the number 9007199254740993 is too large"


def test_a_missing_value_is_named(tmp_path: Path) -> None:
    (tmp_path / "receipt.json").write_text('{"format": 2, "status": "done"}')
    error = load_error(tmp_path)
    assert (error.field, error.sentence, error.code) == ("cases", "is missing", "key-missing")


@pytest.mark.parametrize("text", ["", "{", '{"format": 2', "\xff", '{"format": 1e999999999999, "a": 1]', "[" * 199])
def test_a_damaged_file_is_no_json(tmp_path: Path, text: str) -> None:
    (tmp_path / "receipt.json").write_bytes(text.encode("latin-1"))
    error = load_error(tmp_path)
    assert error.code == "file-broken"


def test_a_list_is_no_stored_file(tmp_path: Path) -> None:
    (tmp_path / "receipt.json").write_text("[2]")
    assert load_error(tmp_path).code == "wrong-shape"


def test_a_file_over_its_limit_is_refused(tmp_path: Path) -> None:
    write(tmp_path, videos=["VID01"] * 100)
    assert "the limit is 400" in load_error(tmp_path).sentence


def test_an_absent_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    load_error(tmp_path)
    (tmp_path / "receipt.json").mkdir()
    load_error(tmp_path)


def test_a_value_that_cannot_be_stored_is_refused_when_it_is_made() -> None:
    for values in ({"seconds": float("inf")}, {"cases": True}, {"colour": "red"}):
        with pytest.raises(ValidationError):
            Receipt.model_validate({"status": "done", "cases": 3, **values})


def test_a_number_that_json_does_not_have_is_not_stored(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        Receipt(status="done", cases=3, config={"threshold": float("nan")}).save(tmp_path)
    assert not any(tmp_path.iterdir())


def test_half_of_a_surrogate_pair_is_spelled_out(tmp_path: Path) -> None:
    Receipt(status="done", cases=3, videos=("clip \udcff",)).save(tmp_path)
    assert Receipt.load(tmp_path).videos == ("clip \\udcff",)


def test_a_failed_save_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    receipt = Receipt(status="running", cases=3)
    receipt.save(tmp_path)

    def full_disk(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(surgeval.files.stored, "write_atomically", full_disk)
    with pytest.raises(OSError, match="No space left"):
        receipt.model_copy(update={"status": "done"}).save(tmp_path)
    assert Receipt.load(tmp_path) == receipt


@pytest.mark.parametrize("module", ["surgeval", "surgeval.cli", "surgeval.files"])
def test_pydantic_is_imported_only_where_a_schema_is_used(module: str) -> None:
    code = f"import sys, {module}; sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
