"""A tiny dataset whose scores can be checked by hand, and a larger random one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import polars as pl
import pytest
from tests.conftest import Once

from surgeval.datasets import MemoryDataset
from surgeval.phantom import simulate_detector, write_phantom
from surgeval.records import Box, Frame, Instance, Triplet, Video
from surgeval.vocab import LabelSpace

SPACE = LabelSpace(
    "toy",
    ("grasper", "hook"),
    ("grasp", "dissect"),
    ("liver", "gallbladder"),
    ((0, 0, 0), (0, 0, 1), (1, 1, 1)),
)
BOX = Box(10, 10, 40, 40)
Oracle: TypeAlias = Callable[[MemoryDataset], pl.DataFrame]


def moment(video: str, number: int, *triplets: int) -> Frame:
    """A frame of 200 × 100 with one box per triplet, side by side."""
    boxes = [Box(BOX.x + 50 * k, BOX.y, BOX.w, BOX.h) for k in range(len(triplets))]
    seen = tuple(Instance(Triplet(*SPACE.triplets[triplet]), box) for triplet, box in zip(triplets, boxes, strict=True))
    return Frame(video, f"{number:06d}", number, None, None, 200, 100, seen)


@pytest.fixture
def tiny() -> MemoryDataset:
    """Two videos of two frames: v1 shows triplet 0 twice, v2 triplet 2 twice."""
    frames = [moment("v1", 1, 0), moment("v1", 2, 0), moment("v2", 1, 2), moment("v2", 2, 2)]
    return MemoryDataset(SPACE, frames, [Video("v1", "A", "train"), Video("v2", "B", "test")])


@pytest.fixture
def half() -> pl.DataFrame:
    """Detections for `tiny`: everything right, but nothing said of v1's second frame."""
    return pl.DataFrame(
        {
            "video": ["v1", "v2", "v2"],
            "frame": ["000001", "000001", "000002"],
            "triplet": [0, 2, 2],
            "score": [0.9, 0.8, 0.7],
            "x": [10.0] * 3,
            "y": [10.0] * 3,
            "w": [40.0] * 3,
            "h": [40.0] * 3,
        }
    )


@pytest.fixture(scope="session")
def theatre() -> MemoryDataset:
    """Nine videos of three sources and three splits, with all triplets in each."""
    videos = [Video(f"v{k}", "ABC"[k % 3], ("train", "val", "test")[k // 3]) for k in range(9)]
    frames = [
        moment(video.name, n, *[(k + n + j) % 3 for j in range(1 + (k + n) % 2)])
        for k, video in enumerate(videos)
        for n in range(8)
    ]
    return MemoryDataset(SPACE, frames, videos)


@pytest.fixture(scope="session")
def good(theatre: MemoryDataset) -> pl.DataFrame:
    return simulate_detector(theatre, "good", seed=3)


@pytest.fixture(scope="session")
def poor(theatre: MemoryDataset) -> pl.DataFrame:
    return simulate_detector(theatre, "poor", seed=3)


@pytest.fixture(scope="session")
def oracle() -> Oracle:
    """What a detector that knows the labels would say."""

    def known(dataset: MemoryDataset) -> pl.DataFrame:
        rows = []
        for video in dataset.videos():
            for frame in dataset.frames(video.name):
                for instance in frame.instances:
                    triplet, box = instance.triplet, instance.box
                    assert box is not None
                    said = dataset.space.find(triplet.instrument, triplet.verb, triplet.target)
                    rows.append((frame.video, frame.name, said, 0.9, box.x, box.y, box.w, box.h))
        return pl.DataFrame(rows, schema=["video", "frame", "triplet", "score", "x", "y", "w", "h"], orient="row")

    return known


@pytest.fixture(scope="session")
def filmed(once: Once) -> Path:
    """Two phantom videos of four labelled frames each; in the first frame of each, no instrument is labelled."""

    def make(out: Path) -> None:
        write_phantom(out, seed=7, videos=2, seconds=20, fps_labels=0.2, processes=1)
        for truth in (out / "truth").glob("*.json"):
            value = json.loads(truth.read_text())
            value["frames"][0]["instances"] = []
            truth.write_text(json.dumps(value))

    return once("filmed", make)
