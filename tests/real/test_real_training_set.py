"""Published boxes as a detector learns them: nothing is lost, and the known oddities are counted and told."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from surgeval.datasets import open_dataset
from surgeval.detector import Classes
from surgeval.detector.data import Augment, TrainingSet, batches, class_table, epoch_order, label_mosaic

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def folder() -> Path:
    place = os.environ.get("SURGEVAL_REAL_DATA")
    if not place or not Path(place).is_dir():
        pytest.skip("SURGEVAL_REAL_DATA is not set: the real surgical data is not at hand")
    return Path(place)


def inside_the_frame(data: TrainingSet) -> bool:
    """Whether every box lies in the part of the input that its frame covers."""
    for index, fit in enumerate(data.fits):
        boxes = data.boxes[data.offsets[index] : data.offsets[index + 1]]
        height, width = fit.resized_hw
        low, high = np.array([fit.left, fit.top] * 2), np.array([fit.left + width, fit.top + height] * 2)
        if not ((boxes >= low - 1e-3) & (boxes <= high + 1e-3)).all():
            return False
    return True


def test_m2cai16_is_learned_whole_and_the_boxes_past_the_edge_are_cut(folder: Path) -> None:
    dataset = open_dataset(folder / "m2cai16-tool-locations", "yolo", labels="cholec80")
    data = TrainingSet.of(dataset, Classes.of(dataset.space), image_size=128)
    assert (len(data), len(data.boxes), len(set(data.videos))) == (2248, 3149, 10)
    assert data.classes.main == "i" and data.fill == 114
    assert data.counts.tolist() == [1129, 355, 244, 304, 336, 401, 380]
    # 18 boxes leave the pixels 1…width of the VOC files (`data check` names them); counted from 0, nine still do.
    assert data.problems["box-outside"] == 9
    assert any("v03/046025" in name for name in data.problems.examples["box-outside"])
    assert data.problems["split-leak"] == 10
    assert {"image-broken", "image-missing", "box-degenerate", "class-unknown"}.isdisjoint(data.problems.counts)
    assert inside_the_frame(data)
    assert [row.boxes for row in class_table(data)] == data.counts.tolist()


def test_cholect50_frames_without_label_and_copies_are_left_out_and_told(folder: Path) -> None:
    dataset = open_dataset(folder / "cholect50-val")
    data = TrainingSet.of(dataset, Classes.of(dataset.space), image_size=128)
    assert (len(data), len(data.boxes), set(data.videos)) == (1008, 1192, {"VID68", "VID70", "VID73", "VID74"})
    assert data.problems["frame-unlabelled"] == 74
    assert data.problems["file-odd-name"] == 95
    assert not any("(1)" in name for name in data.names)
    assert data.problems.examples["box-outside"] == ("VID68/001011", "VID68/001069")
    assert data.problems["class-absent"] == int((data.counts == 0).sum()) == 56
    assert inside_the_frame(data)
    told = "\n".join(data.problems.lines())
    assert "74 frames without labels: left out" in told
    assert "videos/VID70/000030 (1).jpg" in told
    order = epoch_order(data, epoch=0, seed=0, sampling="repeat-factor")
    assert len(order) > len(data)
    rare, all_frames = data.present[order], data.present
    assert (rare.mean(axis=0) >= all_frames.mean(axis=0))[(data.counts > 0) & (data.counts < 5)].all()
    assert label_mosaic(data, 4, augment=Augment()).std() > 20


def test_an_epoch_of_real_frames_is_the_same_with_threads(folder: Path) -> None:
    dataset = open_dataset(folder / "cholect50-val")
    data = TrainingSet.of(dataset, Classes.of(dataset.space, "instruments"), image_size=96, videos=["VID74"])
    settings = {"batch": 16, "epoch": 3, "seed": 1, "augment": Augment()}
    alone, together = (list(batches(data, workers=workers, **settings)) for workers in (0, 2))  # type: ignore[arg-type]
    assert all((one.images == two.images).all() for one, two in zip(alone, together, strict=True))
    assert sum(len(batch.frames) for batch in together) == len(data)
