from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.unit.engine import engine_workers as w

from surgeval.engine import EncodedPart, Job, Manifest, RunSummary, Unit, Worker, load_cases, load_record, run
from surgeval.engine.executors import serial
from surgeval.errors import BadInput, RunError
from surgeval.files import folder_lock
from surgeval.records import Case

MANIFEST = Manifest("triplets", {"iou": 0.5})


def go(folder: Path, units: Iterable[Unit], worker: Worker, **options: Any) -> RunSummary:
    return run(units, worker, **{"folder": folder, "manifest": MANIFEST, "progress": False, **options})


class Counting:
    """Counts the units it is given; those in `bad` raise."""

    def __init__(self, bad: Iterable[str] = ()) -> None:
        self.seen: list[str] = []
        self.setups = 0
        self.bad = set(bad)

    def setup(self) -> None:
        self.setups += 1

    def __call__(self, payload: str) -> list[Case]:
        self.seen.append(payload)
        if payload in self.bad:
            raise ValueError(f"no answer for {payload}")
        return [Case(f"{payload}/0", payload, values={"score": 1.0})]


def abc(*keys: str) -> list[Unit]:
    return [Unit(key, key, ((f"{key}/0", key),)) for key in keys or ("a", "b", "c")]


def test_cases_come_in_the_order_of_the_units_with_no_time_in_them(tmp_path: Path) -> None:
    summary = go(tmp_path / "r", w.score_units(3), w.scores)
    frame = load_cases(tmp_path / "r").collect()
    assert frame.columns == ["id", "cluster", "status", "reason", "unit", "score", "rank"]
    assert frame["unit"].to_list() == ["VID00"] * 3 + ["VID01"] * 3 + ["VID02"] * 3
    assert (summary.units, summary.done, summary.resumed, summary.cases, summary.exit_code) == (3, 3, 0, 9, 0)
    assert load_record(tmp_path / "r").status == "done"
    assert load_record(tmp_path / "r").config == {"iou": 0.5}


def test_the_bytes_do_not_depend_on_the_order_in_which_units_finish(tmp_path: Path) -> None:
    def backwards(
        worker: Worker, jobs: Sequence[Job], stopping: Callable[[], bool], /
    ) -> Generator[tuple[Job, EncodedPart]]:
        yield from serial(worker, list(reversed(jobs)), stopping)

    go(tmp_path / "a", w.score_units(7), w.scores)
    go(tmp_path / "b", w.score_units(7), w.scores, executor=backwards)
    assert (tmp_path / "a/cases.parquet").read_bytes() == (tmp_path / "b/cases.parquet").read_bytes()


def test_a_second_call_computes_nothing_and_ends_with_the_same_bytes(tmp_path: Path) -> None:
    go(tmp_path, abc(), Counting())
    before = (tmp_path / "cases.parquet").read_bytes()
    (tmp_path / "cases.parquet").unlink()
    again = Counting()
    summary = go(tmp_path, abc(), again)
    assert again.seen == [] and again.setups == 0
    assert (summary.done, summary.resumed) == (0, 3)
    assert (tmp_path / "cases.parquet").read_bytes() == before


def test_only_absent_units_are_computed(tmp_path: Path) -> None:
    go(tmp_path, abc("a", "c"), Counting())
    again = Counting()
    go(tmp_path, abc("a", "b", "c"), again)
    assert again.seen == ["b"] and again.setups == 1
    assert load_cases(tmp_path).collect()["unit"].to_list() == ["a", "b", "c"]


def test_the_same_weights_by_another_name_resume_the_run(tmp_path: Path) -> None:
    first = Manifest("surgxbench", model={"name": "clip", "family": "clip", "identity": "5f"})
    moved = Manifest("surgxbench", model={"name": "copies/clip", "family": "clip", "identity": "5f"})
    go(tmp_path / "r", abc(), Counting(), manifest=first)
    again = Counting()
    go(tmp_path / "r", abc(), again, manifest=moved)
    assert again.seen == []
    assert load_record(tmp_path / "r").model["name"] == "copies/clip"
    for name, told in (("copies/clip", r"model\.identity"), ("blip", r'model: "copies/clip" → "blip"')):
        other = Manifest("surgxbench", model={"name": name, "family": "clip", "identity": "60"})
        with pytest.raises(RunError, match=told):
            go(tmp_path / "r", abc(), Counting(), manifest=other)


def test_other_settings_are_refused_by_key_and_change_nothing(tmp_path: Path) -> None:
    go(tmp_path, abc(), Counting())
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.parquet")}
    other = Manifest("triplets", {"iou": 0.7}, model="clip")
    with pytest.raises(RunError, match=r'config\.iou: 0\.5 → 0\.7; model: "" → "clip"'):
        go(tmp_path, abc(), Counting(), manifest=other)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.parquet")} == before
    assert load_record(tmp_path).status == "done"


