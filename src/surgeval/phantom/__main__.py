"""`python -m surgeval.phantom write OUT` writes phantom-v1 and prints its hash; `pin` also rewrites `_pins.py`.

Pin only when the pictures or questions were changed on purpose: everything measured on the edition changes with it.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
from pathlib import Path

from surgeval.errors import SurgevalError
from surgeval.files import read_json_object, write_atomically
from surgeval.phantom import Footage, edition_hash, make_procedure, plan_videos, write_edition
from surgeval.phantom.dataset import pins as _pins
from surgeval.phantom.dataset.edition import EDITIONS

PINNED_FRAME = 625  # 25 s into every video
PINS = Path(_pins.__file__)


def frame_hash(seed: int, procedure: str, source: str, index: int = PINNED_FRAME) -> str:
    """Of one frame's RGB pixels before JPEG."""
    footage = Footage(make_procedure(seed, 60.0, procedure), source)
    return hashlib.sha256(footage.shoot(index).image.tobytes()).hexdigest()


def pins(folder: Path) -> str:
    """The text of `_pins.py` for a written edition."""
    index = read_json_object(folder / "phantom.json")
    fixed = EDITIONS["phantom-v1"]
    frames = {
        f"{plan.name}/{PINNED_FRAME:06d}": frame_hash(plan.seed, plan.procedure, plan.source)
        for plan in plan_videos(fixed.seed, fixed.videos)
    }
    videos = {row["name"]: row["sha256"] for row in index["videos"]}
    return (
        '"""Hashes of the fixed edition: `python -m surgeval.phantom pin` writes this file anew."""\n\n'
        f'PHANTOM_V1_SHA256 = "{edition_hash(folder)}"\n\n'
        f"PHANTOM_V1_VIDEOS: dict[str, str] = {_table(videos)}\n\n"
        f"PHANTOM_V1_FRAMES: dict[str, str] = {_table(frames)}  # video/frame → SHA-256 of its RGB pixels before JPEG\n"
    )


def _table(rows: dict[str, str]) -> str:
    return "{\n" + "".join(f'    "{key}": "{value}",\n' for key, value in rows.items()) + "}"


def main(arguments: list[str]) -> int:
    """Write or pin; 2 for anything else."""
    if len(arguments) == 2 and arguments[0] == "write":
        folder = write_edition("phantom-v1", arguments[1])
        sys.stdout.write(f"{edition_hash(folder)}\n")
        return 0
    if arguments == ["pin"]:
        with tempfile.TemporaryDirectory() as temporary:
            text = pins(write_edition("phantom-v1", temporary))
        write_atomically(PINS, text.encode())
        sys.stdout.write(text)
        return 0
    sys.stderr.write("usage: python -m surgeval.phantom write OUT | pin\n")
    return 2


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except SurgevalError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)
