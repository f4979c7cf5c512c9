"""A run for the fault tests to kill: pseudo-random cases that follow from each unit's number alone."""

from __future__ import annotations

import argparse
import os
import random
import resource
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from surgeval.engine import Manifest, Unit, run
from surgeval.errors import SurgevalError
from surgeval.records import Case


@dataclass(frozen=True)
class Work:
    """Sleeps, then yields cases; where `pids` names a folder it leaves its process number there first.

    Where `until` names a file, all units but the first three wait for it.
    """

    sleep: float
    cases: int
    pids: str
    until: str

    def __call__(self, payload: int) -> list[Case]:
        if self.pids:
            Path(self.pids, str(os.getpid())).touch()
        while self.until and payload > 2 and not Path(self.until).exists():
            time.sleep(0.01)
        rng = random.Random(payload)
        time.sleep(self.sleep * rng.random() * 2)
        cluster = f"VID{payload % 7}"
        values = [{"score": rng.random(), "label": rng.choice("abc"), "n": payload} for _ in range(self.cases)]
        return [Case(f"{payload}/{i}", cluster, values=value) for i, value in enumerate(values)]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--executor", default="serial")
    parser.add_argument("--units", type=int, default=200)
    parser.add_argument("--cases", type=int, default=5)
    parser.add_argument("--sleep", type=float, default=0.004)
    parser.add_argument("--pids", default="")
    parser.add_argument("--until", default="")
    parser.add_argument("--file-limit", type=int, help="bytes a file may have (RLIMIT_FSIZE)")
    options = parser.parse_args()
    if options.file_limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (options.file_limit, options.file_limit))
    try:
        summary = run(
            [Unit(f"unit {i}", i) for i in range(options.units)],
            Work(options.sleep, options.cases, options.pids, options.until),
            folder=options.folder,
            manifest=Manifest("fault", {"units": options.units, "cases": options.cases}),
            executor=options.executor,
            processes=2,
        )
    except SurgevalError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
    print(summary)
    sys.exit(summary.exit_code)


if __name__ == "__main__":
    main()
