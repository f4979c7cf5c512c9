"""A full disk ends with one sentence and a folder that the same command completes once there is room."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fault.engine_runs import cases, finished, parts

from surgeval.datasets import open_dataset
from surgeval.phantom import simulate_detector, write_phantom

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


def surgeval(*words: object) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own: a full disk may leave this one half-written."""
    line = [sys.executable, "-m", "surgeval", *map(str, words)]
    return subprocess.run(line, capture_output=True, text=True, check=False)


def test_scores_that_found_no_room_are_written_by_the_same_command(disk: Path, tmp_path: Path, long: bool) -> None:
    write_phantom(tmp_path / "phantom", seed=7, videos=2, seconds=2, processes=1)
    dataset = open_dataset(tmp_path / "phantom")
    simulate_detector(dataset, "good").write_parquet(tmp_path / "boxes.parquet")
    words = ("score", "triplets", "--data", dataset.root, "--pred", tmp_path / "boxes.parquet", "--out", disk / "run")
    # the lock alone; the tables of the scores in part; a part of the page's files
    for pages in (2, 20, 60) if long else (20,):
        resize(disk, PAGE * pages)
        full = surgeval(*words)
        assert full.returncode == 2
        assert full.stderr.splitlines()[-1].endswith(
            "No space left on device; free some space and run the same command again"
        ), full.stderr
        assert "Traceback" not in full.stderr
    resize(disk, 20 << 20)
    again = surgeval(*words)
    assert again.returncode == 0, again.stderr
    left = [path.name for path in (disk / "run").rglob(".*")]
    assert not left and (disk / "run/report.html").is_file()


def test_detections_that_found_no_room_are_written_by_the_same_command(disk: Path, tmp_path: Path) -> None:
    write_phantom(tmp_path / "phantom", seed=7, videos=1, seconds=1, processes=1)
    words = ("detect", "--model", "tdnet-p", "--data", tmp_path / "phantom", "--out", disk / "boxes.parquet")
    resize(disk, PAGE * 3)
    full = surgeval(*words)
    assert full.returncode == 2
    assert "o space left on device; free some space and run the same command again" in full.stderr.splitlines()[-1]
    assert "Traceback" not in full.stderr
    resize(disk, 1 << 20)
    again = surgeval(*words)
    assert again.returncode == 0, again.stderr
    assert [path.name for path in disk.iterdir()] == ["boxes.parquet"]


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
