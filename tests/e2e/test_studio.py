"""`surgeval studio` as a command: it serves until it is stopped, keeps edits through a kill, says what is wrong."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from http.client import HTTPConnection
from pathlib import Path

import pytest
from PIL import Image
from tests.studio_project import Project


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "V1").mkdir()
    for k in range(20):
        Image.new("RGB", (64, 48), (k, 0, 0)).save(tmp_path / "V1" / f"{k}.png")
    return tmp_path


def start(folder: Path, *options: str) -> tuple[subprocess.Popen[str], str]:
    """The command in a process of its own, and its host and port."""
    command = [sys.executable, "-m", "surgeval", "studio", str(folder), "--no-browser", "--author", "amy", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    end = time.monotonic() + 90
    said = ""
    while time.monotonic() < end and process.poll() is None:
        said += process.stdout.readline()
        found = re.search(r"http://(127\.0\.0\.1:\d+)/", said)
        if found:
            return process, found.group(1)
    process.kill()
    raise AssertionError(said)


def flag(host: str, number: int) -> int:
    """One edit over HTTP; its status."""
    body = {"id": f"edit-{number}", "kind": "frames.flag",
            "payload": {"video": "V1", "first": number % 20, "last": number % 20, "reason": f"r{number}"}}  # fmt: skip
    connection = HTTPConnection(host, timeout=20)
    headers = {"origin": f"http://{host}", "content-type": "application/json"}
    connection.request("POST", "/api/operations", json.dumps(body), headers)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


def test_a_killed_studio_has_every_edit_that_it_acknowledged(folder: Path, long: bool) -> None:
    told = 0
    for _ in range(20 if long else 3):
        process, host = start(folder)
        stop = told + 40
        try:
            while told < stop:
                assert flag(host, told) == 200
                told += 1
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait(20)
    with Project(folder, create=False) as project:
        reasons = [one.reason for one in project.flags("V1")]
        assert sorted(reasons) == sorted(f"r{k}" for k in range(told))
        assert project.replay() == project.state()


def test_ctrl_c_ends_the_studio_quietly(folder: Path) -> None:
    process, _ = start(folder)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=30)
    assert process.returncode == 0, said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "found no folder"),
        (["."], "neither film nor image"),
        ([], "expected one of them"),
        ([".", "--demo"], "expected one of them"),
        (["V1", "--schema", "none.json"], "none.json"),
        (["V1", "--token", "short"], "found 5 characters"),
        (["V1", "--database", "mysql://x/y"], "expected postgresql"),
    ],
)
def test_what_is_wrong_is_one_sentence(tmp_path: Path, arguments: list[str], said: str) -> None:
    (tmp_path / "V1" / "a").mkdir(parents=True)
    Image.new("RGB", (64, 48)).save(tmp_path / "V1" / "a" / "1.png")
    place = tmp_path
    if "." in arguments:
        place = tmp_path / "empty"
        place.mkdir()
    command = [sys.executable, "-m", "surgeval", "studio", *arguments, "--no-browser"]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
