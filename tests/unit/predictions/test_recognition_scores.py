"""Per-frame class scores: reading, writing, joining."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from surgeval.datasets import MemoryDataset, Problem
from surgeval.datasets.predictions import (
    GroundTruth,
    ground_truth,
    join_recognition,
    read_recognition,
    write_recognition,
)
from surgeval.errors import BadInput, DataError
from surgeval.metrics import evaluate_recognition


@pytest.fixture
def scores() -> pl.DataFrame:
    """Scores of all labelled frames but the last."""
    values = np.random.default_rng(5).random((3, 100))
    return pl.DataFrame({"video": ["VID68", "VID68", "VID70"], "frame": ["000012", "000019", "000012"],
                         "scores": values.tolist()})  # fmt: skip


@pytest.mark.parametrize("name", ["scores.parquet", "scores.csv", "scores.json"])
def test_scores_are_read_back_to_the_last_bit(
    name: str, truth: GroundTruth, scores: pl.DataFrame, tmp_path: Path
) -> None:
    report = write_recognition(scores, tmp_path / name, dataset=truth)
    back = read_recognition(tmp_path / name, truth)
    assert (report.rows, report.losses, report.format) == (3, (), back.format)
    assert back.table.rows() == scores.rows()
    write_recognition(back, tmp_path / f"again_{name}", dataset=truth)
    assert (tmp_path / f"again_{name}").read_bytes() == (tmp_path / name).read_bytes()


def test_a_folder_of_videos_may_name_frames_by_number(truth: GroundTruth, tmp_path: Path) -> None:
    (tmp_path / "VID68.json").write_text(json.dumps({"12": [0.5] * 100, "000019": [0.25] * 100}))
    back = read_recognition(tmp_path, truth)
    assert back.table["frame"].to_list() == ["000012", "000019"]
    alone = read_recognition(tmp_path / "VID68.json", truth)
    assert alone.table.rows() == back.table.rows()


def test_a_labelled_frame_without_scores_is_ranked_last(truth: GroundTruth, scores: pl.DataFrame) -> None:
    joined = join_recognition(scores, truth)
    assert joined.answered.tolist() == [True, True, True, False]
    assert joined.missing.rows() == [("VID70", "000033")]
    assert joined.scores[3].max() < joined.scores[:3].min()
    result = evaluate_recognition(
        joined.scores, joined.targets, joined.video, space=joined.space, components=("ivt", "i")
    )
    assert result["ivt"].AP[19] == pytest.approx(1 / 4)  # found when every other frame has been
    assert joined.notes() == ("1 of 4 labelled frames have no scores: their labels are ranked last",)


def test_scores_below_zero_stay_above_a_missing_frame(truth: GroundTruth, scores: pl.DataFrame) -> None:
    logits = scores.with_columns(pl.col("scores").list.eval(pl.element() * 20 - 40))
    joined = join_recognition(logits, truth)
    assert joined.scores[3].max() < joined.scores[:3].min() < -20


def test_what_is_not_scored_is_left_out_and_said(dataset: MemoryDataset, scores: pl.DataFrame) -> None:
    more = pl.concat([scores, scores.head(1).with_columns(frame=pl.lit("000026"))])
    joined = join_recognition(more, ground_truth(dataset, videos=["VID68"]))
    assert (joined.elsewhere, joined.unlabelled, len(joined.missing)) == (1, 1, 0)


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ({"VID68": {"000012": [0.5] * 99}}, "VID68 000012: scores: found 99 scores, expected 100 scores"),
        ({"VID68": {"000012": 1}}, "VID68 000012: scores: found 1, expected 100 scores"),
        ({"VID68": {"000012": [*[0.5] * 99, float("nan")]}}, "scores: found no finite number for class 99, expected"),
        ({"VID68": {"000012": ["0.5", *[0.5] * 99]}}, "scores: found no finite number for class 0, expected 100"),
        ({"VID68": {"000012": [0.5] * 100, "12": [0.5] * 100}}, "frame: found VID68 000012 again, expected one row of"),
        ({"VID68": {"000013": [0.5] * 100}}, "frame: found '000013', expected a frame of video VID68"),
        ({"VID86": {"000012": [0.5] * 100}}, "video: found 'VID86', expected a video of memory"),
        ({"VID68": 3}, "video VID68: found 3, expected a JSON object"),
        ([], "expected a JSON object"),
    ],
)
def test_bad_scores_are_named(truth: GroundTruth, tmp_path: Path, document: Any, sentence: str) -> None:
    path = tmp_path / "scores.json"
    path.write_text(json.dumps(document))
    with pytest.raises(DataError) as error:
        read_recognition(path, truth)
    assert str(error.value).startswith(str(path))
    assert sentence in str(error.value)
    heard: list[Problem] = []
    assert len(read_recognition(path, truth, on_problem=heard.append)) <= 1
    assert len(heard) == 1


def test_tables_of_the_wrong_shape_are_named(truth: GroundTruth, scores: pl.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "scores.parquet"
    for table, sentence in (
        (scores.drop("scores"), "0: found video, frame, expected video, frame and scores, or a column for each class"),
        (scores.with_columns(scores=pl.lit(1.0)), "scores: found a column of Float64, expected a list of numbers"),
        (scores.with_columns(pl.col("scores").list.head(7)), "scores: found 7 scores, expected 100 scores"),
        (scores.with_columns(scores=pl.lit(None, pl.List(pl.Float64))), "scores: found 0 scores, expected 100 scores"),
    ):
        table.write_parquet(path)
        with pytest.raises(DataError) as error:
            read_recognition(path, truth)
        assert sentence in str(error.value)


def test_scores_of_another_label_space_are_refused(truth: GroundTruth, scores: pl.DataFrame) -> None:
    with pytest.raises(DataError, match="found 99 scores, expected 100 scores"):
        join_recognition(scores.with_columns(pl.col("scores").list.head(99)), truth)


def test_names_that_say_nothing_are_refused(truth: GroundTruth, scores: pl.DataFrame, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such file or folder, expected recognition scores"):
        read_recognition(tmp_path / "gone.json", truth)
    with pytest.raises(BadInput, match=r"expected .csv, .parquet or .json"):
        write_recognition(scores, tmp_path / "scores.npz", dataset=truth)
    with pytest.raises(BadInput, match="format 'npz': expected one of table, json"):
        read_recognition(tmp_path, truth, format="npz")


def test_no_scores_at_all_is_every_frame_missing(truth: GroundTruth, scores: pl.DataFrame) -> None:
    joined = join_recognition(scores.clear(), truth)
    assert (len(joined.missing), joined.scores.shape) == (4, (4, 100))
