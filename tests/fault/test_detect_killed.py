"""`detect_source` that is killed at any moment: the same call does the missing blocks and writes the same table."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image
from tests.fault.engine_runs import PATIENCE, wait_until

ROOT = Path(__file__).parents[2]
SCRIPT = """
import sys, time
from surgeval.detector.inference import DetectSettings, detect_source, open_source, parts
from tests.unit.detector.inference.detectors import FindsWhite

class Slow(FindsWhite):
    def raw(self, images):
        time.sleep(float(sys.argv[3]))
        return super().raw(images)

parts.BLOCK = 4
network = Slow()
source = open_source(sys.argv[1], network.space)
done = detect_source(network, source, sys.argv[2], DetectSettings(batch=2), identity="v1")
print(done.frames, done.earlier)
"""


def command(images: Path, out: Path, sleep: float = 0.0) -> list[str]:
    return [sys.executable, "-c", SCRIPT, str(images), str(out), str(sleep)]


def finished(images: Path, out: Path) -> tuple[int, int]:
    """Detect to the end; frames looked at now and in earlier runs."""
    said = subprocess.run(command(images, out), cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=True)
    now, earlier = said.stdout.split()
    return int(now), int(earlier)


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Frames, and beside them the table of a detection that nothing disturbed."""
    images = tmp_path_factory.mktemp("frames") / "images"
    images.mkdir()
    for n in range(24):
        pixels = np.full((48, 64, 3), 20, np.uint8)
        pixels[8:24, n : n + 16] = 255
        Image.fromarray(pixels).save(images / f"{n:03d}.png")
    assert finished(images, images.with_name("whole.parquet")) == (24, 0)
    return images


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_detection_loses_the_blocks_in_flight_alone(images: Path, tmp_path: Path, how: signal.Signals) -> None:
    out = tmp_path / "found.parquet"
    stored = tmp_path / ".found.parquet.parts" / "parts"
    process = subprocess.Popen(command(images, out, 0.2), cwd=ROOT, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        wait_until(lambda: len(list(stored.glob("*.parquet"))) >= 2, "two blocks")
    finally:
        os.killpg(process.pid, how)
        process.wait(PATIENCE)
    assert process.returncode != 0 and not out.exists()
    kept = 4 * len(list(stored.glob("*.parquet")))
    assert finished(images, out) == (24 - kept, kept)
    assert pl.read_parquet(out).equals(pl.read_parquet(images.with_name("whole.parquet")))
    assert not stored.parent.exists()
