"""Files that are whole or absent, also when two processes write one at once."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from surgeval.files import append_line, atomic_file, atomic_folder, atomic_path, remove_temporary, write_atomically


def test_two_who_write_one_file_do_not_meet_and_the_last_stays(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    with atomic_file(page) as first:
        first.write(b"first, ")
        with atomic_file(page) as second:
            second.write(b"second")
        assert page.read_bytes() == b"second"
        first.write(b"but later")
    assert page.read_bytes() == b"first, but later"
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.skipif(sys.platform == "win32", reason="files cannot be locked there: only old ones are taken away")
def test_what_killed_processes_left_just_now_is_taken_away(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    script = (
        "import os, signal, sys\n"
        "from surgeval.files import atomic_file\n"
        "with atomic_file(sys.argv[1]) as first, atomic_file(sys.argv[1]) as second:\n"
        "    first.write(b'half')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(page)], check=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".report.html.1.tmp", ".report.html.tmp"]
    write_atomically(page, b"whole")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on the size of files")
@pytest.mark.parametrize("suffix", ["parquet", "lazy.parquet", "csv"])
def test_a_table_without_room_is_the_error_of_any_other_file(tmp_path: Path, suffix: str) -> None:
    script = (
        "import resource, signal, sys, polars as pl\n"
        "from surgeval.files import write_csv_file, write_parquet_file\n"
        "table, path = pl.DataFrame({'score': [n / 7 for n in range(10_000)]}), sys.argv[1]\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (5000, resource.RLIM_INFINITY))\n"
        "write = write_csv_file if path.endswith('csv') else write_parquet_file\n"
        "try:\n"
        "    write(table.lazy() if 'lazy' in path else table, path)\n"
        "except OSError as error:\n"
        "    print(error.errno, error.filename == path)\n"
    )
    target = tmp_path / f"scores.{suffix}"
    ended = subprocess.run([sys.executable, "-c", script, str(target)], capture_output=True, text=True, check=False)
    assert ended.stdout == f"{errno.EFBIG} True\n", ended.stderr
    assert not list(tmp_path.iterdir())


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
    assert [path.name for path in tmp_path.iterdir()] == [".frames.tmp"]
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
    assert [path.name for path in tmp_path.iterdir()] == [".boxes.tmp.csv"]
    with atomic_path(target) as partial:
        partial.write_text("whole")
    assert [path.name for path in tmp_path.iterdir()] == ["boxes.csv"]


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_only_what_dead_processes_left_is_removed(tmp_path: Path) -> None:
    for program, name in ((_FOLDER, "frames"), (_FILE, "boxes.csv")):
        _kill_in_the_middle(program, tmp_path / name)
    with atomic_folder(tmp_path / "masks"), atomic_path(tmp_path / "tracks.csv"), atomic_file(tmp_path / "a.json"):
        assert len(list(tmp_path.iterdir())) == 5
        assert remove_temporary(tmp_path) == 2
        assert sorted(path.name for path in tmp_path.iterdir()) == [".a.json.tmp", ".masks.tmp", ".tracks.tmp.csv"]


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
    (tmp_path / ".frames.tmp").symlink_to(tmp_path / "elsewhere")
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
