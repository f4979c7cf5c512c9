"""Ctrl-C, once or several times, while processes render or prepare pictures: one line, 130, and nobody is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.fault.engine_runs import PATIENCE, alive, wait_until

LINE = "surgeval: interrupted; the same command again does what is left"
TRAIN = ("train", "phantom-clip", "--videos", "6", "--steps", "1", "--batch", "2", "--workers", "2")
PICTURES = """
import sys, time
from pathlib import Path
import numpy as np
from surgeval.cli import app as _main, main
from surgeval.detector.classes import Classes
from surgeval.detector.data import TrainingSet, batches, picture_processes, processes as _processes
from surgeval.records import Box, Frame, Instance, Triplet
from surgeval.vocab import load_labels

hook = Instance(Triplet(2), Box(32, 24, 64, 48))
frames = [Frame("V1", str(k), k, None, None, 128, 96, (hook,)) for k in range(32)]
data = TrainingSet.of(frames, Classes.of(load_labels("cholec80")), image_size=64,
                      read=lambda frame: np.full((96, 128, 3), 9, np.uint8))
made = _processes._made

def slowly(errand):  # long enough to press a key while the processes end
    Path(sys.argv[1]).touch()
    time.sleep(1)
    return made(errand)

def train(**given):
    with picture_processes(data, 16, 2) as workers:
        while True:
            list(batches(data, batch=16, workers=workers))

_processes._made, _main.app = slowly, train
main()
"""


def children(session: int) -> list[int]:
    """The processes of a session that still run; workers have process groups of their own."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split() if entry.name.isdecimal() else []
        except OSError:  # it ended meanwhile
            continue
        if fields and int(fields[3]) == session and alive(int(entry.name)):
            found.append(int(entry.name))
    return found


def press(process: subprocess.Popen[str], presses: int, pause: float) -> str:
    """Press so often, as a terminal does: to the whole group; what the command says, as it ends with nobody left."""
    try:
        for _ in range(presses):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGINT)
            time.sleep(pause)
        said = process.communicate(timeout=PATIENCE)[1]
        wait_until(lambda: not children(process.pid), "all processes to end")
    finally:
        for left in children(process.pid):
            os.kill(left, signal.SIGKILL)
    assert process.returncode == 130, said
    return said


def started(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


@pytest.mark.parametrize("presses", [1, 2, 4])
def test_pictures_for_a_training(tmp_path: Path, presses: int) -> None:
    (tmp_path / "train.py").write_text(PICTURES)
    process = started(str(tmp_path / "train.py"), str(tmp_path / "begun"))
    wait_until(lambda: (tmp_path / "begun").exists() or process.poll() is not None, "the processes to work")
    assert press(process, presses, 0.4).splitlines() == [LINE]


@pytest.mark.long
@pytest.mark.parametrize("presses", [1, 2])
def test_videos_for_a_training_on_the_phantom(tmp_path: Path, presses: int) -> None:
    pytest.importorskip("torch")
    process = started("-m", "studies.embedded_models", *TRAIN, "--out", str(tmp_path))
    wait_until(lambda: len(children(process.pid)) >= 3 or process.poll() is not None, "the processes to start")
    time.sleep(1)  # begun or beginning: both end alike
    said = press(process, presses, 0.2)
    assert said.splitlines()[-1:] == ["Interrupted."] and "Traceback" not in said
