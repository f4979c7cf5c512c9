"""Stored replies: lines of `answers/WORKER.jsonl` beside a row each in one SQLite file, in the same run.

A reply has 4 000 characters. The peer is one table under a write-ahead log with a full fsync per row, which is the
simplest store of the standard library with the same promise: a reply is on disk before it counts.

    python benchmarks/answers.py [--seconds 12] [--lines 100000]
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sqlite3
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from surgeval.qa import open_replies

ROUNDS = 3
ALPHABET = "abcdefghijklmnopqrstuvwxyz     .,\nABCDEFGHé"
LIMITS = {1: 0.25, 32: 4.0}  # replies a second of ours over those of SQLite, by concurrency
LIMIT_MEMORY = 600.0  # bytes that a reply of an opened folder takes


def open_table(path: Path) -> sqlite3.Connection:
    """One table of replies."""
    base = sqlite3.connect(path, timeout=60, isolation_level=None, check_same_thread=False)
    base.execute("PRAGMA journal_mode = WAL")
    base.execute("PRAGMA synchronous = FULL")
    base.execute("CREATE TABLE IF NOT EXISTS answers (question TEXT PRIMARY KEY, content TEXT, latency REAL, requests "
                 "INTEGER, prompt_tokens INTEGER, completion_tokens INTEGER, model TEXT) WITHOUT ROWID")  # fmt: skip
    return base


def rate(put: Callable[[str], None], threads: int, seconds: float) -> float:
    """Replies stored in a second by this many threads."""
    stop, counts = time.perf_counter() + seconds, [0] * threads

    def work(thread: int) -> None:
        while time.perf_counter() < stop:
            put(f"{thread} {counts[thread]}")
            counts[thread] += 1

    workers = [threading.Thread(target=work, args=(thread,)) for thread in range(threads)]
    began = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(counts) / (time.perf_counter() - began)


def rate_lines(text: str, threads: int, seconds: float) -> float:
    """Ours."""
    with tempfile.TemporaryDirectory(dir=".") as folder, open_replies(folder, "answer") as log:
        return rate(lambda key: log.put(key, text=text, latency=0.5, requests=1, model="vlm"), threads, seconds)


def rate_rows(text: str, threads: int, seconds: float) -> float:
    """The peer."""
    lock = threading.Lock()
    with tempfile.TemporaryDirectory(dir=".") as folder:
        base = open_table(Path(folder) / "answers.sqlite")

        def put(key: str) -> None:
            with lock:
                base.execute("REPLACE INTO answers VALUES (?, ?, 0.5, 1, 0, 0, 'vlm')", (key, text))

        result = rate(put, threads, seconds)
        base.close()
    return result


def fill(folder: Path, count: int, text: str) -> None:
    """The same replies in both, written quickly."""
    with open_replies(folder, "answer") as log:
        log.put("0", text=text, latency=0.5, requests=1, model="vlm")
    (path,) = (folder / "answers").iterdir()
    line = path.read_text()
    with path.open("w") as file:
        file.writelines(line.replace('"key":"0"', f'"key":"question {n}"') for n in range(count))
    base = open_table(folder / "peer.sqlite")
    rows = ((f"question {n}", text) for n in range(count))
    base.execute("BEGIN")
    base.executemany("REPLACE INTO answers VALUES (?, ?, 0.5, 1, 0, 0, 'vlm')", rows)
    base.execute("COMMIT")
    base.close()


def memory() -> float:
    """Bytes that this process holds."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return float(fields["VmRSS"].split()[0]) * 1024


def resume(folder: str, count: int, kind: str) -> tuple[float, float, float]:
    """Seconds to open and bytes held then, and microseconds to find one of 2 000 replies."""
    keys = [f"question {n}" for n in random.Random(0).sample(range(count), min(count, 2000))]
    before, began = memory(), time.perf_counter()
    if kind == "lines":
        log = open_replies(folder, "answer")
        opened, held = time.perf_counter() - began, memory() - before
        began = time.perf_counter()
        texts = [found.text for key in keys if (found := log.find(key))]
    else:
        base = open_table(Path(folder) / "peer.sqlite")
        opened, held = time.perf_counter() - began, memory() - before
        began = time.perf_counter()
        texts = [base.execute("SELECT content FROM answers WHERE question = ?", (key,)).fetchone()[0] for key in keys]
    assert len(texts) == len(keys)
    return opened, held, 1e6 * (time.perf_counter() - began) / len(keys)


def main() -> int:
    """Print the tables; 1 beyond a limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=12.0)
    parser.add_argument("--lines", type=int, default=100_000)
    options = parser.parse_args()
    text = "".join(random.Random(0).choices(ALPHABET, k=4000))
    missed = False
    print("replies of 4 000 characters stored in a second, median of", ROUNDS)
    for threads, limit in LIMITS.items():
        ours, peer = [], []
        for _ in range(ROUNDS):  # in turns, so that a busy machine is busy for both
            ours.append(rate_lines(text, threads, options.seconds / ROUNDS))
            peer.append(rate_rows(text, threads, options.seconds / ROUNDS))
        lines, rows = statistics.median(ours), statistics.median(peer)
        missed |= lines < limit * rows
        print(f"  {threads:3} threads   lines {lines:7.0f}   SQLite {rows:7.0f}   ratio {lines / rows:5.2f} "
              f"(limit {limit:g})")  # fmt: skip
    with tempfile.TemporaryDirectory(dir=".") as folder, multiprocessing.get_context("spawn").Pool(1) as pool:
        fill(Path(folder), options.lines, text)
        print(f"a folder of {options.lines} replies, {options.lines * 4000 / 1e6:.0f} MB of text")
        for kind in ("lines", "SQLite"):
            opened, held, found = pool.apply(resume, (folder, options.lines, kind))
            print(f"  {kind:8} opened in {opened:6.2f} s   {held / 1e6:6.1f} MB held   {found:6.0f} µs to find one")
            if kind == "lines":
                missed |= held > LIMIT_MEMORY * options.lines
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
