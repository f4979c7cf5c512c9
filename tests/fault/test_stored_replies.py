"""Replies survive kill -9 at any moment, several processes write into one folder, and nothing stored is asked again."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.conftest import LONG
from tests.e2e.test_run_focus import responses, write_pair
from tests.fault.engine_runs import PATIENCE, wait_until
from tests.loopback import Server, said, serving

from surgeval.qa import open_replies

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")

KILLS = 20 if LONG else 4
THREADS = 8

# Stores replies `NAME COUNT` and writes each key to standard output once `put` has returned.
WRITER = """
import os, sys, threading
from surgeval.qa import open_replies
folder, name, count, threads = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
log = open_replies(folder, "answer")
numbers, lock = iter(range(count)), threading.Lock()

def work():
    while True:
        with lock:
            number = next(numbers, None)
        if number is None:
            return
        log.put(f"{name} {number}", text=f"{name} {number} " + "x" * (number * 37 % 9000))
        os.write(1, f"{name} {number}\\n".encode())

workers = [threading.Thread(target=work) for _ in range(threads)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
"""

# Asks the questions of a folder as `surgeval run focus` does, without the time that a command takes to start.
ASKER = """
import sys
from functools import partial
from pathlib import Path
from surgeval.models.chat import ChatOptions
from surgeval.protocols.focus.asking.run import run_focus
data, model, out = sys.argv[1:4]
files = {"requests": Path(data) / "requests.json", "references": Path(data) / "references.json"}
run_focus(None, model, out, **files, options=ChatOptions(tries=1), concurrency=4, progress=False)
"""


def writer(folder: Path, name: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(folder), name, str(count), str(THREADS)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def check(folder: Path, stored: set[str]) -> None:
    """Every reply that was reported as stored is there, with its own text."""
    log = open_replies(folder, "answer")
    assert stored <= set(log)
    for key in log:
        found = log.find(key)
        assert found is not None and found.text.startswith(f"{key} ")
        assert len(found.text) == len(key) + 1 + int(key.split()[1]) * 37 % 9000


def test_a_killed_process_loses_no_reply_that_was_stored(tmp_path: Path) -> None:
    moments, reported = random.Random(11), set[str]()
    for number in range(KILLS):
        process = writer(tmp_path, f"worker{number}", 1_000_000)
        assert process.stdout is not None
        keys = {process.stdout.readline().strip()}
        time.sleep(moments.uniform(0, 0.3))
        process.kill()
        keys |= {line.strip() for line in process.stdout.read().splitlines()}
        process.wait()
        process.stdout.close()
        reported |= keys
        check(tmp_path, reported)
        extra = {key for key in open_replies(tmp_path, "answer") if key.startswith(f"worker{number} ")} - keys
        assert len(extra) <= THREADS  # written, and killed before it was reported
    assert len(reported) > 10 * KILLS


def test_processes_that_write_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    count, names = 300, ("a", "b", "c")
    writers = [writer(tmp_path, name, count) for name in (*names, "a")]  # two of them write the same keys
    for process in writers:
        process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
    check(tmp_path, {f"{name} {number}" for name in names for number in range(count)})
    assert len(open_replies(tmp_path, "answer")) == count * len(names)
    assert len(list((tmp_path / "answers").iterdir())) == len(writers)


FILLER = """
import sys
from surgeval.qa import open_replies
log = open_replies(sys.argv[1], "answer")
try:
    for n in range(99):
        log.put(f"w {n}", text=f"w {n} " + "x" * (n * 37 % 9000))
except Exception as error:
    print(type(error).__name__, error)
"""


def limit_file_size() -> None:
    import resource  # Windows has none

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))


def test_a_file_that_can_grow_no_further_ends_in_one_sentence_and_keeps_what_was_stored(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FILLER, str(tmp_path)], capture_output=True, text=True, preexec_fn=limit_file_size,
        timeout=PATIENCE, check=True,
    )  # fmt: skip
    assert done.stdout.startswith("RunStopped")
    assert "could not be stored: File too large; free some space" in done.stdout
    (path,) = (tmp_path / "answers").iterdir()
    assert path.stat().st_size == 100_000 and not path.read_bytes().endswith(b"\n")
    check(tmp_path, {f"w {n}" for n in range(path.read_bytes().count(b"\n"))})


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(Server()) as running:
        yield running


def test_a_run_killed_again_and_again_asks_again_only_what_was_in_flight(server: Server, tmp_path: Path) -> None:
    def asked_more_than(count: int) -> bool:
        return sum(server.asked.values()) > count

    def answer(number: int, count: int) -> tuple[int, str, dict[str, str]]:
        time.sleep(0.01)
        return said(str(number))

    server.script = answer
    most = 8 if LONG else 2
    questions = 80 * most
    write_pair(tmp_path / "D", questions)
    command = [sys.executable, "-c", ASKER, str(tmp_path / "D"), server.model, str(tmp_path / "run")]
    moments, kills = random.Random(3), 0
    while kills < most:
        before = sum(server.asked.values())
        process = subprocess.Popen(command)
        try:
            wait_until(partial(asked_more_than, before), "a request")
            time.sleep(moments.uniform(0, 0.15))
        finally:
            os.kill(process.pid, signal.SIGKILL)
            assert process.wait() == -signal.SIGKILL
        kills += 1
        time.sleep(0.1)  # what was in flight has reached the server
        stored = {int(key[1:]) for key in open_replies(tmp_path / "run", "answer")}
        asked = Counter(server.asked)
        assert set(asked) >= stored and sum(asked.values()) - len(stored) <= 4 * kills
    assert subprocess.run(command, timeout=PATIENCE, check=False).returncode == 0
    assert all(server.asked[number] == asked[number] for number in stored)
    assert sum(server.asked.values()) <= questions + 4 * kills
    assert responses(tmp_path / "run") == {f"q{n}": str(n) for n in range(questions)}

    # The replies alone suffice: without its parts the run is made again, and nothing is asked.
    asked, cases = Counter(server.asked), (tmp_path / "run" / "cases.parquet").read_bytes()
    shutil.rmtree(tmp_path / "run" / "parts")
    (tmp_path / "run" / "cases.parquet").unlink()
    assert subprocess.run(command, timeout=PATIENCE, check=False).returncode == 0
    assert server.asked == asked
    assert (tmp_path / "run" / "cases.parquet").read_bytes() == cases