def test_a_failed_unit_keeps_its_cases_in_their_places_and_the_run_goes_on(tmp_path: Path) -> None:
    units = [Unit("a", "a"), Unit("b", "b", (("b/0", "VID1"), ("b/1", "VID2"))), Unit("c", "c")]
    summary = go(tmp_path, units, Counting(bad="b"))
    rows = load_cases(tmp_path).select("id", "cluster", "status", "reason", "score").collect().rows()
    assert rows == [
        ("a/0", "a", "ok", "", 1.0),
        ("b/0", "VID1", "error", "ValueError: no answer for b", None),
        ("b/1", "VID2", "error", "ValueError: no answer for b", None),
        ("c/0", "c", "ok", "", 1.0),
    ]
    assert (summary.failed, summary.failed_cases, summary.exit_code) == (1, 2, 1)
    assert summary.to_frame().rows() == [("error", "ValueError: no answer for b", 2, 1, "b")]
    assert "2 × error: ValueError: no answer for b (first in b)" in str(summary)
    assert load_record(tmp_path).status == "failed"


def test_retry_does_only_the_units_with_failures(tmp_path: Path) -> None:
    go(tmp_path, abc("a", "b", "c"), Counting(bad="b"))
    plain = Counting()
    assert go(tmp_path, abc("a", "b", "c"), plain).failed == 1
    assert plain.seen == []
    again = Counting()
    summary = go(tmp_path, abc("a", "b", "c"), again, retry=True)
    assert again.seen == ["b"] and (summary.done, summary.resumed, summary.failed) == (1, 2, 0)
    go(tmp_path / "clean", abc("a", "b", "c"), Counting())
    assert (tmp_path / "cases.parquet").read_bytes() == (tmp_path / "clean/cases.parquet").read_bytes()


def test_a_case_that_the_worker_reports_as_failed_makes_its_unit_one_to_retry(tmp_path: Path) -> None:
    def refuses(payload: str) -> list[Case]:
        return [Case("a", "VID01"), Case("b", "VID01", "refused", "the model gave no answer")]

    assert go(tmp_path, [Unit("u")], refuses).failures[0].status == "refused"
    assert go(tmp_path, [Unit("u")], lambda payload: [Case("a", "VID01")], retry=True).failed == 0


def test_a_case_that_the_worker_forgets_is_stored_as_missing(tmp_path: Path) -> None:
    summary = go(tmp_path, [Unit("a", "a", (("a/0", "a"), ("a/1", "a")))], Counting())
    assert load_cases(tmp_path).collect().select("id", "status").rows() == [("a/0", "ok"), ("a/1", "missing")]
    assert summary.failed_cases == 1


def test_worker_faults_of_every_kind_are_failures_of_the_unit(tmp_path: Path) -> None:
    def yields_numbers(payload: Any) -> Any:
        return [1]

    assert "BadInput: the worker yielded int, expected Case" in str(go(tmp_path / "a", [Unit("u")], yields_numbers))
    leaves = go(tmp_path / "b", [Unit("u", "leave"), Unit("v", "fine")], w.misbehave)
    assert (leaves.failed, leaves.done) == (1, 2)
    assert leaves.failures[0].reason == "SystemExit: 3"


def test_a_reason_that_is_no_valid_text_is_still_stored(tmp_path: Path) -> None:
    def worker(payload: Any) -> list[Case]:
        raise OSError("cannot read frame\udcff.png")

    assert go(tmp_path, [Unit("u")], worker).failures[0].reason == r"OSError: cannot read frame\udcff.png"


def test_a_unit_without_cases_is_finished_too(tmp_path: Path) -> None:
    assert go(tmp_path, [Unit("u")], lambda payload: []).cases == 0
    assert load_cases(tmp_path).collect().height == 0
    assert go(tmp_path, [Unit("u")], Counting(bad="u")).resumed == 1


@pytest.mark.parametrize("length", [0, 4, 0.5, -1])
def test_a_damaged_part_is_done_again_with_a_message(
    tmp_path: Path, length: float, capsys: pytest.CaptureFixture[str]
) -> None:
    go(tmp_path, abc(), Counting())
    whole = (tmp_path / "cases.parquet").read_bytes()
    part = sorted((tmp_path / "parts").iterdir())[0]
    data = part.read_bytes()
    part.write_bytes(data[: int(length * len(data)) if length == 0.5 else int(length)])
    again = Counting()
    summary = go(tmp_path, abc(), again, progress=True)
    assert len(again.seen) == 1 and summary.damaged == 1
    assert f"the part of unit {again.seen[0]} is damaged" in capsys.readouterr().err
    assert (tmp_path / "cases.parquet").read_bytes() == whole


