"""Claims about the processes that render videos: all work is done, and what goes wrong is said once, in the caller."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import closing
from multiprocessing import active_children
from pathlib import Path

import pytest

from surgeval.phantom._processes import ProcessDied, all_in_processes, in_processes


def test_every_job_is_done_once_whatever_the_number_of_processes(tmp_path: Path) -> None:
    folders = [tmp_path / str(k) for k in range(5)]
    assert sorted(in_processes(os.mkdir, folders, 2)) == [(number, None) for number in range(5)]
    assert all(folder.is_dir() for folder in folders)
    assert not active_children()


def test_an_error_is_raised_here_and_what_is_in_flight_is_finished(tmp_path: Path) -> None:
    jobs = [tmp_path / "missing" / "inner", tmp_path / "beside", tmp_path / "later", tmp_path / "never"]
    with pytest.raises(FileNotFoundError, match="missing"):
        list(in_processes(os.mkdir, jobs, 1))
    assert not jobs[-1].exists(), "nothing is begun after an error"
    assert not active_children()


def test_a_process_that_dies_is_no_wait_without_end() -> None:
    with pytest.raises(ProcessDied):
        list(in_processes(os._exit, [3], 1))


@pytest.mark.parametrize(
    ("presses", "seconds", "least", "most"),
    [pytest.param((0.2,), 2, 2, 60, id="one waits for work in flight"), pytest.param((0.2, 0.2), 120, 0, 60, id="two")],
)
def test_ctrl_c(presses: tuple[float, ...], seconds: float, least: float, most: float) -> None:
    def press() -> None:
        for pause in presses:
            time.sleep(pause)
            os.kill(os.getpid(), signal.SIGINT)

    with closing(in_processes(time.sleep, [0, seconds], 1)) as finished:
        next(finished)  # the process is there, and has the second job
        begun = time.monotonic()
        threading.Thread(target=press).start()
        with pytest.raises(KeyboardInterrupt):
            list(finished)
    assert least - 0.1 < time.monotonic() - begun < most
    assert not active_children()


def test_results_come_in_the_order_of_the_jobs_with_progress() -> None:
    said: list[tuple[int, int]] = []
    jobs = [bytes([k]) * 300_000 for k in range(5)]  # more than a pipe holds
    for count in (1, 2):
        assert all_in_processes(bytes.upper, jobs, count, lambda *done: said.append(done)) == jobs
    assert said == [(k, 5) for k in range(1, 6)] * 2
    assert not active_children()


def test_ctrl_c_kills_work_whose_result_nobody_keeps() -> None:
    pressed = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))

    def press(done: int, total: int) -> None:
        if done == 1:
            pressed.start()

    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        all_in_processes(time.sleep, [0, 300, 300], 2, press)
    assert time.monotonic() - begun < 150
    assert not active_children()
