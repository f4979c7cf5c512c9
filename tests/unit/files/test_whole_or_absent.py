"""Folders, files written by name, and lines: what a killed process leaves is whole, or nobody would read it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from surgeval.files import append_line, atomic_folder, atomic_path

_FOLDER = """
import sys, time
from surgeval.files import atomic_folder
with atomic_folder(sys.argv[1], replace=True) as partial:
    for number in range(3):
        (partial / f"{number}.txt").write_text("a frame")
    print("half", flush=True)
    time.sleep(60)
"""
_FILE = """
import sys, time
from surgeval.files import atomic_path
with atomic_path(sys.argv[1]) as partial:
    partial.write_text("half a table")
    print("half", flush=True)
    time.sleep(60)
"""


def _kill_in_the_middle(program: str, target: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", program, target], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "half\n"
        process.send_signal(signal.SIGKILL)


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_a_folder_whose_writer_is_killed_is_absent_and_the_next_writer_leaves_nothing_of_it(tmp_path: Path) -> None:
    target = tmp_path / "frames"
    _kill_in_the_middle(_FOLDER, target)
    assert not target.exists()
    assert [path.suffix for path in tmp_path.iterdir()] == [".partial"]
    with atomic_folder(target) as partial:
        (partial / "whole.txt").write_text("all of it")
    assert [str(path.relative_to(tmp_path)) for path in sorted(tmp_path.rglob("*"))] == ["frames", "frames/whole.txt"]


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_a_folder_that_was_to_be_replaced_is_the_old_one_after_a_kill(tmp_path: Path) -> None:
    (tmp_path / "frames").mkdir()
    (tmp_path / "frames" / "old.txt").touch()
    _kill_in_the_middle(_FOLDER, tmp_path / "frames")
    assert [path.name for path in (tmp_path / "frames").iterdir()] == ["old.txt"]


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_a_file_whose_writer_is_killed_is_absent_and_the_next_writer_leaves_nothing_of_it(tmp_path: Path) -> None:
    target = tmp_path / "boxes.csv"
    _kill_in_the_middle(_FILE, target)
    assert not target.exists() and len(list(tmp_path.iterdir())) == 1
    with atomic_path(target) as partial:
        partial.write_text("whole")
    assert [path.name for path in tmp_path.iterdir()] == ["boxes.csv"]


def _write_half_and_fail(path: Path) -> None:
    path.write_text("half")
    raise RuntimeError("the writer fails")


def test_an_error_leaves_no_trace(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), atomic_folder(tmp_path / "frames") as partial:
        _write_half_and_fail(partial / "000001.txt")
    with pytest.raises(RuntimeError), atomic_path(tmp_path / "boxes.csv") as partial:
        _write_half_and_fail(partial)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_holds_something_is_not_replaced_unless_asked_for(tmp_path: Path) -> None:
    (tmp_path / "frames").mkdir()
    (tmp_path / "frames" / "old.txt").touch()
    with pytest.raises(OSError, match="not empty"), atomic_folder(tmp_path / "frames"):
        pass
    assert [path.name for path in tmp_path.rglob("*")] == ["frames", "old.txt"]
    with atomic_folder(tmp_path / "frames", replace=True) as partial:
        (partial / "new.txt").touch()
    assert [path.name for path in tmp_path.rglob("*")] == ["frames", "new.txt"]


def test_everything_in_a_folder_is_on_the_disk_before_it_gets_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    sync = os.fsync

    def note(descriptor: int) -> None:
        if not (tmp_path / "frames").exists():
            synced.append(os.fstat(descriptor).st_ino)
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    with atomic_folder(tmp_path / "frames") as partial:
        (partial / "v1").mkdir()
        (partial / "v1" / "000001.txt").write_text("a frame")
        (partial / "index.json").write_text("{}")
    everything = [tmp_path / "frames", *(tmp_path / "frames").rglob("*")]
    assert {path.stat().st_ino for path in everything} == set(synced)


def test_a_link_in_place_of_the_hidden_folder_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / f".frames.{os.getpid()}.partial").symlink_to(tmp_path / "elsewhere")
    with atomic_folder(tmp_path / "frames") as partial:
        (partial / "000001.txt").touch()
    assert not list((tmp_path / "elsewhere").iterdir())
    assert not (tmp_path / "frames").is_symlink()


def test_half_a_line_of_a_writer_that_died_is_cut_off(tmp_path: Path) -> None:
    log = tmp_path / "curves.jsonl"
    append_line(log, b'{"epoch": 1}')
    with log.open("ab") as file:
        file.write(b'{"epo')
    append_line(log, b'{"epoch": 2}')
    assert log.read_bytes() == b'{"epoch": 1}\n{"epoch": 2}\n'


def test_lines_of_two_writers_at_once_are_all_there_and_whole(tmp_path: Path) -> None:
    program = (
        "import sys; from surgeval.files import append_line\n"
        "for n in range(50): append_line(sys.argv[1], sys.argv[2].encode() * 3000)"
    )
    writers = [subprocess.Popen([sys.executable, "-c", program, tmp_path / "log", name]) for name in "ab"]
    assert [writer.wait(timeout=240) for writer in writers] == [0, 0]
    lines = (tmp_path / "log").read_text().splitlines()
    assert sorted(set(lines)) == ["a" * 3000, "b" * 3000] and len(lines) == 100
