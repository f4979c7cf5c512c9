"""Videos of two models are exchanged and every number is computed anew, from what the folders keep."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from surgeval import compare
from surgeval.datasets import MemoryDataset
from surgeval.errors import SurgevalError
from surgeval.protocols.triplets import TripletScores, score_recognition, score_triplets
from surgeval.protocols.triplets.mixing_files import Layout, read_mixable
from surgeval.protocols.triplets.scoring.mixing import RankedBoxes, draws_of, mixture_of

OPTIONS: list[dict[str, Any]] = [
    {},
    {"convention": "ivtd"},
    {"leave_source_out": True},
    {"folds": {"a": ["v0", "v1", "v2", "v7"], "b": ["v3", "v4", "v5", "v6"]}},
    {"components": ["v", "i"]},
]


def frames_of_two_models(**options: Any) -> list[TripletScores]:
    rng = np.random.default_rng(4)
    labels = rng.random((90, 100)) < 0.1
    videos = [f"v{k % 9}" for k in range(90)]  # the frames of videos are interleaved
    scores = [(labels * size + rng.random(labels.shape)).round(1) for size in (0.5, 0.3)]
    common = {"space": "cholect50", "rare": 9, **options}
    return [score_recognition(table, labels, videos, name=str(k), **common) for k, table in enumerate(scores)]


def both(dataset: MemoryDataset, a: pl.DataFrame, b: pl.DataFrame, options: dict[str, Any]) -> list[TripletScores]:
    return [score_triplets(table, dataset, name="m", **options) for table in (a, b)]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: ",".join(options) or "default")
def test_a_mixture_scores_as_the_file_that_holds_it(
    theatre: MemoryDataset, good: pl.DataFrame, poor: pl.DataFrame, options: dict[str, Any]
) -> None:
    swapped = ["v1", "v3", "v4", "v8"]
    rough = [table.with_columns(pl.col("score").round(1)) for table in (good, poor)]  # many ties
    a, b = both(theatre, rough[0], rough[1], options)
    assert a.mixable is not None
    assert b.mixable is not None
    videos = a.settings["videos"]
    away = np.array([video in swapped for video in videos])
    values = mixture_of(a.mixable, b.mixable)(np.r_[~away, away].astype(np.int64))
    taken = pl.col("video").is_in(swapped)
    mixed = score_triplets(pl.concat([rough[0].filter(~taken), rough[1].filter(taken)]), theatre, **options)
    expected = {number.key: number.interval.estimate for number in mixed.numbers}
    # Cost-aware F1 is read at a threshold of each model's own, which the mixed file as a whole does not have.
    known = [(key, value) for key, value in zip(a.mixable.keys, values, strict=True)
             if key.scope != "cost-aware"]  # fmt: skip
    assert len(known) >= 20
    for key, value in known:
        assert value == pytest.approx(expected[key], nan_ok=True), key


def test_a_mixture_of_frames_scores_as_the_array_that_holds_it() -> None:
    rng = np.random.default_rng(4)
    labels, (a, b) = rng.random((90, 100)) < 0.1, frames_of_two_models()
    tables = [(labels * size + rng.random(labels.shape)).round(1) for size in (0.5, 0.3)]
    number = np.arange(90) % 9
    away = np.isin(np.arange(9), [1, 4, 5])
    assert a.mixable is not None
    assert b.mixable is not None
    values = mixture_of(a.mixable, b.mixable)(np.r_[~away, away].astype(np.int64))
    mixed = score_recognition(
        np.where(away[number][:, None], tables[1], tables[0]),
        labels,
        [f"v{k}" for k in number],
        space="cholect50",
        rare=9,
    )
    expected = {one.key: one.interval.estimate for one in mixed.numbers}
    assert len(a.mixable.keys) == len(expected)
    for key, value in zip(a.mixable.keys, values, strict=True):
        assert value == pytest.approx(expected[key], nan_ok=True), key


@pytest.mark.parametrize(
    "options",
    [
        OPTIONS[0],
        {"task": "recognition"},
        pytest.param(OPTIONS[1], marks=pytest.mark.long),
        pytest.param(OPTIONS[3], marks=pytest.mark.long),
    ],
    ids=lambda options: ",".join(options) or "default",
)
def test_stored_runs_compare_as_those_in_memory(
    theatre: MemoryDataset, good: pl.DataFrame, poor: pl.DataFrame, tmp_path: Path, options: dict[str, Any]
) -> None:
    boxes = "task" not in options
    a, b = both(theatre, good, poor, options) if boxes else frames_of_two_models()
    a.save(tmp_path / "a")
    b.save(tmp_path / "b")
    here, stored = compare(a, b), compare(tmp_path / "a", tmp_path / "b")
    assert stored.to_frame().equals(here.to_frame())
    main = here.difference()
    assert main.test == "exchange"
    patterns = main.p * 2 ** (len(a.settings["videos"]) - 1)  # all exchanges of so few videos are enumerated
    assert patterns == pytest.approx(round(patterns))
    tests = {(one.key.split("|")[2], one.difference.test) for one in here.numbers
             if not one.key.startswith("cost")}  # fmt: skip
    assert {metric for metric, test in tests if test == "t"} == ({"P", "R", "F1"} if boxes else set())


@pytest.mark.parametrize("task", ["detection", "recognition"])
def test_swapping_the_models_leaves_p_alone(
    theatre: MemoryDataset, good: pl.DataFrame, poor: pl.DataFrame, task: str
) -> None:
    a, b = both(theatre, good, poor, {}) if task == "detection" else frames_of_two_models()
    there, back = compare(a, b, resamples=50), compare(b, a, resamples=50)
    for one, other in zip(there.numbers, back.numbers, strict=True):
        assert one.difference.p == pytest.approx(other.difference.p, nan_ok=True), one.key
        assert one.difference.estimate == pytest.approx(-other.difference.estimate, nan_ok=True), one.key
        assert one.difference.interval.low == pytest.approx(-other.difference.interval.high, nan_ok=True), one.key


def test_a_folder_that_kept_too_little_is_compared_by_leaving_videos_out(
    theatre: MemoryDataset, good: pl.DataFrame, poor: pl.DataFrame, tmp_path: Path
) -> None:
    for name, one in zip("ab", both(theatre, good, poor, {}), strict=True):
        one.save(tmp_path / name)
    for name in ("ranked.parquet", "counts.parquet"):
        (tmp_path / "a" / name).unlink()
    comparison = compare(tmp_path / "a", tmp_path / "b")
    assert {one.difference.test for one in comparison.numbers} == {"t"}
    assert any("t-test" in note for note in comparison.notes)


def test_large_runs_draw_fewer_exchanges(theatre: MemoryDataset, good: pl.DataFrame, poor: pl.DataFrame) -> None:
    a, b = (one.mixable for one in both(theatre, good, poor, {}))
    assert isinstance(a, RankedBoxes)
    assert isinstance(b, RankedBoxes)
    assert draws_of(a, b, 1000) == 1000

    class Large(RankedBoxes):
        cells = 10_000_000

    assert draws_of(Large(a.n_videos, a.rare_of, a.groups), b, 1000) == 199
    assert draws_of(Large(a.n_videos, a.rare_of, a.groups), b, 100) == 100


# Numbers of groups, videos, classes and columns that the other files do not have.
BOXES: list[tuple[str, pl.Expr]] = [
    ("ranked.parquet", pl.lit(99).cast(pl.Int64).alias("video")),
    ("ranked.parquet", pl.lit(7).cast(pl.Int64).alias("group")),
    ("ranked.parquet", pl.lit(500).cast(pl.Int64).alias("class")),
    ("counts.parquet", pl.lit(99_999).cast(pl.Int64).alias("class")),
]
FRAMES: list[tuple[str, pl.Expr]] = [
    ("ranked.parquet", pl.lit(99).cast(pl.Int64).alias("video")),
    ("ranked.parquet", pl.lit([100]).cast(pl.List(pl.Int64)).alias("labels")),
    ("ranked.parquet", pl.col("scores").list.head(pl.int_range(pl.len()) + 1)),
    ("counts.parquet", pl.lit(99_999).cast(pl.Int64).alias("class")),
]


@pytest.mark.parametrize("task", ["detection", "recognition"])
def test_numbers_that_the_other_files_do_not_have_are_refused(
    theatre: MemoryDataset, good: pl.DataFrame, tmp_path: Path, task: str
) -> None:
    boxes = task == "detection"
    one = score_triplets(good, theatre) if boxes else frames_of_two_models()[0]
    one.save(tmp_path)
    layout = Layout.of(one.settings, one.confusions, one.replicates.keys)
    assert read_mixable(tmp_path, layout) is not None
    for file, change in BOXES if boxes else FRAMES:
        table = pl.read_parquet(tmp_path / file)
        table.with_columns(change).write_parquet(tmp_path / file)
        with pytest.raises(SurgevalError, match=file):
            read_mixable(tmp_path, layout)
        table.write_parquet(tmp_path / file)
