"""Ctrl-C and a closed pipe, as a shell sends them: to a real process group."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from surgeval.phantom import write_phantom


def _start(cwd: Path, *args: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "surgeval", *args],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.parametrize("times", [pytest.param(1, marks=pytest.mark.long), 2])
def test_ctrl_c_while_rendering_is_one_line_and_130_and_the_rest_is_done_later(tmp_path: Path, times: int) -> None:
    settings = ("data", "phantom", "--out", "D", "--videos", "4", "--seconds", "6", "--processes", "2")
    process = _start(tmp_path, *settings)
    deadline = time.monotonic() + 240
    while not list((tmp_path / "D" / "frames").glob(".*.tmp/*.jpg")) and time.monotonic() < deadline:
        time.sleep(0.02)
    for _ in range(times):
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.3)
    _, errors = process.communicate(timeout=240)
    assert process.returncode == 130
    *_, last = errors.strip().splitlines()
    assert last == "surgeval: interrupted; the same command again does what is left"
    again = _start(tmp_path, *settings)
    lines = again.communicate(timeout=240)[1].splitlines()
    assert all(line.startswith("frames ") for line in lines)
    assert again.returncode == 0
    assert len(list((tmp_path / "D" / "truth").glob("*.json"))) == 4
    assert not list((tmp_path / "D" / "frames").glob(".*"))


def test_a_reader_that_leaves_early_is_not_a_failed_case(tmp_path: Path) -> None:
    command = f"{sys.executable} -m surgeval data list --json | head -c 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0
    assert "Traceback" not in done.stderr


def test_a_page_that_ctrl_c_stopped_is_written_by_the_same_command(tmp_path: Path) -> None:
    write_phantom(tmp_path / "D", seed=7, videos=2, seconds=4, processes=1)
    words = ("report", "D", "--out", "R")
    process = _start(tmp_path, *words)
    deadline = time.monotonic() + 240
    while not list((tmp_path / "R").glob("[a-z]*")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=240)
    assert process.returncode == 130, errors
    assert not (tmp_path / "R" / "report.html").exists()
    again = _start(tmp_path, *words)
    again.communicate(timeout=240)
    assert again.returncode == 0
    assert (tmp_path / "R" / "report.html").exists()
    assert not list((tmp_path / "R").glob(".*"))
