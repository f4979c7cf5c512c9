"""A studio that is killed, or whose disk is full, keeps every edit that it acknowledged, each once."""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fault.studio_edits import _request
from tests.studio_project import Project

from surgeval.records import Box
from surgeval.studio.store import Annotation, NotStored

SCRIPT = Path(__file__).with_name("studio_edits.py")
BURST = 200


def begin(folder: Path) -> None:
    with Project(folder) as project:
        editor = project.edit("setup")
        editor.add_video("v", width=64, height=48, names=[f"{n}.png" for n in range(50)])
        box = Box(0.0, 0.0, 9.0, 9.0)
        editor.add_instances(Annotation(f"a{n}", "v", n, "tools", "scissors", box, track=1) for n in range(50))


def killed_burst(folder: Path, start: int, after: int, delay: float) -> list[str]:
    """The ids that a process acknowledged before it was killed, some time after the given number of them."""
    command = [sys.executable, str(SCRIPT), str(folder), str(start), str(BURST)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    acknowledged: list[str] = []
    for line in process.stdout:
        if line.strip() != "ready":
            acknowledged.append(line.strip())
        if len(acknowledged) == after:
            threading.Timer(delay, process.send_signal, (signal.SIGKILL,)).start()
    assert process.wait() == -signal.SIGKILL
    return acknowledged


def check(folder: Path, acknowledged: list[str]) -> int:
    """Every acknowledged edit is there, at most one more, none twice, and the log gives the state."""
    with Project(folder, create=False) as project:
        stored = [operation.id for operation in project.operations() if operation.id.startswith("edit-")]
        assert len(stored) == len(set(stored))
        assert stored[: len(acknowledged)] == acknowledged
        moves = [_request(int(id.split("-")[1])) for id in stored]
        shifts: dict[str, float] = {}
        for request in moves:
            if request.kind == "instances.move":
                shifts[request.payload["ids"][0]] = shifts.get(request.payload["ids"][0], 0.0) + 1.0
        found = {one.id: one.box.x for one in project.instances("v", 0, 49) if one.name == "scissors"}
        assert {id: x for id, x in found.items() if x} == shifts
        assert project.replay() == project.state()
        return len(stored)


@pytest.mark.slow
def test_every_acknowledged_edit_survives_a_kill(tmp_path: Path, long: bool) -> None:
    begin(tmp_path)
    chance = random.Random(7)
    acknowledged: list[str] = []
    for round_number in range(20 if long else 3):
        start = 1000 * round_number
        acknowledged += killed_burst(tmp_path, start, chance.randrange(1, 60), chance.uniform(0.0, 0.02))
        count = check(tmp_path, acknowledged)
        assert count - len(acknowledged) in (0, 1)  # the edit in flight may have been stored
        with Project(tmp_path) as project:  # its client asks again, and it is there once
            again = _request(int(acknowledged[-1].split("-")[1]))
            assert project.apply(again).repeated
            acknowledged = [one.id for one in project.operations() if one.id.startswith("edit-")]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root; the file size limit below is tested instead")
    path = tmp_path / "disk"
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(path)]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"cannot mount a small file system here: {mounted.stderr.strip()}")
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


def edit_until_refused(project: Project, start: int) -> tuple[list[str], str]:
    acknowledged: list[str] = []
    for number in range(start, start + 5000):
        request = _request(number)
        try:
            project.apply(request)
        except NotStored as error:
            return acknowledged, str(error)
        acknowledged.append(request.id)
    pytest.fail("the disk never filled")


def test_a_full_disk_is_one_sentence_and_nothing_acknowledged_is_lost(disk: Path) -> None:
    folder = disk / "project"
    begin(folder)
    with Project(folder) as project:
        acknowledged, sentence = edit_until_refused(project, 0)
        assert "found no room" in sentence and "free some space and do it again" in sentence and "\n" not in sentence
        assert len(project.instances("v", 0, 49)) >= 50  # reading goes on
        subprocess.run(["mount", "-o", "remount,size=16m", str(disk)], check=True)
        project.apply(_request(len(acknowledged)))
    assert check(folder, [*acknowledged, f"edit-{len(acknowledged)}"]) == len(acknowledged) + 1


def test_a_file_size_limit_is_one_sentence_and_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    begin(tmp_path)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Project(tmp_path) as project:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, before[1]))
        try:
            acknowledged, sentence = edit_until_refused(project, 0)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert "found no room" in sentence and "\n" not in sentence
    assert check(tmp_path, acknowledged) == len(acknowledged)
