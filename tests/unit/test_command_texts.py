"""Names and titles on the command line: bytes that are no text are refused before anything is done with them."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest
from PIL import Image

from surgeval.cli.app import run
from surgeval.errors import BadInput
from surgeval.studio.server import serve

BYTES = os.fsdecode(b"Ad\xff")


@pytest.fixture
def films(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "V").mkdir()
    Image.new("RGB", (32, 32)).save(tmp_path / "V" / "1.png")
    monkeypatch.setattr("surgeval.studio.server.page_built", lambda: True)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["studio", ".", "--author", BYTES], "author"),
        (["studio", ".", "--name", "ward7", "--name", BYTES], "name"),
        (["studio", ".", "--token", BYTES], "token"),
        (["studio", ".", "--host", BYTES], "host"),
        (["studio", ".", "--database", f"postgresql://u:{BYTES}@h/x"], "database"),
        (["data", "import", "V", "--into", ".", "--author", BYTES], "author"),
        (["questions", "review", ".", "--as", BYTES], "name"),
        (["rank", ".", "--out", "page", "--title", BYTES], "title"),
    ],
)
def test_bytes_that_are_no_text_are_refused(
    films: Path, capsys: pytest.CaptureFixture[str], words: list[str], name: str
) -> None:
    assert run(words) == 2
    assert capsys.readouterr().err == f"surgeval: {name}: found bytes that are no text, expected UTF-8\n"
    assert [file.name for file in films.iterdir()] == ["V"]


def test_a_path_may_hold_any_bytes(films: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (films / "V").rename(films / BYTES)
    run(["data", "check", BYTES])
    assert "found bytes that are no text" not in capsys.readouterr().err


@pytest.mark.parametrize("author", [BYTES, "a\x1b[2J", " ", "a" * 101])
def test_a_studio_of_nobody_does_not_start(films: Path, author: str) -> None:
    said = r"^author: found .*, expected at most 100 printable letters"
    with pytest.raises(BadInput, match=said), serve(films, author=author):
        pass
    assert [file.name for file in films.iterdir()] == ["V"]


def test_an_account_without_a_name_is_an_annotator(
    films: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def unknown(number: int) -> None:
        raise KeyError(f"getpwuid(): uid not found: {number}")

    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    authors: list[str] = []

    def stop(*_: object, author: str, **__: object) -> None:
        authors.append(author)
        raise BadInput("enough")

    monkeypatch.setattr("surgeval.studio.server.serve", stop)
    monkeypatch.setattr("surgeval.studio.exchange.import_dataset", stop)
    assert run(["studio", ".", "--no-browser"]) == 2
    assert run(["data", "import", "V", "--into", ".", "--schema", "prostatd"]) == 2
    assert authors == ["annotator", "annotator"], capsys.readouterr().err
