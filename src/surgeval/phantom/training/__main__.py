"""`python -m surgeval.phantom.training NAME --out DIR`: the training command for a machine with only torch on it."""

from __future__ import annotations

import argparse
import json
import sys
import time

from surgeval.errors import SurgevalError
from surgeval.phantom.training import NAMES, Recipe, train_embedded


def main(arguments: list[str]) -> int:
    """Train, say how it goes on standard error and print the examination as JSON."""
    defaults = Recipe()
    parser = argparse.ArgumentParser(prog="surgeval.phantom.training", description="Train the embedded models.")
    parser.add_argument("name", help=f"{', '.join(NAMES)}, several of them with commas, or all")
    parser.add_argument("--out", required=True, help="folder to write OUT/NAME into")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=defaults.steps)
    parser.add_argument("--batch", type=int, default=defaults.batch)
    parser.add_argument("--rate", type=float, default=defaults.rate)
    parser.add_argument("--seed", type=int, default=defaults.seed)
    parser.add_argument("--videos", type=int, default=300, help="training videos of 150 frames each")
    parser.add_argument("--held-out", type=int, default=18, help="test videos beside those of phantom-v1")
    parser.add_argument("--workers", type=int, default=None, help="rendering processes (default: one per core)")
    parser.add_argument("--frames", default=None, help="file that keeps the rendered training frames")
    chosen = parser.parse_args(arguments)
    start = time.perf_counter()
    try:
        report = train_embedded(
            NAMES if chosen.name == "all" else chosen.name.split(","),
            chosen.out,
            device=chosen.device,
            recipe=Recipe(steps=chosen.steps, batch=chosen.batch, rate=chosen.rate, seed=chosen.seed),
            videos=chosen.videos,
            held_out=chosen.held_out,
            workers=chosen.workers,
            frames=chosen.frames,
            log=lambda line: _say(f"[{time.perf_counter() - start:6.1f} s] {line}"),
        )
    except SurgevalError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    sys.stdout.write(json.dumps(report["models"], indent=1) + "\n")
    return 0


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
