"""The `coco` convention is pycocotools: recorded answers on random boxes, with ties, identical truths and crowds."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from surgeval.metrics import Boxes, DetectionSet, evaluate_detection, global_ap, rank_detections

RECORDED = sorted((Path(__file__).parents[2] / "data" / "pycocotools").glob("*.json.gz"))
COMPONENTS = ("ivt", "i", "v", "t")


def _fixture(file: Path) -> tuple[dict[str, Any], DetectionSet]:
    golden = json.loads(gzip.decompress(file.read_bytes()))
    triplets = np.array(golden["triplets"])

    def boxes(rows: npt.NDArray[np.float64], first: int) -> Boxes:
        number = rows[:, 1].astype(np.int64)
        classes = {"ivt": number, **{c: triplets[number, "ivt".index(c)] for c in "ivt"}}
        return Boxes.of(rows[:, 0], classes, rows[:, first:], rows[:, 2] if first == 3 else None)

    truth, predictions = boxes(np.array(golden["gt"], float), 2), boxes(np.array(golden["pd"], float), 3)
    return golden, DetectionSet.of(predictions, truth, np.zeros(golden["frames"], np.int64))


def test_there_are_recorded_answers() -> None:
    assert len(RECORDED) >= 3


@pytest.mark.parametrize("file", RECORDED, ids=lambda p: p.name.split(".")[0])
@pytest.mark.parametrize("component", COMPONENTS)
def test_coco_agrees_with_pycocotools_for_each_component(file: Path, component: str) -> None:
    golden, data = _fixture(file)
    expected = golden["expected"][component]
    result = evaluate_detection(data, golden["n_classes"], convention="coco")[component]
    ap = global_ap(result.ranked)
    nan = [[np.nan if x is None else x for x in row] for row in expected["per_class_ap"]]
    np.testing.assert_allclose(ap, nan, rtol=0, atol=1e-9)
    np.testing.assert_allclose(
        result.overall.AR, [np.nan if x is None else x for x in expected["per_class_ar"]], rtol=0, atol=1e-9
    )
    assert result.overall.mAP_5095 == pytest.approx(expected["AP"], abs=1e-6)
    assert result.overall.mAP == pytest.approx(expected["AP50"], abs=1e-6)
    assert np.nanmean(ap[:, 5]) == pytest.approx(expected["AP75"], abs=1e-6)
    assert result.overall.mAR == pytest.approx(expected["AR100"], abs=1e-6)


def test_at_most_a_hundred_detections_per_frame_and_class_count() -> None:
    truth = Boxes.of([0], {"i": [0]}, [[0, 0, 10, 10]])
    scores = np.linspace(0.9, 0.1, 101)
    boxes = np.tile([[50.0, 50.0, 5.0, 5.0]], (101, 1))
    boxes[100] = [0, 0, 10, 10]  # the hit is the 101st
    found = Boxes.of(np.zeros(101, int), {"i": np.zeros(101, int)}, boxes, scores)
    data = DetectionSet.of(found, truth, [0])
    assert len(rank_detections(data, "i", 1).rows) == 100
    assert evaluate_detection(data, {"i": 1})["i"].overall.mAP == 0
    assert evaluate_detection(data, {"i": 1}, convention="ivtd")["i"].overall.mAP > 0


def test_coco_matches_again_at_every_iou_threshold_and_ivtd_does_not() -> None:
    truth = Boxes.of([0], {"i": [0]}, [[0, 0, 10, 10]])
    loose, exact = [0, 0, 10, 6], [0, 0, 10, 10]  # IoU 0.6 and 1
    found = Boxes.of([0, 0], {"i": [0, 0]}, [loose, exact], score=[0.9, 0.5])
    data = DetectionSet.of(found, truth, [0])
    coco, ivtd = rank_detections(data, "i", 1), rank_detections(data, "i", 1, "ivtd")
    assert coco.hits[:, 0].tolist() == ivtd.hits[:, 0].tolist() == [True, False]
    assert coco.hits[:, 5].tolist() == [False, True]  # at 0.75 the exact box gets its chance
    assert ivtd.hits[:, 5].tolist() == [False, False]
