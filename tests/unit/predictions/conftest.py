"""A small dataset of triplets in memory: two videos, an unlabelled frame, an instance without a box."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from surgeval.datasets import MemoryDataset
from surgeval.datasets.predictions import GroundTruth, ground_truth
from surgeval.records import Box, Frame, Instance, Triplet
from surgeval.vocab import LabelSpace, load_labels

SPACE = load_labels("cholect50")
WIDTH, HEIGHT = 854, 480


def seen(number: int, *box: float) -> Instance:
    return Instance(Triplet(*SPACE.triplets[number]), Box(*box) if box else None)


def frame(video: str, number: int, *instances: Instance, labelled: bool = True) -> Frame:
    return Frame(video, f"{number:06d}", number, None, None, WIDTH, HEIGHT, instances, labelled)


@pytest.fixture
def space() -> LabelSpace:
    return SPACE


@pytest.fixture
def dataset() -> MemoryDataset:
    """VID68: frames 12 (two boxes), 19 (nothing to see), 26 (never labelled); VID70: 12 (a box), 33 (no box)."""
    return MemoryDataset(SPACE, [
        frame("VID68", 12, seen(17, 100, 120, 60, 80), seen(60, 400, 200, 120, 90)),
        frame("VID68", 19),
        frame("VID68", 26, labelled=False),
        frame("VID70", 12, seen(17, 50, 60, 70, 80)),
        frame("VID70", 33, seen(19)),
    ])  # fmt: skip


@pytest.fixture
def truth(dataset: MemoryDataset) -> GroundTruth:
    return ground_truth(dataset)


def table_of(*rows: tuple[object, ...], columns: tuple[str, ...] = ()) -> pl.DataFrame:
    names = columns or ("video", "frame", "triplet", "score", "x", "y", "w", "h")
    return pl.DataFrame(rows, schema=list(names), orient="row")


@pytest.fixture
def found() -> pl.DataFrame:
    """Three boxes: two hits in VID68 frame 12 and a stray in frame 19; VID70 is not mentioned."""
    return table_of(
        ("VID68", "000012", 17, 0.9, 101.0, 120.0, 60.0, 80.0),
        ("VID68", "000012", 60, 0.75, 400.0, 205.0, 120.0, 90.0),
        ("VID68", "000019", 17, 0.3, 10.0, 10.0, 50.5, 40.25),
    )


@pytest.fixture
def table() -> Callable[..., pl.DataFrame]:
    return table_of


@pytest.fixture
def lines(tmp_path: Path) -> Callable[..., Path]:
    """A folder of YOLO files."""

    def write(**files: str) -> Path:
        folder = tmp_path / "lines"
        folder.mkdir(exist_ok=True)
        for name, text in files.items():
            (folder / f"{name}.txt").write_text(text)
        return folder

    return write
