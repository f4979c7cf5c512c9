"""Processes that render videos: results in order, and no process left."""

from __future__ import annotations

import os
import signal
import threading
import time
from multiprocessing import active_children

import pytest
from studies.embedded_models.render import map_in_processes


def test_results_come_in_the_order_of_the_jobs_with_progress() -> None:
    said: list[tuple[int, int]] = []
    jobs = [bytes([k]) * 300_000 for k in range(5)]  # more than a pipe holds
    for count in (1, 2):
        assert map_in_processes(bytes.upper, jobs, count, lambda *done: said.append(done)) == jobs
    assert said == [(k, 5) for k in range(1, 6)] * 2
    assert not active_children()


def test_ctrl_c_kills_work_whose_result_nobody_keeps() -> None:
    pressed = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))

    def press(done: int, total: int) -> None:
        if done == 1:
            pressed.start()

    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        map_in_processes(time.sleep, [0, 300, 300], 2, press)
    assert time.monotonic() - begun < 150
    assert not active_children()
