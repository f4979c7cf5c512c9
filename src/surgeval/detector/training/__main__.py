"""`python -m surgeval.detector.training TRAIN --out DIR`: training on a machine with little more than torch on it.

The training sets are files that `surgeval.detector.data.save_packed` wrote where the dataset is.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from surgeval.detector.data import load_packed
from surgeval.detector.training import TrainSettings, train_tdnet
from surgeval.errors import BadInput, SurgevalError
from surgeval.files import BrokenJson, parse_json


def main(arguments: list[str]) -> int:
    """Train, say how it goes on standard error and print the result as JSON."""
    parser = argparse.ArgumentParser(prog="surgeval.detector.training", description="Train TDnet on packed frames.")
    parser.add_argument("train", type=Path, help="packed frames to learn from")
    parser.add_argument("--validation", type=Path, help="packed frames that choose the best epoch")
    parser.add_argument("--out", type=Path, required=True, help="folder of the training; met again, it goes on")
    parser.add_argument("--weights", type=Path, help="a detector to begin with")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting (repeatable)")
    options = parser.parse_args(arguments)
    start = time.perf_counter()
    try:
        train = load_packed(options.train)
        validation = load_packed(options.validation) if options.validation is not None else None
        settings = replace(TrainSettings(image_size=train.image_size), **_changes(options.set))
        trained = train_tdnet(
            train, validation, train.classes, options.out, settings, weights=options.weights,
            progress=lambda line: _say(f"[{time.perf_counter() - start:7.1f} s] {line}"),
        )  # fmt: skip
    except SurgevalError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; the same command again does what is left\n")
        return 130
    sys.stdout.write(json.dumps({"detector": str(trained.detector), **trained.result}, indent=1) + "\n")
    return 0


def _changes(texts: list[str]) -> dict[str, Any]:
    known = [field.name for field in fields(TrainSettings)]
    changes: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or name not in known:
            raise BadInput(f"set: found {text[:60]!r}, expected NAME=VALUE with one of {', '.join(known)}")
        try:
            changes[name] = parse_json(value, finite=True)
        except BrokenJson:  # a word
            changes[name] = value
    return changes


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
