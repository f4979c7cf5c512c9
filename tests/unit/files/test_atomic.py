"""Files that are whole or absent, also when two processes write one at once."""

from __future__ import annotations

import os
import time
from pathlib import Path

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


def test_what_a_killed_process_left_is_taken_away(tmp_path: Path) -> None:
    left = tmp_path / ".report.html.tmp"
    left.write_bytes(b"half")
    os.utime(left, (0, time.time() - 3600))
    write_atomically(tmp_path / "report.html", b"whole")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
