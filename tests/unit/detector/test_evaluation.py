"""The numbers of a training are those that `surgeval score` gives for the same detections."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
import torch
from tests.unit.detector.coloured import SPACE

from surgeval.arrays import Image
from surgeval.datasets import MemoryDataset
from surgeval.datasets.predictions import join
from surgeval.detector import Classes, Raw
from surgeval.detector.data import TrainingSet, batches
from surgeval.detector.evaluation import evaluate_detector, fitness
from surgeval.detector.nms import SELECTING, select
from surgeval.metrics import evaluate_detection as score
from surgeval.records import Box, Frame, Instance, Triplet

SIZE, POINTS = 64, 40


def wide_frames() -> list[Frame]:
    """Frames of two shapes with up to three boxes; some carry two triplets on one box, some nothing."""
    chance = np.random.default_rng(3)
    made = []
    for number in range(30):
        width, height = (160, 90) if number % 2 else (100, 120)
        instances = []
        for _ in range(int(chance.integers(0, 4))):
            w, h = (int(side) for side in chance.integers(20, 60, 2))
            x, y = int(chance.integers(0, width - w)), int(chance.integers(0, height - h))
            kinds = {1, 2} if chance.random() < 0.2 else {int(chance.integers(4))}
            instances += [Instance(Triplet(*SPACE.triplets[kind]), Box(x, y, w, h)) for kind in sorted(kinds)]
        made.append(Frame("ab"[number // 15], f"{number:03d}", number, None, None, width, height, tuple(instances)))
    return made


def grey(frame: Frame) -> Image:
    """Its number is its brightness: the made-up detector tells frames apart by it."""
    return np.full((frame.height, frame.width, 3), 5 * frame.index, np.uint8)


@pytest.fixture(scope="module")
def data() -> TrainingSet:
    return TrainingSet.of(wide_frames(), Classes.of(SPACE), image_size=SIZE, read=grey)


def guesses(data: TrainingSet) -> dict[int, Raw]:
    """Boxes near the labelled ones and elsewhere, some past the edge of the frame, with scores that often are wrong."""
    chance = torch.Generator().manual_seed(5)
    made = {}
    for index in range(len(data)):
        rows = torch.as_tensor(data.boxes[data.offsets[index] : data.offsets[index + 1]])
        near = rows.repeat(6, 1) + 3 * torch.randn(6 * len(rows), 4, generator=chance)
        corner = SIZE * torch.rand(POINTS, 2, generator=chance)
        free = torch.cat([corner, corner + 4 + 40 * torch.rand(POINTS, 2, generator=chance)], 1)
        boxes = torch.cat([near, free])[:POINTS]
        boxes = torch.cat([torch.minimum(boxes[:, :2], boxes[:, 2:]), torch.maximum(boxes[:, :2], boxes[:, 2:])], 1)
        heads = {
            head: torch.rand(1, POINTS, len(names), generator=chance) for head, names in data.classes.heads.items()
        }
        made[int(data.names[index])] = Raw(boxes[None], heads)
    return made


def test_mean_average_precision_is_that_of_the_scored_table(data: TrainingSet) -> None:
    known = guesses(data)

    def look(images: torch.Tensor) -> Raw:
        numbers = [int(image[0, SIZE // 2, SIZE // 2]) // 5 for image in images]
        raws = [known[number] for number in numbers]
        heads = {head: torch.cat([raw.probabilities[head] for raw in raws]) for head in data.classes.heads}
        return Raw(torch.cat([raw.boxes for raw in raws]), heads)

    assert next(iter(batches(data, batch=3))).images[2, 0, 32, 32] == 10
    found = evaluate_detector(look, data, data.classes, batch=7)

    rows = []
    for index in range(len(data)):
        raw = known[int(data.names[index])]
        one = select(raw.boxes, dict(raw.probabilities), "ivt", data.classes.parts, SELECTING["default"])[0]
        corners = data.fits[index].back(one.boxes.double())
        for box, value, kind in zip(corners.tolist(), one.scores.tolist(), one.classes.tolist(), strict=True):
            rows.append({"video": data.videos[index], "frame": data.names[index], "triplet": kind, "score": value,
                         "x": box[0], "y": box[1], "w": box[2] - box[0], "h": box[3] - box[1]})  # fmt: skip
    joined = join(pl.DataFrame(rows), MemoryDataset(SPACE, wide_frames()))
    told = score(joined.data(), joined.n_classes())
    for part in ("ivt", "i", "v", "t"):
        assert 0.02 < found.at50[part] < 0.98
        assert found.at50[part] == pytest.approx(told[part].overall.mAP, abs=1e-6)
        assert found.averaged[part] == pytest.approx(told[part].overall.mAP_5095, abs=1e-4)
    assert found.fitness == pytest.approx(0.1 * found.at50["ivt"] + 0.9 * found.averaged["ivt"])
    assert list(found.row())[:4] == ["mAP50", "mAP50:95", "i mAP50", "i mAP50:95"]
    assert (found.frames, found.boxes) == (30, len(rows))


def test_a_detector_that_says_nothing_scores_nothing(data: TrainingSet) -> None:
    silent = {head: torch.zeros(5, 1, len(names)) for head, names in data.classes.heads.items()}
    found = evaluate_detector(lambda images: Raw(torch.zeros(len(images), 1, 4), silent), data, data.classes, batch=5)
    assert found.row()["mAP50"] == 0.0
    assert found.fitness == 0.0


def test_without_ground_truth_no_epoch_is_better_than_another() -> None:
    assert fitness(float("nan"), float("nan")) == 0.0
