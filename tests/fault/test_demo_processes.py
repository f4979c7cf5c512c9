"""The processes of the demo end with whoever started them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.fault.engine_runs import PATIENCE

SCRIPT = """
import os, sys, time
from surgeval.processes import WorkerPool
def inner(file):
    open(file, "w").write(str(os.getpid()))
    time.sleep(600)
def outer(file):
    with WorkerPool(inner, [file], 1, preload=["json"]) as pool:
        list(pool)
if __name__ == "__main__":
    pool = WorkerPool(outer, [sys.argv[1]], 1, preload=["json"])
    time.sleep(600)
"""


def _runs(process: int) -> bool:
    try:
        return " Z " not in Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_no_process_outlives_the_one_that_is_killed(tmp_path: Path) -> None:
    script, told = tmp_path / "nested.py", tmp_path / "pid"
    script.write_text(SCRIPT)
    first = subprocess.Popen([sys.executable, script, told])
    try:
        until = time.monotonic() + PATIENCE
        while not (told.exists() and told.read_text()):
            assert time.monotonic() < until and first.poll() is None
            time.sleep(0.05)
        innermost = int(told.read_text())
        assert _runs(innermost)
    finally:
        first.send_signal(signal.SIGKILL)
        first.wait()
    until = time.monotonic() + PATIENCE
    while _runs(innermost):
        if time.monotonic() > until:
            os.kill(innermost, signal.SIGKILL)
            raise AssertionError("a worker of a worker goes on after both are gone")
        time.sleep(0.05)


DEAF = """
import signal, sys
from surgeval.engine.executors import graceful_stop
from surgeval.processes import WorkerPool
def ignores(_):
    return signal.getsignal(signal.SIGINT) is signal.SIG_IGN  # as it began; polars only passes signals on
def outer(_):
    import polars  # puts a handler of its own in place
    with graceful_stop(False), WorkerPool(ignores, [0], 1, preload=["json"]) as pool:
        return dict(pool)[0]
def both(job):
    return ignores(job), outer(job)
if __name__ == "__main__":
    with WorkerPool(both, [0], 1) as pool:
        print(*dict(pool)[0], ignores(0))
"""


def test_ctrl_c_is_for_the_process_that_a_person_started(tmp_path: Path) -> None:
    (tmp_path / "deaf.py").write_text(DEAF)
    done = subprocess.run(
        [sys.executable, tmp_path / "deaf.py"], capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    assert done.stdout.split() == ["True", "True", "False"]
