from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surgeval.engine import Manifest, Unit, canonical_json, fingerprint, library_versions, load_record, save_scored
from surgeval.engine.run_record import RunRecord, differences
from surgeval.engine.units import name_jobs
from surgeval.errors import BadInput, DataError

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(json_values)
def test_canonical_json_gives_the_value_back_exactly(value: object) -> None:
    text = canonical_json(value)
    assert json.loads(text) == value
    assert canonical_json(json.loads(text)) == text


@given(st.dictionaries(st.text(max_size=5), json_values, min_size=2, max_size=5))
def test_the_order_of_keys_does_not_change_a_fingerprint(value: dict[str, object]) -> None:
    assert fingerprint(dict(reversed(value.items()))) == fingerprint(value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": [1, math.inf]}, r"config\.a\[1\]: inf is not a finite number"),
        ({1: "a"}, "config: the key 1 is not text"),
        ({"a": {"b": {3}}}, r"config\.a\.b: set is not a JSON type"),
        ({"a": b"bytes"}, r"config\.a: bytes is not a JSON type"),
    ],
)
def test_what_json_cannot_say_is_refused_with_its_place(value: object, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        canonical_json(value, "config")


BASE = Manifest("triplets", {"iou": 0.5}, "d1", "m1", {"seed": 1}, {"surgeval": "1"})
UNIT = Unit("VID01", {"video": "VID01"})


@pytest.mark.parametrize(
    ("manifest", "unit"),
    [
        (Manifest("focus", {"iou": 0.5}, "d1", "m1", {"seed": 1}, {"surgeval": "1"}), UNIT),
        (Manifest("triplets", {"iou": 0.7}, "d1", "m1", {"seed": 1}, {"surgeval": "1"}), UNIT),
        (Manifest("triplets", {"iou": 0.5}, "d2", "m1", {"seed": 1}, {"surgeval": "1"}), UNIT),
        (Manifest("triplets", {"iou": 0.5}, "d1", "m2", {"seed": 1}, {"surgeval": "1"}), UNIT),
        (Manifest("triplets", {"iou": 0.5}, "d1", "m1", {"seed": 2}, {"surgeval": "1"}), UNIT),
        (Manifest("triplets", {"iou": 0.5}, "d1", "m1", {"seed": 1}, {"surgeval": "2"}), UNIT),
        (BASE, Unit("VID02", {"video": "VID01"})),
        (BASE, Unit("VID01", {"video": "VID02"})),
        (BASE, Unit("VID01", {"video": "VID01"}, (("a", "VID01"),))),
    ],
)
def test_whatever_determines_a_unit_changes_its_name(manifest: Manifest, unit: Unit) -> None:
    assert name_jobs(manifest.identity(), [unit])[0].name != name_jobs(BASE.identity(), [UNIT])[0].name


def test_a_name_is_the_same_on_every_machine_and_day() -> None:
    (job,) = name_jobs(BASE.identity(), [UNIT])
    assert job.name == "03ccf42625f0862c5e63f3f672a1a807"  # sha256sum of the canonical JSON, cut to 32 digits


def test_units_must_be_there_and_have_different_keys() -> None:
    with pytest.raises(BadInput, match="no units to run"):
        name_jobs(BASE.identity(), [])
    with pytest.raises(BadInput, match="unit a: two units have this key"):
        name_jobs(BASE.identity(), [Unit("a", 1), Unit("a", 2)])
    with pytest.raises(BadInput, match="valid text"):
        name_jobs(BASE.identity(), [Unit("a", 1, (("frame\udcff", "VID01"),))])
    with pytest.raises(BadInput, match=r"unit a\.payload\.tau: nan"):
        name_jobs(BASE.identity(), [Unit("a", {"tau": math.nan})])


def test_differences_name_each_key_with_old_and_new() -> None:
    old = Manifest("p", {"a": {"b": 1, "c": (1, 2)}, "gone": True}, versions={"surgeval": "1"})
    new = Manifest("p", {"a": {"b": 1.0, "c": [1, 2]}, "new": "x" * 100}, versions={"surgeval": "1"})
    assert differences(old, new) == [
        "config.a.b: 1 → 1.0",
        "config.gone: true → absent",
        f'config.new: absent → "{"x" * 58}…',
    ]
    assert differences(old, old) == []


def test_library_versions_say_so_when_a_distribution_is_absent() -> None:
    assert library_versions("no-such-distribution")["no-such-distribution"] == "absent"


def record(manifest: Manifest) -> RunRecord:
    return RunRecord(
        **manifest.stored(), status="done", units=1, finished=1, failed=0, cases=3,
        started="2020-01-01T00:00:00+00:00", updated="2020-01-01T00:00:01+00:00", seconds=1.0,
    )  # fmt: skip


def test_run_json_is_read_back_as_written(tmp_path: Path) -> None:
    record(BASE).save(tmp_path)
    assert load_record(tmp_path) == record(BASE)
    assert load_record(tmp_path).manifest == BASE
    assert json.loads((tmp_path / "run.json").read_text())["format"] == 1


def test_a_path_that_is_not_unicode_is_the_same_in_the_next_call(tmp_path: Path) -> None:
    manifest = Manifest("triplets", dataset={"name": "films \udcff"})
    save_scored(tmp_path, manifest, cases=1)
    assert differences(load_record(tmp_path).manifest, manifest) == []


def test_a_run_of_another_format_is_refused(tmp_path: Path) -> None:
    record(BASE).save(tmp_path)
    content = json.loads((tmp_path / "run.json").read_text())
    for other in ({**content, "format": 2}, {key: value for key, value in content.items() if key != "format"}):
        (tmp_path / "run.json").write_text(json.dumps(other))
        with pytest.raises(DataError, match=r"run\.json: Written by an earlier version; run again\.$"):
            load_record(tmp_path)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("config", [], r"config: expected an object, got \[\]"),
        ("units", True, "units: expected a whole number, got True"),
        ("status", None, "status: expected 'running', 'interrupted'"),
        ("seconds", "1", "seconds: expected a number, got '1'"),
    ],
)
def test_a_field_of_the_wrong_type_is_named(tmp_path: Path, key: str, value: object, message: str) -> None:
    record(BASE).save(tmp_path)
    content = json.loads((tmp_path / "run.json").read_text())
    (tmp_path / "run.json").write_text(json.dumps({**content, key: value}))
    with pytest.raises(DataError, match=message):
        load_record(tmp_path)


def test_a_folder_without_a_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"run\.json: found no such file"):
        load_record(tmp_path)
    with pytest.raises(DataError, match=r"nowhere: no such folder"):
        load_record(tmp_path / "nowhere")
