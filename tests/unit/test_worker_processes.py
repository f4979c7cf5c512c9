"""Child processes do every job once, keep their limits, report what fails, and leave nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from multiprocessing import active_children
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from tests.fault.engine_runs import alive, wait_until

from surgeval.processes import LimitedProcess, WorkerDied, WorkerPool, WorkerProcess


def test_every_job_is_done_once_whatever_the_number_of_processes(tmp_path: Path) -> None:
    folders = [tmp_path / str(k) for k in range(5)]
    with WorkerPool(os.mkdir, folders, 2) as pool:
        assert sorted(pool) == [(number, None) for number in range(5)]
    assert all(folder.is_dir() for folder in folders)
    assert not active_children()


def test_an_error_is_raised_here_and_what_is_in_flight_is_finished(tmp_path: Path) -> None:
    jobs = [tmp_path / "missing" / "inner", tmp_path / "beside", tmp_path / "later", tmp_path / "never"]
    with pytest.raises(FileNotFoundError, match="missing"), WorkerPool(os.mkdir, jobs, 1, finish_begun=True) as pool:
        list(pool)
    assert not jobs[-1].exists(), "nothing is begun after an error"
    assert not active_children()


def test_a_worker_that_dies_is_reported() -> None:
    with pytest.raises(WorkerDied, match="ended with exit code 3"), WorkerPool(os._exit, [3], 1) as pool:
        list(pool)


def test_jobs_begin_before_the_results_are_asked_for(tmp_path: Path) -> None:
    with WorkerPool(os.mkdir, [tmp_path / "begun"], 1):
        wait_until((tmp_path / "begun").is_dir, "the job to begin")


def test_a_worker_ignores_ctrl_c_and_is_killed_with_its_children() -> None:
    with WorkerProcess(_report_child) as worker:
        child = worker.connection.recv()
        os.kill(worker.connection.recv(), signal.SIGINT)
        worker.connection.send("still there?")
        assert worker.connection.recv() == "still there?"
        assert alive(child)
    wait_until(lambda: not alive(child), "the worker's child to end")


def _report_child(connection: Connection) -> None:
    connection.send(subprocess.Popen(["sleep", "600"]).pid)
    connection.send(os.getpid())
    connection.send(connection.recv())
    time.sleep(600)


@pytest.mark.parametrize(
    ("presses", "seconds", "least", "most"),
    [pytest.param((0.2,), 2, 2, 60, id="one waits for work in flight"), pytest.param((0.2, 0.2), 120, 0, 60, id="two")],
)
def test_ctrl_c(presses: tuple[float, ...], seconds: float, least: float, most: float) -> None:
    def press() -> None:
        for pause in presses:
            time.sleep(pause)
            os.kill(os.getpid(), signal.SIGINT)

    begun = time.monotonic()

    def sleep_and_press() -> None:
        nonlocal begun
        with WorkerPool(time.sleep, [0, seconds], 1, finish_begun=True) as pool:
            for number, _ in pool:
                if number == 0:  # the process is there, and has the second job
                    begun = time.monotonic()
                    threading.Thread(target=press).start()

    with pytest.raises(KeyboardInterrupt):
        sleep_and_press()
    assert least - 0.1 < time.monotonic() - begun < most
    assert not active_children()


CHILD = """
import os
from surgeval.processes import limit_memory
def main(requests, replies):
    limit_memory(1 << 28)
    try:
        bytearray(1 << 30)
    except MemoryError:
        replies.write(b"no memory %d\\n" % os.getpid())
        replies.flush()
    while True:
        pass
"""
PARENT = """
import time
from surgeval.processes import LimitedProcess
child = LimitedProcess("busy_child")
print(child.replies.readline().decode(), flush=True)
time.sleep(600)
"""


@pytest.fixture
def busy_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "busy_child.py").write_text(CHILD)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return "busy_child"


@pytest.mark.skipif(sys.platform != "linux", reason="no limit on memory")
def test_a_limited_process_gets_no_more_memory_and_time_than_it_may(busy_child: str) -> None:
    child = LimitedProcess(busy_child)
    assert child.replies.readline().startswith(b"no memory")
    with child.limit_time(0.2) as exceeded:
        assert child.replies.readline() == b""
    assert exceeded == [0.2]
    assert child.wait() == -signal.SIGKILL
    assert not child.alive
    child.close()


@pytest.mark.skipif(sys.platform != "linux", reason="no limit on memory")
def test_a_busy_limited_process_ends_when_its_parent_is_killed(busy_child: str) -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline().split()[-1])
        assert alive(child)
        parent.kill()
    wait_until(lambda: not alive(child), "the child to end")
