"""Nobody reads what a run or a command prints: the work goes on, and the exit code is its own."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path

import pytest
from tests.fault.engine_runs import PATIENCE, cases, command, finished

from surgeval.engine import load_record

SURGEVAL = [sys.executable, "-m", "surgeval"]


def without_reader(words: list[str], *, stdout: bool = False, stderr: bool = False) -> subprocess.CompletedProcess[str]:
    """The command with the named streams in a pipe whose other end is closed already."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        return subprocess.run(
            words,
            stdout=writing if stdout else subprocess.PIPE,
            stderr=writing if stderr else subprocess.PIPE,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    finally:
        os.close(writing)


def closed(shell: str, *words: str) -> subprocess.CompletedProcess[str]:
    """The command with a stream closed by the shell."""
    line = ["bash", "-c", f'"$@" {shell}', "bash", *SURGEVAL, *words]
    return subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE, check=False)


@pytest.mark.parametrize("executor", ["serial", "processes"])
def test_a_run_whose_progress_nobody_reads_is_done_all_the_same(tmp_path: Path, executor: str) -> None:
    options = ("--units", "5", "--executor", executor)
    done = without_reader(command(tmp_path / "unread", *options), stderr=True)
    assert load_record(tmp_path / "unread").status == "done"
    assert "5 units, 25 cases" in done.stdout  # what goes to the other stream is not lost
    finished(tmp_path / "read", *options)
    assert cases(tmp_path / "unread") == cases(tmp_path / "read")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_run_whose_progress_goes_to_a_full_disk_is_done_all_the_same(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        subprocess.run(command(tmp_path / "r", "--units", "3"), stdout=subprocess.PIPE, stderr=full, timeout=PATIENCE)
    assert load_record(tmp_path / "r").status == "done"


@pytest.mark.parametrize("words", [["models", "list"], ["data", "list", "--json"], ["--version"], ["--help"]])
def test_a_list_that_nobody_reads_is_no_failure(words: list[str]) -> None:
    done = without_reader([*SURGEVAL, *words], stdout=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_error_that_nobody_reads_keeps_its_code() -> None:
    assert without_reader([*SURGEVAL, "data", "check", "nothing-here"], stdout=True, stderr=True).returncode == 2


@pytest.mark.parametrize("words", [["models", "list"], ["data", "list", "--json"], ["--help"]])
def test_a_closed_output_is_no_failure(words: list[str]) -> None:
    done = closed(">&-", *words)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_closed_error_stream_takes_nothing_from_the_output() -> None:
    done = closed("2>&-", "models", "list")
    assert done.returncode == 0 and "embedded" in done.stdout
    assert closed("2>&-", "data", "check", "nothing-here").returncode == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("words", [["models", "list"], ["data", "list", "--json"]])
def test_an_output_that_cannot_be_stored_is_told(words: list[str]) -> None:
    done = closed(">/dev/full", *words)
    assert done.returncode == 2
    assert done.stderr == "surgeval: no space left on device; free some space and run the same command again\n"


def test_a_name_cannot_steer_the_terminal() -> None:
    import pty

    master, slave = pty.openpty()  # elsewhere such codes are left out of what is printed
    try:
        words = [*SURGEVAL, "data", "check", "x\x1b[31m\ny"]
        done = subprocess.run(words, stdout=slave, stderr=slave, timeout=PATIENCE, check=False)
        shown = ""
        while "folder" not in shown and select.select([master], [], [], PATIENCE)[0]:
            shown += os.read(master, 10_000).decode()  # as much as has come through
    finally:
        os.close(master)
        os.close(slave)
    assert done.returncode == 2
    assert "\x1b" not in shown
    assert "surgeval: x\\x1b[31m\\ny: found no such file or folder" in shown
