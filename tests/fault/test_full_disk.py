"""A full disk ends with one sentence and a folder that the same command completes once there is room."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fault.engine_runs import cases, finished, parts

OPTIONS = ("--units", "20", "--cases", "400", "--sleep", "0")
PAGE = 4096


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte, which the tests resize."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root; the file size limit below is tested instead")
    path = tmp_path / "disk"
    path.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", path], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"cannot mount a small file system here: {mounted.stderr.strip()}")
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", path], check=True)


def resize(disk: Path, size: int) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size}", disk], check=True)


@pytest.mark.parametrize(
    ("moment", "executor"),
    [
        ("start", "serial"),
        ("parts", "processes"),
        ("compaction", "serial"),
        pytest.param("start", "processes", marks=pytest.mark.long),
        pytest.param("parts", "serial", marks=pytest.mark.long),
        pytest.param("compaction", "processes", marks=pytest.mark.long),
    ],
)
def test_a_full_disk_is_said_clearly_and_the_run_resumes_when_there_is_room(
    disk: Path, tmp_path: Path, executor: str, moment: str
) -> None:
    finished(tmp_path / "whole", *OPTIONS)
    pages = sum(-(-path.stat().st_size // PAGE) for path in (tmp_path / "whole/parts").iterdir())
    resize(disk, PAGE * {"start": 1, "parts": pages // 2, "compaction": pages + 6}[moment])

    full = finished(disk / "run", *OPTIONS, "--executor", executor)
    assert full.returncode == 2
    message = full.stderr.splitlines()[-1]
    assert "No space left on device; free some space and run the same command again" in message
    done = parts(disk / "run")
    assert f"{done} of 20 units are done" in message
    assert {"start": done == 0, "parts": 0 < done < 20, "compaction": done == 20}[moment]
    assert "Traceback" not in full.stderr
    assert not (disk / "run/cases.parquet").exists()

    resize(disk, 1 << 20)
    again = finished(disk / "run", *OPTIONS, "--executor", executor)
    assert again.returncode == 0, again.stderr
    assert cases(disk / "run") == cases(tmp_path / "whole")
    assert json.loads((disk / "run/run.json").read_text())["status"] == "done"


def test_a_limit_on_the_size_of_files_ends_the_same_way(tmp_path: Path) -> None:
    finished(tmp_path / "whole", *OPTIONS)
    limit = len(cases(tmp_path / "whole")) // 2
    limited = finished(tmp_path / "run", *OPTIONS, "--file-limit", str(limit))
    assert limited.returncode == 2
    assert "File too large; free some space and run the same command again, 20 of 20" in limited.stderr
    assert json.loads((tmp_path / "run/run.json").read_text())["status"] == "stopped"
    assert not list((tmp_path / "run").glob("*.tmp"))

    again = finished(tmp_path / "run", *OPTIONS)
    assert again.returncode == 0, again.stderr
    assert "20 were there already" in again.stdout
    assert cases(tmp_path / "run") == cases(tmp_path / "whole")
