"""Real predictions of a real detector: PSI-AVA fold 1, scored as pycocotools scores them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from surgeval.metrics import Boxes, DetectionSet, evaluate_detection, global_ap, weighted_ap

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def psi_ava(real_data: Path) -> DetectionSet:
    folder = real_data / "psi-ava"
    truth = json.loads((folder / "val_coco_anns_v3_35s.json").read_text())
    predictions = json.loads((folder / "val_coco_preds_v3_35s.json").read_text())
    # Frames by image id, the order in which pycocotools visits images.
    images = sorted(truth["images"], key=lambda image: image["id"])
    frame = {image["id"]: number for number, image in enumerate(images)}
    category = {c["id"]: number for number, c in enumerate(sorted(truth["categories"], key=lambda c: c["id"]))}
    cases = sorted({image["file_name"].split("/")[0] for image in images})

    def boxes(rows: list[dict[str, Any]], scored: bool) -> Boxes:
        return Boxes.of(
            [frame[row["image_id"]] for row in rows],
            {"i": [category[row["category_id"]] for row in rows]},
            [row["bbox"] for row in rows],
            [row["score"] for row in rows] if scored else None,
        )

    return DetectionSet.of(
        boxes(predictions["annotations"], True),
        boxes(truth["annotations"], False),
        [cases.index(image["file_name"].split("/")[0]) for image in images],
    )


def test_coco_numbers_of_psi_ava_are_those_of_pycocotools(psi_ava: DetectionSet) -> None:
    result = evaluate_detection(psi_ava, {"i": 7})["i"]
    assert result.overall.mAP_5095 == pytest.approx(0.686366, abs=1e-6)
    assert result.overall.mAP == pytest.approx(0.830451, abs=1e-6)
    assert np.nanmean(global_ap(result.ranked)[:, 5]) == pytest.approx(0.760962, abs=1e-6)
    assert result.overall.mAR == pytest.approx(0.733, abs=5e-4)


def test_leaving_one_case_out_by_weight_equals_scoring_the_others(psi_ava: DetectionSet) -> None:
    ranked = evaluate_detection(psi_ava, {"i": 7})["i"].ranked
    for left_out in range(psi_ava.n_videos):
        kept = [v for v in range(psi_ava.n_videos) if v != left_out]
        weight = np.array([v != left_out for v in range(psi_ava.n_videos)], dtype=float)
        alone = evaluate_detection(psi_ava.select_videos(kept), {"i": 7})["i"].ranked
        np.testing.assert_allclose(weighted_ap(ranked, weight), global_ap(alone), rtol=0, atol=1e-12)


def test_conventions_disagree_on_real_predictions(psi_ava: DetectionSet) -> None:
    means = {c: evaluate_detection(psi_ava, {"i": 7}, convention=c)["i"].overall.mAP_5095 for c in ("coco", "ivtd")}
    assert abs(means["coco"] - means["ivtd"]) > 0.01
