"""The server of a long video stays small: 100 000 frames and 300 000 instances, with everything asked of it."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.studio_command import Client, running

from surgeval.studio.store import STORE_FILE, Database, Request, apply

CLASSES = ("scissors", "forceps", "grasper")
AT_ONCE = 5_000  # frames


def fill(folder: Path, frames: int) -> None:
    """Frames of 200 kB, which are a few files under many names, and three instances in each of them."""
    (folder / "v").mkdir(parents=True)
    noise = np.random.default_rng(0)
    for k in range(20):
        rough = Image.fromarray(noise.integers(0, 255, (120, 214, 3), dtype=np.uint8))
        rough.resize((854, 480)).save(folder.parent / f"{k}.jpg", quality=92)
    for k in range(frames):
        os.link(folder.parent / f"{k % 20}.jpg", folder / "v" / f"{k:06}.jpg")
    chance = random.Random(0)
    with Database(folder / STORE_FILE) as database:
        apply(database, Request("v", "amy", "video.add", {"id": "v", "width": 854, "height": 480}))
        for first in range(0, frames, AT_ONCE):
            span = range(first, min(frames, first + AT_ONCE))
            names = {"video": "v", "first": first, "names": [f"{k:06}" for k in span]}
            apply(database, Request(f"f{first}", "amy", "frames.add", names))
            boxes = [
                {"id": f"i{k}.{n}", "video": "v", "frame": k, "group": "tools", "name": name, "track": 1,
                 "box": [chance.uniform(0, 700), chance.uniform(0, 400), 80, 60],
                 "values": {"action": "retract", "target": "prostate"}}
                for k in span for n, name in enumerate(CLASSES)
            ]  # fmt: skip
            apply(database, Request(f"i{first}", "amy", "instances.add", {"instances": boxes}))


@pytest.mark.slow
@pytest.mark.timeout(1200)  # at full counts
def test_memory_of_the_server_on_a_long_video(tmp_path: Path, long: bool) -> None:
    frames, most = (100_000, 500) if long else (5_000, 300)
    fill(tmp_path / "op", frames)
    with running(tmp_path / "op", log=tmp_path / "log") as studio:
        client = Client(studio.host, token=studio.token)
        for k in range(1500 if long else 400):
            assert client.ask("GET", f"/frames/v/{k}")[0] == 200
            if k % 200 == 0:
                client.get(f"/api/videos/v/annotations?first={k}&last={k + 199}")
        track = {"group": "tools", "name": "scissors", "number": 1}
        for number, (first, last) in enumerate([(0, 3_999), (2_000, 4_999), (0, frames - 1)]):
            span = {"id": f"s{number}", "video": "v", "tracks": [track], "values": {"action": "cut"}, "first": first,
                    "last": last}  # fmt: skip
            assert client.edit(f"span-{number}", "span.add", span)[0] == 200
        assert client.edit("back", "undo", {})[0] == 200
        for path in ("tracks", "presence", "spans", "problems", "flags", "changes?since=0",
                     "annotations?first=0&last=4999", f"frames?first=0&last={frames - 1}"):  # fmt: skip
            assert client.ask("GET", f"/api/videos/v/{path}")[0] == 200, path
        for path in ("/api/project", "/api/history", "/api/search?text=99"):
            assert client.ask("GET", path)[0] == 200, path
        assert studio.memory < most, f"{studio.memory:.0f} MB"


def test_what_few_ask_for_is_loaded_when_they_ask() -> None:
    heavy = "numba", "scipy.optimize", "torch", "vl_convert"
    code = f"import sys, surgeval.studio.server; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
