"""Two processes on one run folder: the second is refused and nothing is corrupted."""

from __future__ import annotations

import json
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.fault.engine_runs import PATIENCE, cases, finished, parts, started, wait_until


@pytest.mark.parametrize("executor", [pytest.param("serial", marks=pytest.mark.long), "processes"])
def test_the_second_process_is_refused_naming_the_first(tmp_path: Path, executor: str) -> None:
    options = ("--units", "10", "--sleep", "0", "--executor", executor, "--until", str(tmp_path / "free"))
    with started(tmp_path / "run", *options) as first:
        wait_until(lambda: parts(tmp_path / "run") > 0, "a first part")
        second = finished(tmp_path / "run", *options)
        assert second.returncode == 2
        assert f"process {first.pid} on {socket.gethostname()} is working in this folder" in second.stderr
        assert "Traceback" not in second.stderr
        (tmp_path / "free").touch()
        assert first.wait(PATIENCE) == 0
    finished(tmp_path / "whole", "--units", "10", "--sleep", "0")
    assert cases(tmp_path / "run") == cases(tmp_path / "whole")


def test_processes_started_at_once_leave_one_correct_run(tmp_path: Path) -> None:
    options = ("--units", "20", "--sleep", "0.05")
    with ExitStack() as stack:
        racers = [stack.enter_context(started(tmp_path / "run", *options)) for _ in range(4)]
        codes = [racer.wait(PATIENCE) for racer in racers]
    assert 0 in codes
    assert set(codes) <= {0, 2}  # one that came after the end found everything done
    assert json.loads((tmp_path / "run/run.json").read_text())["status"] == "done"
    finished(tmp_path / "whole", *options)
    assert cases(tmp_path / "run") == cases(tmp_path / "whole")
