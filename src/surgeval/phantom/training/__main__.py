"""`python -m surgeval.phantom.training NAME --out DIR`: the training command for a machine with only torch on it."""

from __future__ import annotations

import argparse
import json
import sys
import time

from surgeval.errors import SurgevalError
from surgeval.phantom.training import NAMES, recipe_for, train_embedded


def main(arguments: list[str]) -> int:
    """Train, say how it goes on standard error and print recipe and cost as JSON."""
    parser = argparse.ArgumentParser(
        prog="surgeval.phantom.training",
        description="Train the embedded models; what is not given is taken from the recipe of each.",
    )
    parser.add_argument("name", help=f"{', '.join(NAMES)}, several of them with commas, or all")
    parser.add_argument("--out", required=True, help="folder to write OUT/NAME into")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--batch", type=int)
    parser.add_argument("--rate", type=float)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--videos", type=int, help="training videos of 150 frames each")
    parser.add_argument("--workers", type=int, help="rendering processes (default: one per core)")
    parser.add_argument("--frames", help="file that keeps the rendered training frames")
    options = parser.parse_args(arguments)
    changes = {key: getattr(options, key) for key in ("videos", "steps", "batch", "rate", "seed")}
    start = time.perf_counter()
    try:
        report = train_embedded(
            {
                name: recipe_for(name, **changes)
                for name in (NAMES if options.name == "all" else options.name.split(","))
            },
            options.out,
            device=options.device,
            workers=options.workers,
            frames=options.frames,
            log=lambda line: _say(f"[{time.perf_counter() - start:6.1f} s] {line}"),
        )
    except SurgevalError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    sys.stdout.write(json.dumps(report, indent=1) + "\n")
    return 0


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
