"""Laws of reading, writing and joining predictions, on random tables and on damaged files."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import LONG

from surgeval.datasets import MemoryDataset, Problem
from surgeval.datasets.predictions import (
    FORMATS,
    Detections,
    GroundTruth,
    ground_truth,
    join,
    join_recognition,
    read_detections,
    read_recognition,
    write_detections,
    write_recognition,
)
from surgeval.errors import SurgevalError
from surgeval.metrics import evaluate_detection
from surgeval.records import Box, Frame, Instance, Triplet
from surgeval.vocab import load_labels

SPACE = load_labels("prostatd")
# Files are written and read again, and tables of strangers in a process of their own.
FEWER = settings(max_examples=300 if LONG else 15)
WIDTH, HEIGHT = 1280, 720
SUFFIX = {"table": ".csv", "coco": ".json", "rows": ".json", "yolo": "", "cholect50": ""}


def _truth() -> GroundTruth:
    """Three videos with names that are easily confused, ten frames each; every third frame shows nothing."""
    random = np.random.default_rng(11)
    frames = []
    for video in ("psiv1", "psiv_1", "1"):
        for number in range(10):
            boxes = [Box(*random.uniform(0, 500, 2), *random.uniform(20, 200, 2)) for _ in range(number % 3)]
            instances = tuple(Instance(Triplet(*SPACE.triplets[int(random.integers(89))]), box) for box in boxes)
            frames.append(Frame(video, f"{number:05d}", number, None, None, WIDTH, HEIGHT, instances))
    return ground_truth(MemoryDataset(SPACE, frames))


TRUTH = _truth()
NAMES = TRUTH.frames.select("video", "frame").rows()
side = st.floats(2, 600, allow_nan=False)
row = st.tuples(
    st.sampled_from(NAMES), st.integers(0, 88), st.floats(0, 1), st.floats(0, 600), st.floats(0, 100), side, side
)
rows = st.lists(row, min_size=1, max_size=25)


def _table(drawn: list[Any]) -> pl.DataFrame:
    flat = [(*name, triplet, score, x, y, w, h) for name, triplet, score, x, y, w, h in drawn]
    return pl.DataFrame(flat, schema=["video", "frame", "triplet", "score", "x", "y", "w", "h"], orient="row")


def _same(a: Detections, b: pl.DataFrame, tolerance: float) -> None:
    """Equal up to the order of frames; within a frame the order of rows is kept."""
    one, other = join(a, TRUTH).data(), join(b, TRUTH).data()
    assert one.predictions.frame.tolist() == other.predictions.frame.tolist()
    assert one.predictions.score.tolist() == other.predictions.score.tolist()
    for component, ids in one.predictions.classes.items():
        assert ids.tolist() == other.predictions.classes[component].tolist()
    np.testing.assert_allclose(one.predictions.xywh, other.predictions.xywh, rtol=0, atol=tolerance)


@pytest.mark.parametrize("format", FORMATS)
@FEWER
@given(drawn=rows)
def test_any_table_survives_any_format(format: str, drawn: list[Any]) -> None:
    table = _table(drawn)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"found{SUFFIX[format]}"
        report = write_detections(table, path, format, dataset=TRUTH)
        back = read_detections(path, TRUTH)
    assert (report.losses, report.rows, back.format) == ((), len(table), format)
    _same(back, table, 0.0 if format in ("table", "coco", "rows") else 1e-9)


@given(drawn=rows, seed=st.integers(0, 2**32 - 1))
def test_the_order_of_rows_does_not_change_what_is_scored(drawn: list[Any], seed: int) -> None:
    table = _table(drawn)
    scores = np.linspace(0.01, 0.99, len(table))  # no ties: ties keep the order of arrival
    table = table.with_columns(score=pl.Series(scores))
    shuffled = table[np.random.default_rng(seed).permutation(len(table)).tolist()]
    results = []
    for one in (table, shuffled):
        joined = join(one, TRUTH)
        results.append(evaluate_detection(joined.data(), joined.n_classes())["ivt"].overall)
    np.testing.assert_array_equal(results[0].AP, results[1].AP)


@given(drawn=rows)
def test_every_labelled_frame_is_answered_or_missing(drawn: list[Any]) -> None:
    table = _table(drawn)
    joined = join(table, TRUTH)
    answered = set(table.select("video", "frame").rows())
    assert set(joined.missing.rows()) == set(NAMES) - answered
    assert len(joined.data().targets) == len(TRUTH.boxes)


@given(drawn=rows, at=st.integers(0, 24), field=st.sampled_from(["score", "x", "y", "w", "h"]),
       value=st.sampled_from([np.nan, np.inf, -np.inf]))  # fmt: skip
def test_a_number_that_is_none_is_always_named(drawn: list[Any], at: int, field: str, value: float) -> None:
    table = _table(drawn)
    at %= len(table)
    broken = table.with_columns(
        pl.when(pl.int_range(pl.len()) == at).then(pl.lit(value)).otherwise(pl.col(field)).alias(field)
    )
    heard: list[Problem] = []
    joined = join(broken, TRUTH, on_problem=heard.append)
    errors = [problem for problem in heard if problem.level == "error"]
    assert [(problem.field, (problem.record or "").split(" (")[0]) for problem in errors] == [(field, f"row {at}")]
    assert len(joined.predictions) == len(table) - 1


@given(triplet=st.integers(-5, 95), part=st.sampled_from(["instrument", "verb", "target"]), value=st.integers(-3, 12))
def test_components_beside_a_triplet_agree_with_it_or_are_refused(triplet: int, part: str, value: int) -> None:
    table = pl.DataFrame({"video": ["1"], "frame": ["00001"], "triplet": [triplet], part: [value], "score": [0.5],
                          "x": [10.0], "y": [10.0], "w": [50.0], "h": [50.0]})  # fmt: skip
    heard: list[Problem] = []
    kept = len(join(table, TRUTH, on_problem=heard.append).predictions)
    sizes = {"instrument": 7, "verb": 10, "target": 10}
    valid = -1 <= triplet < 89 and -1 <= value < sizes[part] and (triplet, value) != (-1, -1)
    if valid and triplet >= 0:
        valid = value in (-1, SPACE.triplets[triplet][("instrument", "verb", "target").index(part)])
    assert kept == valid
    assert len(heard) == 1 - kept


mutation = st.lists(
    st.tuples(st.floats(0, 1, exclude_max=True), st.binary(max_size=6), st.integers(0, 12)), min_size=1, max_size=4
)


def _damaged(data: bytes, mutations: list[tuple[float, bytes, int]]) -> bytes:
    for place, new, cut in mutations:
        at = int(place * len(data))
        data = data[:at] + new + data[at + cut :]
    return data


@pytest.mark.parametrize("format", FORMATS)
@FEWER
@given(mutations=mutation, drawn=st.lists(row, min_size=2, max_size=4))
def test_a_damaged_file_is_told_or_read_and_never_crashes(
    format: str, mutations: list[tuple[float, bytes, int]], drawn: list[Any]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"found{SUFFIX[format]}"
        write_detections(_table(drawn), path, format, dataset=TRUTH)
        victim = path if path.is_file() else next(p for p in sorted(path.rglob("*")) if p.is_file())
        victim.write_bytes(_damaged(victim.read_bytes(), mutations))
        heard: list[Problem] = []
        try:
            back = read_detections(path, TRUTH, format=format, on_problem=heard.append)
        except SurgevalError:
            return
    for problem in heard:
        assert problem.path
        assert "\n" not in str(problem)
    assert np.isfinite(back.table.select("score", "x", "y", "w", "h").to_numpy()).all()
    assert back.table["triplet"].is_between(-1, 88).all()
    assert len(join(back, TRUTH).predictions) == len(back)


anything = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 100) | st.floats() | st.text(max_size=6) | st.just("00001"),
    lambda inner: st.lists(inner, max_size=9)
    | st.dictionaries(
        st.sampled_from(["1", "psiv1", "00001", "annotations", "images", "categories", "videos", "name", "frames", "id",
                         "image_id", "category_id", "bbox", "score", "file_name", "pd"]) | st.text(max_size=3),
        inner, max_size=5),
    max_leaves=30,
)  # fmt: skip


@given(document=anything)
def test_any_json_is_told_or_read_and_never_crashes(document: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "1.json"
        path.write_text(json.dumps(document))
        for format in (None, "coco", "rows", "cholect50"):
            try:
                back = read_detections(path, TRUTH, format=format, on_problem=lambda problem: None)
            except SurgevalError:
                continue
            assert len(join(back, TRUTH).predictions) == len(back)
        try:
            scores = read_recognition(path, TRUTH, on_problem=lambda problem: None)
        except SurgevalError:
            return
        assert join_recognition(scores, TRUTH).scores.shape == (30, 89)


@FEWER
@given(
    names=st.lists(st.sampled_from(NAMES), unique=True, min_size=1, max_size=8),
    seed=st.integers(0, 2**32 - 1),
    suffix=st.sampled_from([".csv", ".parquet", ".json"]),
)
def test_any_scores_survive_any_format(names: list[tuple[str, str]], seed: int, suffix: str) -> None:
    values = np.random.default_rng(seed).normal(0, 10, (len(names), 89))
    table = pl.DataFrame(names, schema=["video", "frame"], orient="row").with_columns(
        scores=pl.Series(values.tolist(), dtype=pl.List(pl.Float64))
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"scores{suffix}"
        write_recognition(table, path, dataset=TRUTH)
        one, other = (join_recognition(t, TRUTH) for t in (read_recognition(path, TRUTH), table))
    np.testing.assert_array_equal(one.scores, other.scores)
    assert one.answered.sum() == len(names)
