"""kill -9 at random moments: the resumed run must end with the bytes of an uninterrupted one."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
from tests.conftest import LONG
from tests.fault.engine_runs import alive, cases, finished, parts, started, wait_until

KILLS = 20 if LONG else 1


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["serial", pytest.param("processes", marks=pytest.mark.long)])
def test_a_run_killed_again_and_again_ends_with_the_bytes_of_an_uninterrupted_one(
    tmp_path: Path, executor: str
) -> None:
    begun = time.monotonic()
    reference = finished(tmp_path / "whole", "--executor", executor)
    seconds = time.monotonic() - begun
    assert reference.returncode == 0, reference.stderr
    expected = cases(tmp_path / "whole")
    assert pl.read_parquet(tmp_path / "whole/cases.parquet")["unit"].n_unique() == 200

    moments, folder, progress = random.Random(2024), tmp_path / "killed-0", list[int]()
    for attempt in range(KILLS + 40):
        if len(progress) >= KILLS and any(0 < count < 200 for count in progress):
            break
        with started(folder, "--executor", executor) as process:
            try:
                process.wait(moments.uniform(0, seconds))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                progress.append(parts(folder))
                continue
        assert process.returncode == 0
        assert cases(folder) == expected
        folder = tmp_path / f"killed-{attempt}"  # it was faster than the killer: begin again
    assert len(progress) >= KILLS
    assert any(0 < count < 200 for count in progress), f"no kill hit a run at work: {progress}"
    final = finished(folder, "--executor", executor)
    assert final.returncode == 0, final.stderr
    assert cases(folder) == expected
    assert parts(folder) == 200
    assert not list(folder.rglob("*.tmp"))


@pytest.mark.skipif(sys.platform != "linux", reason="reads the state of processes from /proc")
def test_workers_of_a_killed_run_end_by_themselves(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    pids.mkdir()
    options = ("--executor", "processes", "--units", "4", "--sleep", "300", "--pids", str(pids))
    with started(tmp_path / "run", *options) as process:
        wait_until(lambda: len(list(pids.iterdir())) == 2, "both workers to be at work")
        workers = [int(path.name) for path in pids.iterdir()]
        assert all(alive(pid) for pid in workers)
        process.kill()
        process.wait()
        wait_until(lambda: not any(alive(pid) for pid in workers), "the workers to end")


@pytest.mark.parametrize("executor", ["serial", "processes"])
def test_a_killed_run_leaves_no_lock(tmp_path: Path, executor: str) -> None:
    with started(tmp_path / "run", "--units", "3", "--sleep", "300", "--executor", executor) as process:
        wait_until((tmp_path / "run/run.json").exists, "the run to begin")
        process.kill()
        process.wait()
        again = finished(tmp_path / "run", "--units", "3", "--sleep", "0", "--executor", executor)
    assert again.returncode == 0, again.stderr
