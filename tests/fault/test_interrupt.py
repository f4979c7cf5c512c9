"""Ctrl-C: the first finishes the units in flight, the second stops at once; both leave a folder to resume."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest
from tests.fault.engine_runs import PATIENCE, alive, cases, errors, finished, parts, started, wait_until

UNITS = ("--units", "30")
NOTICE = "finishing the units in flight; Ctrl-C again stops at once"


def heard(folder: Path) -> None:
    """Wait until the run says that it heard the signal."""
    wait_until(lambda: NOTICE in errors(folder), "the run to answer")


@pytest.mark.parametrize(
    ("signum", "executor"),
    [
        (signal.SIGINT, "processes"),
        (signal.SIGTERM, "serial"),
        pytest.param(signal.SIGINT, "serial", marks=pytest.mark.long),
        pytest.param(signal.SIGTERM, "processes", marks=pytest.mark.long),
    ],
)
def test_one_signal_finishes_the_units_in_flight_and_fails_none(
    tmp_path: Path, executor: str, signum: signal.Signals
) -> None:
    free = tmp_path / "free"
    options = (*UNITS, "--sleep", "0", "--executor", executor, "--until", str(free))
    with started(tmp_path / "run", *options) as process:
        wait_until(lambda: parts(tmp_path / "run") >= 2, "two parts")
        os.killpg(process.pid, signum)  # as a terminal does: to the whole group
        heard(tmp_path / "run")
        free.touch()
        assert process.wait(PATIENCE) == 130
    done, said = parts(tmp_path / "run"), errors(tmp_path / "run")
    assert 2 <= done < 30
    assert f"interrupted, {done} of 30 units are done; the same command does the rest" in said
    assert "Traceback" not in said
    record = json.loads((tmp_path / "run/run.json").read_text())
    assert (record["status"], record["finished"], record["failed"]) == ("interrupted", done, 0)

    again = finished(tmp_path / "run", *UNITS, "--sleep", "0", "--executor", executor)
    assert again.returncode == 0, again.stderr
    assert f"{done} were there already" in again.stdout
    finished(tmp_path / "whole", *UNITS, "--sleep", "0")
    assert cases(tmp_path / "run") == cases(tmp_path / "whole")


@pytest.mark.parametrize("executor", ["serial", "processes"])
def test_a_second_ctrl_c_stops_at_once_and_drops_the_units_in_flight(tmp_path: Path, executor: str) -> None:
    pids = tmp_path / "pids"
    pids.mkdir()
    options = (*UNITS, "--sleep", "300", "--executor", executor, "--pids", str(pids))
    with started(tmp_path / "run", *options) as process:
        wait_until(lambda: any(pids.iterdir()), "a unit in flight")
        os.killpg(process.pid, signal.SIGINT)
        heard(tmp_path / "run")
        time.sleep(0.6)  # two key presses, not one passed on twice
        assert process.poll() is None
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(PATIENCE) == 130
    assert "interrupted, 0 of 30 units are done" in errors(tmp_path / "run")
    assert "Traceback" not in errors(tmp_path / "run")
    assert not any(alive(int(path.name)) for path in pids.iterdir())
    assert json.loads((tmp_path / "run/run.json").read_text())["status"] == "interrupted"


def test_ctrl_c_while_the_workers_start_is_clean_as_well(tmp_path: Path) -> None:
    for delay in (0.0, 0.1, 0.3):
        folder, free = tmp_path / f"run-{delay}", tmp_path / f"free-{delay}"
        options = (*UNITS, "--sleep", "0", "--executor", "processes", "--until", str(free))
        with started(folder, *options) as process:
            wait_until((folder / "run.json").exists, "the run to begin")
            time.sleep(delay)
            os.killpg(process.pid, signal.SIGINT)
            heard(folder)
            free.touch()
            assert process.wait(PATIENCE) == 130
        assert "Traceback" not in errors(folder) and "KeyboardInterrupt" not in errors(folder)
