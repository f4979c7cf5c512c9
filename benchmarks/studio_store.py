"""The studio's store at the size of a 20 fps project: 100 000 frames, 300 000 instances.

    python benchmarks/studio_store.py [FRAMES] [PER_FRAME]

Prints how long opening, reading one frame and a span over 5 000 frames take, beside a naive peer in the same run: the
same rows in SQLite under the same pragmas, values as JSON in each row, a span written row by row with one statement and
one row of history each (what a store without shared labels and set-based statements does).
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sqlite3
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from surgeval.records import Box
from surgeval.studio.numbering import plan_numbers
from surgeval.studio.problems import find_problems
from surgeval.studio.store import STORE_FILE, Annotation, Database, OperationOutcome, Request, apply, preview, reading
from surgeval.vocab import load_labels

SPAN = 5_000
CLASSES = ("scissors", "forceps", "grasper", "aspirator")
TRACK = {"group": "tools", "name": "scissors", "number": 1}
CHUNK = 20_000


def drawn(frames: int, per_frame: int) -> Iterator[Annotation]:
    random.seed(0)
    for frame in range(frames):
        for number in range(per_frame):
            box = Box(random.uniform(0, 600), random.uniform(0, 400), 80.0, 60.0)
            yield Annotation(
                f"i{frame}.{number}", "v", frame, "tools", CLASSES[number % len(CLASSES)], box,
                values={"action": "retract", "target": "prostate"}, track=1 + number // len(CLASSES),
            )  # fmt: skip


def timed(action: Callable[[], object], repeats: int = 1) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2]


def edit(database: Database, kind: str, payload: dict[str, Any], *, tried: bool = False) -> OperationOutcome:
    request = Request(uuid.uuid4().hex, "amy", kind, payload)
    return preview(database, request) if tried else apply(database, request)


def fill(folder: Path, rows: list[Annotation], frames: int) -> None:
    with Database(folder / STORE_FILE) as database:
        edit(database, "video.add", {"id": "v", "width": 854, "height": 480})
        for first in range(0, frames, CHUNK):
            names = [f"{n:06}.jpg" for n in range(first, min(frames, first + CHUNK))]
            edit(database, "frames.add", {"video": "v", "first": first, "names": names})
        for first in range(0, len(rows), CHUNK):
            edit(database, "instances.add", {"instances": [_payload(one) for one in rows[first : first + CHUNK]]})


def _payload(one: Annotation) -> dict[str, Any]:
    return {
        "id": one.id, "video": one.video, "frame": one.frame, "group": one.group, "name": one.name,
        "box": [one.box.x, one.box.y, one.box.w, one.box.h], "values": dict(one.values), "track": one.track,
    }  # fmt: skip


def ours(folder: Path, frames: int) -> dict[str, float]:
    def opened() -> None:
        with Database(folder / STORE_FILE) as database, database.reading() as connection:
            reading.videos(connection)
            reading.instances(connection, "v", frames // 2)
            reading.spans(connection, "v")

    times = {"open, first frame": timed(opened, 5)}
    with Database(folder / STORE_FILE) as database:
        picks = iter(random.Random(1).choices(range(frames), k=1000))

        def read_one() -> None:
            with database.reading() as connection:
                reading.instances(connection, "v", next(picks))

        def count() -> None:
            with database.reading() as connection:
                reading.count_labels(connection)

        times["read one frame"] = timed(read_one, 200)
        first = frames // 3
        span = {"id": "s", "video": "v", "tracks": [TRACK], "values": {"action": "cut", "target": "fascias"},
                "first": first, "last": min(frames, first + SPAN) - 1}  # fmt: skip
        times["preview a span over 5 000 frames"] = timed(lambda: edit(database, "span.add", span, tried=True), 3)
        times["apply a span over 5 000 frames"] = timed(lambda: edit(database, "span.add", span))
        times["undo it"] = timed(lambda: edit(database, "undo", {}))
        move = {"ids": ["i7.0"], "dx": 1.0, "dy": 0.0}
        times["move one box (acknowledged = on disk)"] = timed(lambda: edit(database, "instances.move", move), 30)
        times["count all labels"] = timed(count, 3)
        times["lanes of all tracks"] = timed(lambda: looked(database, lambda c: list(reading.runs(c, "v"))), 3)
        times["look for problems"] = timed(lambda: looked(database, problems), 3)
        times["try the sector rule"] = timed(lambda: looked(database, numbers))
    return times


def looked(database: Database, look: Callable[[Connection], object]) -> None:
    with database.reading() as connection:
        look(connection)


def problems(connection: Connection) -> object:
    (video,), schema = reading.videos(connection), reading.schema(connection)
    told = reading.columns(connection, "v", proposals=False)
    return find_problems(video, reading.frame_columns(connection, "v"), told, schema, load_labels("prostatd"))


def numbers(connection: Connection) -> object:
    return plan_numbers(connection, reading.videos(connection)[0])


def lanes(base: sqlite3.Connection) -> dict[tuple[str, int], list[list[int]]]:
    """Runs of frames of each track, row by row."""
    runs: dict[tuple[str, int], list[list[int]]] = {}
    for name, track, frame in base.execute("SELECT name, track, frame FROM instances ORDER BY name, track, frame"):
        mine = runs.setdefault((name, track), [])
        if mine and frame <= mine[-1][1] + 1:
            mine[-1][1] = frame
        else:
            mine.append([frame, frame])
    return runs


def naive(path: Path, rows: list[Annotation], frames: int) -> dict[str, float]:
    with closing(sqlite3.connect(path, isolation_level=None)) as base:
        base.execute("PRAGMA journal_mode = WAL")
        base.execute("PRAGMA synchronous = FULL")
        base.execute(
            "CREATE TABLE instances (id TEXT PRIMARY KEY, video TEXT, frame INTEGER, name TEXT, track INTEGER,"
            " x REAL, y REAL, w REAL, h REAL, vals TEXT)"
        )
        base.execute("CREATE INDEX place ON instances (video, frame)")
        base.execute("CREATE TABLE history (id INTEGER PRIMARY KEY, instance TEXT, before TEXT, after TEXT)")
        base.execute("BEGIN")
        base.executemany(
            "INSERT INTO instances VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [(r.id, r.video, r.frame, r.name, r.track, r.box.x, r.box.y, r.box.w, r.box.h, json.dumps(dict(r.values)))
             for r in rows],
        )  # fmt: skip
        base.execute("COMMIT")
        picks = iter(random.Random(1).choices(range(frames), k=1000))
        query = "SELECT * FROM instances WHERE video = 'v' AND frame = ?"
        read = timed(lambda: [json.loads(row[-1]) for row in base.execute(query, (next(picks),))], 200)

        def span(commit_each: bool) -> None:
            first = frames // 3
            if not commit_each:
                base.execute("BEGIN")
            for frame in range(first, min(frames, first + SPAN)):
                if commit_each:
                    base.execute("BEGIN")
                for row in base.execute(query, (frame,)).fetchall():
                    if (row[3], row[4]) == ("scissors", 1):
                        after = json.dumps({"action": "cut", "target": "fascias"})
                        base.execute("UPDATE instances SET vals = ? WHERE id = ?", (after, row[0]))
                        base.execute("INSERT INTO history VALUES (NULL, ?, ?, ?)", (row[0], row[-1], after))
                if commit_each:
                    base.execute("COMMIT")
            if not commit_each:
                base.execute("COMMIT")

        return {
            "read one frame": read,
            "apply a span over 5 000 frames": timed(lambda: span(True)),
            "the same in one transaction": timed(lambda: span(False)),
            "lanes of all tracks": timed(lambda: lanes(base), 3),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("frames", type=int, nargs="?", default=100_000)
    parser.add_argument("instances", type=int, nargs="?", default=3, help="in each frame")
    options = parser.parse_args()
    frames = options.frames
    rows = list(drawn(frames, options.instances))
    print(f"{frames} frames, {len(rows)} instances")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print(f"{'import (operations of 20 000)':42} {timed(lambda: fill(folder / 'p', rows, frames)):9.2f} s")
        mine = ours(folder / "p", frames)
        peer = naive(folder / "naive.sqlite", rows, frames)
        size = (folder / "p" / "studio.sqlite").stat().st_size / 1e6
    print(f"{'':42} {'store':>11} {'naive':>11} {'naive / store':>14}")
    for what, seconds in mine.items():
        other = peer.get(what)
        line = f"{what:42} {1000 * seconds:8.1f} ms"
        print(line + (f" {1000 * other:8.1f} ms {other / seconds:13.1f}x" if other else ""))
    together = peer["the same in one transaction"]
    print(f"{'naive span in one transaction':42} {'':11} {1000 * together:8.1f} ms")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"file {size:.0f} MB; most memory of this process {memory:.0f} MB (with the rows to import)")


if __name__ == "__main__":
    main()