def test_what_a_killed_run_left_half_written_is_cleared_away(tmp_path: Path) -> None:
    go(tmp_path, abc("a"), Counting())
    for stale in (tmp_path / ".cases.parquet.tmp", tmp_path / "parts/.x.parquet.tmp"):
        stale.write_bytes(b"half")
    go(tmp_path, abc("a"), Counting())
    assert not list(tmp_path.rglob("*.tmp"))


def test_a_folder_that_holds_something_else_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(RunError, match=r"holds 'thesis.tex' but no run.json"):
        go(tmp_path, abc(), Counting())
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(RunError, match="is a file, not a folder"):
        go(tmp_path / "thesis.tex", abc(), Counting())


def test_a_folder_in_use_is_refused_naming_the_process(tmp_path: Path) -> None:
    go(tmp_path, abc("a"), Counting())
    with folder_lock(tmp_path), pytest.raises(RunError, match=r"process \d+ on .+ is working in this folder"):
        go(tmp_path, abc("a"), Counting())
    assert go(tmp_path, abc("a"), Counting()).resumed == 1


def test_units_with_different_values_share_one_table(tmp_path: Path) -> None:
    def worker(payload: dict[str, object]) -> list[Case]:
        return [Case("x", "VID01", values=payload)]

    units = [Unit("a", {"n": 1}), Unit("b", {"n": 0.5, "text": "yes"}), Unit("c", {"flag": True, "n": None})]
    go(tmp_path, units, worker)
    frame = load_cases(tmp_path).select("n", "text", "flag").collect()
    assert frame.rows() == [(1.0, None, None), (0.5, "yes", None), (None, None, True)]
    assert frame.schema == {"n": pl.Float64, "text": pl.String, "flag": pl.Boolean}


def test_units_that_disagree_about_a_column_stop_the_run_at_once(tmp_path: Path) -> None:
    seen = []

    def worker(payload: dict[str, object]) -> list[Case]:
        seen.append(payload)
        return [Case("x", "VID01", values=payload)]

    units = [Unit("a", {"n": 1}), Unit("b", {"n": "one"}), Unit("c", {"n": 2})]
    with pytest.raises(RunError, match="n: String in unit b, but Int64 in unit a"):
        go(tmp_path, units, worker)
    assert len(seen) == 2
    assert load_record(tmp_path).status == "stopped"


def test_numbers_over_half_a_run_are_not_handed_out(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="could not be set up"):
        go(tmp_path, abc(), w.NoModel())
    with pytest.raises(RunError, match=r"the run is not complete \(stopped\)"):
        load_cases(tmp_path)


def test_a_lost_table_is_named(tmp_path: Path) -> None:
    go(tmp_path, abc(), Counting())
    (tmp_path / "cases.parquet").unlink()
    with pytest.raises(RunError, match=r"cases\.parquet is missing"):
        load_cases(tmp_path)


def test_a_model_that_cannot_be_loaded_ends_the_run_and_fails_no_case(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"could not be set up: FileNotFoundError: weights.safetensors"):
        go(tmp_path, abc(), w.NoModel())
    assert go(tmp_path, abc(), Counting()).done == 3


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match="Not a directory, 0 of 3 units are done"):
        go(tmp_path / "file" / "run", abc(), Counting())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"executor": "threads"}, "executor: must be 'serial' or 'processes', got 'threads'"),
        ({"processes": 0}, "processes: must be at least 1, got 0"),
        ({"time_limit": -1.0}, "time limit: must be a positive number of seconds, got -1.0"),
        ({"time_limit": float("nan")}, "time limit: must be .* got nan"),
    ],
)
def test_unusable_options_are_refused_before_anything_is_made(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        go(tmp_path / "r", abc(), Counting(), **options)
    assert not (tmp_path / "r").exists()


def test_a_run_works_outside_the_main_thread(tmp_path: Path) -> None:
    results: list[RunSummary] = []
    thread = threading.Thread(target=lambda: results.append(go(tmp_path, abc(), Counting())))
    thread.start()
    thread.join(60)
    assert results[0].done == 3


@pytest.mark.parametrize("first", ["import surgeval.engine.run", "from surgeval.engine.run_folder import load_cases"])
def test_run_is_the_function_whatever_module_is_imported_first(first: str) -> None:
    script = f"{first}\nimport surgeval.engine, surgeval.engine.run\nassert callable(surgeval.engine.run)"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
