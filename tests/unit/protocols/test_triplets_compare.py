"""Paired comparisons: a score against itself is no difference, and only like is compared with like."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from surgeval import compare
from surgeval.datasets import MemoryDataset
from surgeval.datasets.predictions import join
from surgeval.errors import SurgevalError
from surgeval.metrics import mean_of, rank_detections, weighted_ap
from surgeval.protocols.comparison import few_video_notes
from surgeval.protocols.triplets import score_triplets
from surgeval.stats import paired_statistic


def score(dataset: MemoryDataset, table: pl.DataFrame, name: str, **options: Any) -> Any:
    return score_triplets(table, dataset, name=name, **options)


def test_a_score_does_not_differ_from_itself(theatre: MemoryDataset, good: pl.DataFrame, tmp_path: Path) -> None:
    score(theatre, good, "mine").save(tmp_path / "a")
    table = compare(tmp_path / "a", tmp_path / "a").to_frame()
    defined = table.filter(pl.col("difference").is_not_null())
    assert len(defined) > 70
    for column in ("difference", "low", "high"):
        assert (defined[column] == 0).all()
    assert (defined["p"] == 1).all()


def test_intervals_are_those_of_leaving_videos_out_of_the_rankings_themselves(
    theatre: MemoryDataset, good: pl.DataFrame, poor: pl.DataFrame
) -> None:
    found = compare(score(theatre, good, "good"), score(theatre, poor, "poor")).difference()
    ranked = [rank_detections(join(table, theatre).data(), "ivt", 3) for table in (good, poor)]

    videos = [video.name for video in theatre.videos()]

    def mean_ap(m: Any) -> float:
        which, own = (0, m[: len(videos)]) if m[: len(videos)].any() else (1, m[len(videos) :])
        return mean_of(weighted_ap(ranked[which], own)[:, 0])

    data = join(good, theatre).data()
    sizes = np.bincount(data.videos[data.targets.frame], minlength=len(videos))
    expected = paired_statistic(mean_ap, videos, sizes=sizes, mixed=False)
    assert found.estimate == pytest.approx(expected.estimate)
    assert (found.interval.low, found.interval.high) == pytest.approx((expected.interval.low, expected.interval.high))
    assert found.estimate > 0


def test_the_triplets_stand_first_and_every_number_has_a_label(
    theatre: MemoryDataset, good: pl.DataFrame, poor: pl.DataFrame
) -> None:
    comparison = compare(score(theatre, good, "good"), score(theatre, poor, "poor"))
    labels = [number.label for number in comparison.numbers]
    assert labels[:8] == [
        "IVT mAP50", "IVT mAP50:95", "IVT F1", "I mAP50", "I mAP75", "V mAP50", "T mAP50", "IVT mAP50, video-wise",
    ]  # fmt: skip
    assert len(set(labels)) == len(labels)
    worse = {number.label for number in comparison.numbers if not number.higher_is_better}
    assert "boxes: missed" in worse and "boxes: localised and matched" not in worse
    assert repr(comparison).startswith("good − poor: IVT mAP50 0.")
    assert (comparison.protocol, comparison.clusters) == ("triplets", 9)
    assert comparison.notes[:-1] == few_video_notes(9)
    assert comparison.notes[-1].startswith("every class is rare")  # of the theatre's few frames


def test_runs_of_one_name_are_told_apart_by_their_folders(
    tiny: MemoryDataset, half: pl.DataFrame, tmp_path: Path
) -> None:
    for folder in ("before", "after"):
        score(tiny, half, "net").save(tmp_path / folder)
    comparison = compare(tmp_path / "before", tmp_path / "after")
    assert (comparison.a, comparison.b) == ("before", "after")
    assert any("only 2 videos" in note for note in comparison.notes)


def test_swapping_the_sides_turns_the_sign(theatre: MemoryDataset, good: pl.DataFrame, poor: pl.DataFrame) -> None:
    a, b = score(theatre, good, "good"), score(theatre, poor, "poor")
    there, back = compare(a, b).difference("global|i|F1"), compare(b, a).difference("global|i|F1")
    assert there.estimate == pytest.approx(-back.estimate)
    assert there.interval.low == pytest.approx(-back.interval.high)


def test_two_videos_give_no_test(tiny: MemoryDataset, half: pl.DataFrame) -> None:
    a = score(tiny, half, "a")
    table = compare(a, a).to_frame()
    assert table["p"].is_null().all()
    assert table["few_clusters"].all()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"convention": "ivtd"}, "convention (coco and ivtd)"),
        ({"rare": 5}, "rare (300 and 5)"),
        ({"split": "test"}, "ground truth"),
        ({"leave_source_out": True}, "scored groups of videos"),
        ({"components": ["i"]}, "components (i, v, t, ivt and i)"),
    ],
)
def test_what_differs_is_named(
    theatre: MemoryDataset, good: pl.DataFrame, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(SurgevalError) as error:
        compare(score(theatre, good, "a"), score(theatre, good, "b", **options))
    assert sentence in str(error.value)


def test_other_labels_are_other_data(tiny: MemoryDataset, half: pl.DataFrame) -> None:
    frames = [frame for video in tiny.videos() for frame in tiny.frames(video.name)]
    other = MemoryDataset(tiny.space, [*frames[:3], frames[3].__class__(**{**_fields(frames[3]), "instances": ()})])
    with pytest.raises(SurgevalError, match="ground truth"):
        compare(score(tiny, half, "a"), score(other, half, "b"))


def _fields(frame: Any) -> dict[str, Any]:
    return {name: getattr(frame, name) for name in frame.__dataclass_fields__}


def test_a_folder_without_scores_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SurgevalError, match=r"run\.json: no such file"):
        compare(tmp_path, tmp_path)


def test_replicates_of_other_draws_are_refused(theatre: MemoryDataset, good: pl.DataFrame, tmp_path: Path) -> None:
    scores = score(theatre, good, "a")
    scores.save(tmp_path)
    few = dict(list(scores.replicates.values.items())[:5])
    with pytest.raises(SurgevalError, match="a draw of videos that is not stored"):
        compare(replace(scores, replicates=replace(scores.replicates, values=few)), scores)
    (tmp_path / "replicates.parquet").write_bytes(b"PAR1")
    with pytest.raises(SurgevalError, match=r"replicates\.parquet: not a readable Parquet file"):
        compare(tmp_path, tmp_path)
