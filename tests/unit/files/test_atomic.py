"""Files that are whole or absent, also when two processes write one at once."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from surgeval.files import atomic_file, write_atomically


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
