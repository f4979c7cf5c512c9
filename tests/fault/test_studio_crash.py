"""A studio that is killed, or whose database is, or whose disk is full, keeps every edit that it acknowledged, once."""

from __future__ import annotations

import os
import random
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.fault.studio_burst import EDITS, PROGRAMS, Burst, begin, check, edit, make_folder
from tests.postgres import Postgres, postgres
from tests.studio_command import Client, Command, running, start


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    """A PostgreSQL server that stores as it does for people."""
    with postgres(sync=True) as found:
        yield found


def killed_burst(place: Path, database: str | None, chance: random.Random) -> None:
    """A burst of edits in which the studio is killed; the next one takes up what was not acknowledged."""
    folder = make_folder(place / "op")
    where, options = (folder, []) if database is None else (database, ["--database", database])
    with running(folder, *options, log=place / "log") as studio:
        begin(studio.host, studio.token)
        burst = Burst(range(EDITS))
        burst.send(studio, after=chance.randrange(5, EDITS - 20), delay=chance.uniform(0.0, 0.02), kill=studio.kill)
        assert not burst.refused
        assert any(burst.waiting), "it was killed after the burst"
    with running(folder, *options, log=place / "log") as again:
        check(where, burst.acknowledged, in_flight=PROGRAMS)
        last = burst.acknowledged[-1]  # an answer that got lost on its way: the same edit again
        status, said = Client(again.host, token=again.token).edit(f"edit-{last}", *edit(last))
        assert (status, said["repeated"]) == (200, True)
        burst.send(again)
        assert not burst.refused
        assert sorted(burst.acknowledged) == list(range(EDITS))
        check(where, burst.acknowledged)


@pytest.mark.slow
@pytest.mark.timeout(1800)  # at full counts
def test_every_acknowledged_edit_survives_a_kill_of_the_studio(tmp_path: Path, long: bool) -> None:
    chance = random.Random(7)
    for number in range(20 if long else 1):
        killed_burst(tmp_path / str(number), None, chance)


@pytest.mark.slow
@pytest.mark.timeout(1800)  # at full counts
def test_the_same_over_postgresql(tmp_path: Path, server: Postgres, long: bool) -> None:
    chance = random.Random(8)
    for number in range(20 if long else 1):
        killed_burst(tmp_path / str(number), server.new(), chance)


@pytest.mark.slow
@pytest.mark.timeout(1800)  # at full counts
def test_a_kill_of_postgresql_is_said_and_loses_nothing(tmp_path: Path, server: Postgres, long: bool) -> None:
    address = server.new()
    with running(make_folder(tmp_path / "op"), "--database", address, log=tmp_path / "log") as studio:
        begin(studio.host, studio.token)
        acknowledged: list[int] = []
        for number in range(5 if long else 1):
            burst = Burst(range(EDITS * number, EDITS * (number + 1)))
            burst.send(studio, after=30 + 10 * number, kill=server.kill)
            assert burst.refused, "it was killed after the burst"
            for status, said in burst.refused:
                assert status == 503, said
                assert "expected a database that works" in said["error"]
                assert "\n" not in said["error"]
            assert Client(studio.host, token=studio.token).ask("GET", "/api/project")[0] == 503
            server.restart()
            burst.refused.clear()
            burst.send(studio)  # the studio itself goes on
            assert not burst.refused
            acknowledged += burst.acknowledged
            check(address, acknowledged)
        assert "Traceback" not in studio.stop()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root; the file size limit below is tested instead")
    path = tmp_path / "disk"
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(path)]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"cannot mount a small file system here: {mounted.stderr.strip()}")
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


def nearly_fill(disk: Path) -> None:
    """Leave room for some dozens of edits: each is flushed to disk."""
    (disk / "filler").write_bytes(bytes(max(0, shutil.disk_usage(disk).free - (200 << 10))))


def edits_until_refused(client: Client) -> tuple[list[int], str]:
    acknowledged: list[int] = []
    for number in range(5000):
        status, said = client.edit(f"edit-{number}", *edit(number))
        if status != 200:
            assert status == 507
            return acknowledged, said["error"]
        acknowledged.append(number)
    pytest.fail("the disk never filled")


def refused_and_taken_again(studio: Command, folder: Path, make_room: Callable[[], object]) -> None:
    client = Client(studio.host, token=studio.token)
    acknowledged, sentence = edits_until_refused(client)
    assert "found no room" in sentence
    assert "free some space and do it again" in sentence
    assert "\n" not in sentence
    waiting = len(acknowledged)
    assert client.edit(f"edit-{waiting}", *edit(waiting))[0] == 507  # again, and it still says so
    assert len(client.get("/api/videos/v/annotations?first=0&last=49")["annotations"]) >= 50  # reading goes on
    assert client.ask("GET", "/frames/v/7")[0] == 200
    make_room()
    for number in range(waiting, waiting + 20):
        assert client.edit(f"edit-{number}", *edit(number))[0] == 200
        acknowledged.append(number)
    check(folder, acknowledged)
    assert "Traceback" not in studio.stop()
    check(folder, acknowledged)


def test_a_full_disk_is_said_and_nothing_acknowledged_is_lost(disk: Path, tmp_path: Path) -> None:
    folder = make_folder(disk / "op")
    with running(folder, log=tmp_path / "log") as studio:
        begin(studio.host, studio.token)
        nearly_fill(disk)
        command = ["mount", "-o", "remount,size=16m", str(disk)]
        refused_and_taken_again(studio, folder, lambda: subprocess.run(command, check=True))


def test_a_limit_on_the_size_of_files_is_said_and_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "op")
    with running(folder, log=tmp_path / "log") as studio:
        begin(studio.host, studio.token)
        before = resource.prlimit(studio.process.pid, resource.RLIMIT_FSIZE)
        largest = max(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        limit = largest + (100 << 10)  # each edit adds to the log of the database and is flushed to disk
        resource.prlimit(studio.process.pid, resource.RLIMIT_FSIZE, (limit, before[1]))
        refused_and_taken_again(
            studio, folder, lambda: resource.prlimit(studio.process.pid, resource.RLIMIT_FSIZE, before)
        )


def test_a_studio_that_is_killed_on_a_full_disk_opens_again(disk: Path, tmp_path: Path) -> None:
    folder = make_folder(disk / "op")
    with running(folder, log=tmp_path / "log") as studio:
        begin(studio.host, studio.token)
        nearly_fill(disk)
        acknowledged, _ = edits_until_refused(Client(studio.host, token=studio.token))
        studio.kill()
    with running(folder, log=tmp_path / "log") as again:
        check(folder, acknowledged)
        assert Client(again.host, token=again.token).get("/api/project")["version"] >= len(acknowledged)


def test_a_studio_cannot_begin_on_a_full_disk_and_says_so(disk: Path, tmp_path: Path) -> None:
    folder = make_folder(disk / "op")
    filled = subprocess.run(["dd", "if=/dev/zero", f"of={disk}/filler", "bs=4096"], capture_output=True, check=False)
    assert filled.returncode == 1  # no space left
    with pytest.raises(AssertionError) as ended:
        start(folder, log=tmp_path / "log")
    said = str(ended.value)
    assert "found no room" in said
    assert "Traceback" not in said
