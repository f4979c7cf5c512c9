"""`surgeval studio` as a command: it serves until it is stopped, and says what is wrong."""

from __future__ import annotations

import time
from http.client import HTTPConnection
from pathlib import Path

import pytest
from PIL import Image
from tests.e2e.conftest import Quick
from tests.studio_command import Client, running


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "V1").mkdir()
    for k in range(20):
        Image.new("RGB", (64, 48), (k, 0, 0)).save(tmp_path / "V1" / f"{k}.png")
    return tmp_path


def test_ctrl_c_ends_the_studio_quietly(folder: Path, tmp_path: Path) -> None:
    with running(folder, "--author", "amy", log=tmp_path / "log") as studio:
        assert Client(studio.host, token=studio.token).get("/api/project")["author"] == "amy"
        listening = HTTPConnection(studio.host, timeout=120)  # as an open tab does
        listening.request("GET", "/api/events", headers={"authorization": f"Bearer {studio.token}"})
        assert listening.getresponse().status == 200
        said = studio.stop()
    assert studio.process.returncode == 0, said
    assert "Traceback" not in said


def test_the_browser_is_led_to_the_token_by_a_file_that_nobody_else_can_read(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser, opened = tmp_path / "browser", tmp_path / "opened"
    browser.write_text(f'#!/bin/sh\necho "$@" > {opened}.new && mv {opened}.new {opened}\n')
    browser.chmod(0o700)
    monkeypatch.setenv("BROWSER", str(browser))
    with running(folder, "--browser", log=tmp_path / "log") as studio:
        while not opened.exists():
            time.sleep(0.02)
        address = opened.read_text().strip()  # as other accounts see it in the list of processes
        page = Path(address.removeprefix("file://"))
        assert studio.token is not None and studio.token not in address
        assert f"http://{studio.host}/?token={studio.token}" in page.read_text()
        assert page.stat().st_mode & 0o777 == 0o600
        studio.stop()
    assert not page.exists()


def test_without_a_token_the_command_warns(folder: Path, tmp_path: Path) -> None:
    with running(folder, "--no-token", log=tmp_path / "log") as studio:
        assert studio.token is None
        assert Client(studio.host).get("/api/project")["author"]
        assert "every account on this machine can read and edit this project" in studio.stop()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "found no folder"),
        (["."], "neither film nor image"),
        ([], "expected one of them"),
        ([".", "--demo"], "expected one of them"),
        (["V1", "--schema", "none.json"], "none.json"),
        (["V1", "--token", "short"], "found 5 characters"),
        (["V1", "--token", "a-token-of-this-ward", "--no-token"], "exclude each other"),
        (["V1", "--host", "0.0.0.0", "--no-token"], "other machines can reach this server"),
        (["V1", "--database", "mysql://x/y"], "expected postgresql"),
    ],
)
def test_what_is_wrong_is_one_sentence(
    quick: Quick, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    (tmp_path / "V1" / "a").mkdir(parents=True)
    Image.new("RGB", (64, 48)).save(tmp_path / "V1" / "a" / "1.png")
    if "." in arguments:
        (tmp_path / "empty").mkdir()
        monkeypatch.chdir(tmp_path / "empty")
    code, _, errors = quick("studio", *arguments, "--no-browser")
    assert code == 2
    assert said in errors
    assert errors.startswith("surgeval: ") and "Traceback" not in errors
