"""Recognition: class scores per frame, from files and from arrays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from surgeval import compare
from surgeval.datasets import MemoryDataset
from surgeval.datasets.predictions import ground_truth
from surgeval.errors import BadInput
from surgeval.metrics import RecognitionAccumulator, evaluate_recognition
from surgeval.protocols.triplets import score_recognition, score_triplets
from surgeval.protocols.triplets.page import write_page_of
from surgeval.protocols.triplets.scoring.inputs import find_task
from surgeval.protocols.triplets.scoring.numbers import Key


def noisy(dataset: MemoryDataset, seed: int = 0) -> pl.DataFrame:
    truth = ground_truth(dataset)
    scores = np.clip(truth.labels * 0.4 + np.random.default_rng(seed).random(truth.labels.shape) * 0.6, 0, 1)
    return truth.scored.with_columns(scores=pl.Series(scores.tolist()))


def test_numbers_are_those_of_the_metrics(theatre: MemoryDataset) -> None:
    table, truth = noisy(theatre), ground_truth(theatre)
    scores = score_triplets(table, theatre)
    values = np.array(table["scores"].to_list())
    found = evaluate_recognition(values, truth.labels, truth.video, space=truth.space, components=["i", "iv", "ivt"])
    for component, result in found.items():
        assert scores.number(component).estimate == pytest.approx(result.mAP)
        assert scores.number(component, scope="video (class-first)").estimate == pytest.approx(result.class_first_mAP)
        assert scores.number(component, scope="video (video-first)").estimate == pytest.approx(result.video_first_mAP)
    assert scores.number().estimate in scores.number()


def test_a_constant_score_earns_the_share_of_frames(theatre: MemoryDataset) -> None:
    scores = score_triplets(None, theatre, constant=True, task="recognition")
    share = ground_truth(theatre).labels.mean(axis=0)
    assert scores.number().estimate == pytest.approx(share.mean())
    table = scores.sheets["components"]
    assert table["constant mAP"].to_list() == pytest.approx(table["mAP"].to_list())


def test_streamed_batches_and_whole_arrays_agree(theatre: MemoryDataset) -> None:
    table, truth = noisy(theatre), ground_truth(theatre)
    values = np.array(table["scores"].to_list())
    stream = RecognitionAccumulator(truth.space, ["i", "ivt"])
    for start in range(0, len(values), 5):
        for row in range(start, min(start + 5, len(values))):
            stream.update(values[row], truth.labels[row], table["video"][row])
    scores = score_recognition(values, truth.labels, table["video"].to_list(), space=truth.space)
    assert scores.number().estimate == pytest.approx(stream.compute()["ivt"].mAP)
    assert scores.number("i").estimate == pytest.approx(stream.compute()["i"].mAP)


def test_frames_without_scores_rank_last_and_are_said(theatre: MemoryDataset) -> None:
    table = noisy(theatre)
    whole, part = (score_triplets(one, theatre) for one in (table, table.filter(pl.col("video") != "v0")))
    assert part.number().estimate < whole.number().estimate
    assert any("8 of 72 labelled frames have no scores" in note for note in part.notes)
    assert any("top-K counts the 64 answered frames" in note for note in part.notes)


def test_folds_of_recognition_are_means_over_folds(theatre: MemoryDataset) -> None:
    table = noisy(theatre)
    parts = {"a": ["v0", "v1", "v2"], "b": ["v3", "v4"]}
    scores = score_triplets(table, theatre, folds=parts)
    alone = [score_triplets(table, theatre, folds={"x": videos}).number().estimate for videos in parts.values()]
    assert scores.number().estimate == pytest.approx(np.mean(alone))


@pytest.mark.figures
def test_the_report_of_recognition_has_no_boxes(theatre: MemoryDataset, tmp_path: Path) -> None:
    scores = score_triplets(noisy(theatre), theatre)
    text = write_page_of([scores], scores.save(tmp_path).parent).read_text()
    assert "share of frames: that column is the" in text
    assert not [name for name in scores.figures if name.startswith("confusion")]
    assert "top" in scores.tables


@pytest.mark.parametrize(
    ("name", "content", "task"),
    [
        ("a.json", {"v1": {"000001": [0.1, 0.2, 0.3]}}, "recognition"),
        ("a.json", {"000001": [0.1, 0.2, 0.3]}, "recognition"),
        ("a.json", {"v1": {"000001": [[0, 0, 0.5, 1, 1, 2, 2]]}}, "detection"),
        ("a.json", [{"image_id": 1, "category_id": 1, "bbox": [0, 0, 1, 1], "score": 0.5}], "detection"),
        ("a.json", {"video": 1, "annotations": {"1": [[0] * 15]}}, "detection"),
        ("a.csv", "video,frame,0,1,2\n", "recognition"),
        ("a.csv", "video,frame,triplet,score,x,y,w,h\n", "detection"),
    ],
)
def test_the_task_is_seen_from_the_file(tmp_path: Path, name: str, content: Any, task: str) -> None:
    path = tmp_path / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    assert find_task(path) == task


def test_the_task_is_seen_from_parquet_and_folders(theatre: MemoryDataset, tmp_path: Path, good: pl.DataFrame) -> None:
    noisy(theatre).write_parquet(tmp_path / "scores.parquet")
    good.write_parquet(tmp_path / "boxes.parquet")
    assert find_task(tmp_path / "scores.parquet") == "recognition"
    assert find_task(tmp_path / "boxes.parquet") == "detection"
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "v1.json").write_text('{"000001": [0.5, 0.1, 0.2]}')
    assert find_task(tmp_path / "folder") == "recognition"


def test_arrays_that_do_not_fit_are_refused() -> None:
    with pytest.raises(BadInput, match="expected two frames × classes arrays and a video for each frame"):
        score_recognition(np.eye(2), np.eye(2), ["v1"])


def six_classes(seed: int = 0) -> Any:
    """Twelve frames in three videos, six classes."""
    rng = np.random.default_rng(seed)
    labels = np.eye(6)[np.arange(12) % 6]
    return np.clip(labels * 0.3 + rng.random((12, 6)) * 0.7, 0, 1), labels, [f"v{k // 4}" for k in range(12)]


def test_recall_among_more_scores_than_classes_is_not_measured(tmp_path: Path) -> None:
    scores = score_recognition(*six_classes())
    scope = "recall among the highest scores"
    assert 0 < scores.number(metric="top-5", scope=scope).estimate <= 1
    for name in ("top-10", "top-20"):
        assert np.isnan(scores.number(metric=name, scope=scope).estimate)
    assert "top-10, top-20 recall is not measured: with 6 classes every answer would reach 1" in scores.notes
    assert "is not measured: with 6 classes" in write_page_of([scores], scores.save(tmp_path).parent).read_text()
    five = score_recognition(np.eye(5), np.eye(5), ["v"] * 5)
    assert np.isnan(five.number(metric="top-5", scope=scope).estimate)


def test_where_every_class_is_rare_their_number_is_not_a_second_one() -> None:
    rare = Key("rare, global", "ivt", "mAP").text
    scores, other = (score_recognition(*six_classes(seed)) for seed in (0, 1))
    assert scores.number(scope="rare, global").estimate == scores.number().estimate
    assert rare not in [headline.key for headline in scores.headlines()]
    assert not scores.to_frame()["scope"].str.starts_with("rare").any()
    compared = compare(scores, other)
    assert rare not in [one.key for one in compared.numbers]
    assert "every class is rare: numbers of rare classes are those of all classes" in compared.notes
    values, labels, videos = six_classes()
    labels[:, 0] = 1  # twelve instances: no longer rare
    some, same = (score_recognition(values, labels, videos, rare=5) for _ in range(2))
    assert rare in [headline.key for headline in some.headlines()]
    assert rare in [one.key for one in compare(some, same).numbers]
