"""A training in a process of its own, without polars, PyAV and vl-convert: to be killed, and gone on with."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any


class Absent(MetaPathFinder):
    """Packages that a machine for training has not."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.partition(".")[0] in ("polars", "av", "vl_convert"):
            raise ModuleNotFoundError(name)


def main(folder: Path) -> None:
    """Train; every line is said at once."""
    sys.meta_path.insert(0, Absent())
    from tests.unit.detector.test_training_resume import train

    train(folder, lambda line: print(line, flush=True))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
