"""Rows of the golden files through the readers, and real predictions of a real detector."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from surgeval.datasets import MemoryDataset, open_dataset
from surgeval.datasets.predictions import ground_truth, join, read_detections, write_detections
from surgeval.metrics import evaluate_detection, global_ap
from surgeval.records import Box, Frame, Instance, Triplet
from surgeval.vocab import load_labels


def _nine_columns(golden: Path) -> list[Path]:
    files = sorted((golden / "triplets").glob("det*.json"))
    return [path for path in files if "v" in json.loads(path.read_text())["components"]]


def _dataset(videos: list[dict[str, Any]]) -> MemoryDataset:
    """The ground truth of a golden file; frames of one pixel, so that its fractions are pixels."""
    frames = [
        Frame(video["name"], f"{number:06d}", number, None, None, 1, 1,
              tuple(Instance(Triplet(int(row[1]), int(row[3]), int(row[4])), Box(*row[5:])) for row in frame["gt"]))
        for video in videos for number, frame in enumerate(video["frames"])
    ]  # fmt: skip
    return MemoryDataset(load_labels("prostatd"), frames)


def test_rows_of_the_golden_files_arrive_unchanged_in_the_metrics(golden: Path) -> None:
    files = _nine_columns(golden)
    if not files:
        pytest.skip(f"{golden}: no detection file with verbs and targets")
    for path in files:
        document = json.loads(path.read_text())
        joined = join(read_detections(path, _dataset(document["videos"])), _dataset(document["videos"]))
        for kind, boxes in (("gt", joined.truth.boxes), ("pd", joined.predictions)):
            rows = [row for video in document["videos"] for frame in video["frames"] for row in frame[kind]]
            table = np.array(rows, dtype=np.float64).reshape(-1, 9)
            np.testing.assert_array_equal(boxes.xywh, table[:, 5:])
            for component, column in (("ivt", 0), ("i", 1), ("v", 3), ("t", 4)):
                np.testing.assert_array_equal(boxes.classes[component], table[:, column])
        sizes = joined.n_classes()
        result = evaluate_detection(joined.data(), sizes, convention="ivtd-legacy", iou=document["params"]["threshold"])
        expected = document["expected_if_global_sort_stable"]["global"]
        for component in sizes:
            assert result[component].overall.mAP == pytest.approx(expected[component]["mAP"], abs=1e-9)


@pytest.mark.real
def test_psi_ava_predictions_score_as_pycocotools_scores_them(real_data: Path, tmp_path: Path) -> None:
    truth = ground_truth(open_dataset(real_data / "psi-ava" / "val_coco_anns_v3_35s.json"))
    found = read_detections(real_data / "psi-ava" / "val_coco_preds_v3_35s.json", truth)
    joined = join(found, truth)
    assert (len(truth.boxes), len(joined.predictions), joined.n_frames, joined.n_videos) == (2623, 2364, 1029, 4)
    assert (len(joined.missing), joined.silent, joined.notes(), dict(found.problems)) == (0, 11, (), {})
    result = evaluate_detection(joined.data(), joined.n_classes())["i"]
    assert result.overall.mAP_5095 == pytest.approx(0.686366, abs=1e-6)
    assert result.overall.mAP == pytest.approx(0.830451, abs=1e-6)
    assert np.nanmean(global_ap(result.ranked)[:, 5]) == pytest.approx(0.760962, abs=1e-6)
    # A results list with the dataset's own ids: what pycocotools' loadRes takes.
    write_detections(found, tmp_path / "results.json", dataset=truth)
    ids = {row["image_id"] for row in json.loads((tmp_path / "results.json").read_text())}
    own = json.loads((real_data / "psi-ava" / "val_coco_anns_v3_35s.json").read_text())["images"]
    assert ids <= {image["id"] for image in own}
    assert read_detections(tmp_path / "results.json", truth).table.equals(found.table)


@pytest.mark.real
def test_cholect50_labels_with_scores_find_themselves(real_data: Path, tmp_path: Path) -> None:
    """The labels of four real videos as their own predictions: perfect, and frames without labels are not scored."""
    folder = real_data / "cholect50-val"
    truth = ground_truth(open_dataset(folder), on_problem=lambda problem: None)
    found = read_detections(folder, truth, format="cholect50")
    joined = join(found, truth)
    assert (joined.n_frames, truth.unlabelled, len(joined.predictions)) == (1008, 74, len(truth.boxes))
    assert len(joined.missing) == 0
    assert evaluate_detection(joined.data(), joined.n_classes())["ivt"].overall.mAP == pytest.approx(1.0)
    write_detections(found, tmp_path / "lines", "yolo", dataset=truth)
    again = join(read_detections(tmp_path / "lines", truth), truth)
    np.testing.assert_allclose(again.data().predictions.xywh, joined.data().predictions.xywh, rtol=0, atol=1e-9)
