from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from tests.unit.engine import engine_workers as w

from surgeval.engine import Manifest, RunSummary, Unit, Worker, load_cases, run
from surgeval.errors import BadInput, RunError


def go(folder: Path, units: list[Unit], worker: Worker, **options: Any) -> RunSummary:
    options = {"executor": "processes", "processes": 2, "progress": False, **options}
    return run(units, worker, folder=folder, manifest=Manifest("demo"), **options)


def test_processes_and_serial_end_with_the_same_bytes(tmp_path: Path) -> None:
    go(tmp_path / "serial", w.score_units(30), w.scores, executor="serial")
    go(tmp_path / "processes", w.score_units(30), w.scores)
    assert (tmp_path / "serial/cases.parquet").read_bytes() == (tmp_path / "processes/cases.parquet").read_bytes()


def test_each_process_is_set_up_once_and_knows_its_number(tmp_path: Path) -> None:
    log = tmp_path / "log"
    go(tmp_path / "run", [Unit(str(i), str(i)) for i in range(20)], w.Logged(str(log)))
    lines = [line.split() for line in log.read_text().splitlines()]
    setups = [line for line in lines if line[0] == "setup"]
    assert len(setups) <= 2
    assert {line[1] for line in setups} <= {"0", "1"}
    assert {line[2] for line in lines if line[0] == "unit"} <= {line[2] for line in setups}
    assert str(os.getpid()) not in {line[2] for line in setups}


def test_a_crash_a_hang_and_an_error_are_told_apart_and_cost_only_their_unit(tmp_path: Path) -> None:
    payloads = ["a", "raise", "b", "exit", "c", "segfault", "d", "hang", "e"]
    summary = go(tmp_path, [Unit(name, name) for name in payloads], w.misbehave, time_limit=2.0)
    rows = dict(load_cases(tmp_path).select("unit", "reason").collect().rows())
    assert rows == {
        **dict.fromkeys("abcde", ""),
        "raise": "ValueError: no frame 12",
        "exit": "the worker process ended with exit code 7",
        "segfault": "the worker process was ended by SIGSEGV",
        "hang": "took longer than the limit of 2 s",
    }
    assert {group.status for group in summary.failures} == {"error", "crash", "timeout"}
    assert (summary.done, summary.failed) == (9, 4)


def test_serial_with_a_time_limit_also_stops_a_hanging_unit(tmp_path: Path) -> None:
    units = [Unit(name, name) for name in ("a", "hang", "b")]
    summary = go(tmp_path, units, w.misbehave, executor="serial", processes=None, time_limit=1.0)
    assert [(group.status, group.example) for group in summary.failures] == [("timeout", "hang")]


def test_a_unit_killed_for_its_time_takes_its_children_along(tmp_path: Path) -> None:
    log = tmp_path / "log"
    go(tmp_path / "run", [Unit("hang", "hang")], w.Logged(str(log)), time_limit=1.0)
    group = int(log.read_text().split()[-1])
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    raise AssertionError("the hanging unit's child is still there")


def test_a_program_that_a_worker_starts_can_be_ended_by_it(tmp_path: Path) -> None:
    go(tmp_path, [Unit("terminate", "terminate")], w.misbehave)
    assert load_cases(tmp_path).collect()["code"].to_list() == [-signal.SIGTERM]


def test_a_worker_that_cannot_travel_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"cannot be sent to another process .*; define it at the top of a module"):
        go(tmp_path, w.score_units(2), lambda payload: [])


def test_a_model_that_cannot_be_loaded_in_the_workers_ends_the_run(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"could not be set up: FileNotFoundError: weights.safetensors"):
        go(tmp_path, w.score_units(2), w.NoModel())


def test_a_worker_that_dies_while_it_starts_ends_the_run(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="ended with exit code 9 before its first unit"):
        go(tmp_path, w.score_units(2), w.DiesInSetup())
