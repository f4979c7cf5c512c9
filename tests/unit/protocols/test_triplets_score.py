"""Scores of detected triplets: known numbers, honest notes, and the two files a comparison needs."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

from surgeval import compare
from surgeval.datasets import MemoryDataset
from surgeval.datasets.predictions import ground_truth, join
from surgeval.errors import BadInput, DataError, SurgevalError
from surgeval.metrics import cost_aware_f1, evaluate_detection
from surgeval.pages import glossary
from surgeval.protocols.triplets import TripletScores, score_triplets
from surgeval.protocols.triplets.page import write_page_of
from surgeval.protocols.triplets.readable import readable_scores

if TYPE_CHECKING:
    from tests.unit.protocols.conftest import Oracle

HALF = 51 / 101  # one of two ground truths found, as COCO reads it


def score(dataset: MemoryDataset, table: pl.DataFrame | str | Path | None, **options: Any) -> TripletScores:
    return score_triplets(table, dataset, **options)


@pytest.mark.parametrize(("convention", "perfect"), [("coco", 1.0), ("ivtd", 0.995), ("ivtd-legacy", 0.995)])
def test_a_detector_that_knows_the_labels_scores_one(
    tiny: MemoryDataset, oracle: Oracle, convention: Any, perfect: float
) -> None:
    scores = score(tiny, oracle(tiny), convention=convention)
    for component in ("i", "v", "t", "ivt"):
        assert scores.number(component).estimate == pytest.approx(perfect)
        assert scores.number(component, scope="video (class-first)").estimate == pytest.approx(perfect)
    assert scores.number(metric="F1", scope="cost-aware").estimate == pytest.approx(1.0)
    assert scores.number(metric="lm", scope="association").estimate == 1.0


def test_a_frame_without_predictions_is_a_miss(tiny: MemoryDataset, half: pl.DataFrame) -> None:
    scores = score(tiny, half)
    assert scores.number().estimate == pytest.approx((HALF + 1) / 2)
    assert scores.number("i", "R").estimate == pytest.approx(0.75)
    assert any("1 of 4 labelled frames have no predictions" in note for note in scores.notes)
    association = scores.sheets["association"]
    assert dict(association.select("outcome", "count").iter_rows())["fn"] == 1


def test_the_ivtd_convention_joins_points_by_lines(tiny: MemoryDataset, half: pl.DataFrame) -> None:
    assert score(tiny, half, convention="ivtd").number().estimate == pytest.approx((0.75 + 0.995) / 2)


@pytest.mark.parametrize(("overlap", "precision"), [(0.7, 0.0), (0.8, 1.0)])
def test_map75_asks_instruments_for_an_iou_of_three_quarters_and_is_shown_with_the_others(
    tiny: MemoryDataset, oracle: Oracle, overlap: float, precision: float
) -> None:
    scores = score(tiny, oracle(tiny).with_columns(pl.col("w") * overlap))
    number = scores.number("i", "mAP75")
    assert (scores.number("i").estimate, number.estimate) == (1.0, precision)
    assert [one.key.component for one in scores.numbers if one.key.metric == "mAP75"] == ["i"] * 3  # a row per scope
    for name in ("components", "video_wise", "conventions"):
        assert "mAP75" in (*scores.tables[name].columns, *scores.tables[name].to_series(1))
    assert "I mAP75" in [headline.label for headline in scores.headlines()]
    assert compare(scores, scores).difference("global|i|mAP75").a == precision
    assert "Mean average precision at IoU 0.75, over instruments." in {term.says for term in glossary(scores.measures)}


def test_the_notes_say_when_conventions_disagree(tiny: MemoryDataset, half: pl.DataFrame, oracle: Oracle) -> None:
    said = " ".join(score(tiny, half).notes)
    assert "disagree by more than 0.01" in said
    agreed = " ".join(score(tiny, oracle(tiny)).notes)
    assert "agree to 0.01" in agreed


def test_every_fold_is_scored_on_its_own_videos(tiny: MemoryDataset, half: pl.DataFrame) -> None:
    scores = score(tiny, half, folds={"a": ["v1"], "b": ["v2"]})
    assert scores.number().estimate == pytest.approx((HALF + 1) / 2)
    rows = {row["group"]: row for row in scores.sheets["folds"].filter(component="ivt").iter_rows(named=True)}
    assert rows["a"]["mAP50"] == pytest.approx(HALF)
    assert rows["b"]["mAP50"] == pytest.approx(1)
    assert rows["std"]["mAP50"] == pytest.approx((1 - HALF) / math.sqrt(2))  # ddof = 1
    assert any("ddof = 1" in note for note in scores.notes)


def test_a_false_positive_in_another_fold_costs_nothing(tiny: MemoryDataset, oracle: Oracle) -> None:
    stray = oracle(tiny).head(1).with_columns(triplet=pl.lit(2, dtype=pl.Int64), score=pl.lit(0.99))
    table = pl.concat([oracle(tiny), stray])
    assert score(tiny, table).number().estimate < 1
    assert score(tiny, table, folds={"a": ["v1"], "b": ["v2"]}).number().estimate == pytest.approx(1)


def test_leaving_a_source_out_scores_each_source_alone(theatre: MemoryDataset, good: pl.DataFrame) -> None:
    scores = score(theatre, good, leave_source_out=True)
    table = scores.sheets["sources"].filter(component="ivt")
    assert table["group"].to_list() == ["A", "B", "C", "mean", "std"]
    truth = ground_truth(theatre, [f"v{k}" for k in (0, 3, 6)])
    joined = join(good, truth)
    alone = evaluate_detection(joined.data(), joined.n_classes())["ivt"].overall
    assert table["mAP50"][0] == pytest.approx(alone.mAP)
    assert table["F1"][0] == pytest.approx(alone.mean("F1"))


def test_pooled_numbers_are_those_of_the_metrics(theatre: MemoryDataset, poor: pl.DataFrame) -> None:
    scores = score(theatre, poor)
    joined = join(poor, theatre)
    data, result = joined.data(), evaluate_detection(joined.data(), joined.n_classes())
    for component in ("i", "v", "t", "ivt"):
        assert scores.number(component, "mAP50:95").estimate == pytest.approx(result[component].overall.mAP_5095)
        first = result[component].per_video.video_first()["AP"]
        assert scores.number(component, scope="video (video-first)").estimate == pytest.approx(first)
    cost = cost_aware_f1(data, 3, min_score=result["ivt"].overall.threshold, weighted_parts=True)
    for part in ("bbox", "i", "v", "t", "ivt"):
        assert scores.number(part, "F1", "cost-aware").estimate == pytest.approx(cost.macro(part))
    # The curve's mean over 101 recalls is the AP it belongs to.
    heavy = scores.curves["ivt"][0]
    assert np.mean(heavy.y) == pytest.approx(result["ivt"].overall.mAP)


def test_intervals_contain_their_estimates_and_nothing_is_drawn(theatre: MemoryDataset, poor: pl.DataFrame) -> None:
    scores = score(theatre, poor)
    for component in ("i", "v", "t", "ivt"):
        interval = scores.number(component)
        assert interval.low < interval.high
        assert interval.estimate in interval
        assert not interval.few_clusters
    assert score(theatre, poor).to_frame().equals(scores.to_frame())


def test_a_kind_of_box_that_no_video_has_gets_no_interval(theatre: MemoryDataset, oracle: Oracle) -> None:
    scores = score(theatre, oracle(theatre)[3:])  # boxes of the first video are missed
    rows = {row["outcome"]: row for row in scores.sheets["association"].iter_rows(named=True)}
    shown = {row["outcome"]: row["share"] for row in _readable(scores, "association").iter_rows(named=True)}
    never = [name for name, row in rows.items() if not row["count"]]
    assert set(rows) - set(never) == {"lm", "fn"}
    for name, row in rows.items():
        interval = scores.number(metric=name, scope="association")
        if name in never:
            assert (row["share_low"], row["share_high"], interval.method) == (None, None, "none")
            assert shown[name] == "none in 9 videos"
        else:
            assert interval.low <= interval.estimate <= interval.high
            assert shown[name] == interval.cell("share")
    assert scores.number(metric="mAP50").method == "t"


def test_boxes_that_are_all_right_have_no_interval_and_their_precision_has_one(
    theatre: MemoryDataset, oracle: Oracle
) -> None:
    scores = score(theatre, oracle(theatre))
    assert str(scores.number(metric="lm", scope="association")) == "1.000 [no interval]"
    assert scores.number().method == "bound"
    assert _readable(scores, "association")["share"].to_list() == ["100.0 %", *["none in 9 videos"] * 6]


def test_with_folds_the_shares_of_boxes_are_those_of_their_counts(theatre: MemoryDataset, poor: pl.DataFrame) -> None:
    folds = {"a": ["v0"], "b": [f"v{k}" for k in range(1, 9)]}
    scores = score(theatre, poor, folds=folds)
    table = scores.sheets["association"]
    assert table["share"].to_list() == pytest.approx((table["count"] / table["count"].sum()).to_list())
    assert table.equals(score(theatre, poor).sheets["association"])  # the same boxes, ranked in one group
    means = [scores.number(metric=name, scope="association").estimate for name in table["outcome"]]
    assert means != pytest.approx(table["share"].to_list(), abs=0.001)  # one number of all is the mean over folds
    title = next(one.title for one in readable_scores(scores) if one.name == "association")
    assert "of all folds together" in title


def test_the_cost_aware_table_says_what_each_row_can_reach(theatre: MemoryDataset, poor: pl.DataFrame) -> None:
    scores = score(theatre, poor)
    table = scores.sheets["cost_aware"]
    maxima = {"bbox": 0.1, "i": 0.5, "v": 0.2, "t": 0.2, "ivt": 1.0}
    assert dict(table.select("component", "maximum").iter_rows()) == maxima
    *parts, whole = table["estimate"]
    assert sum(parts) != pytest.approx(whole, abs=1e-6)
    title = next(one.title for one in readable_scores(scores) if one.name == "cost_aware")
    assert "sum" not in title


def _readable(scores: TripletScores, name: str) -> pl.DataFrame:
    return next(table.frame for table in readable_scores(scores) if table.name == name)


def test_one_video_gets_no_interval_and_few_videos_are_flagged(tiny: MemoryDataset, half: pl.DataFrame) -> None:
    alone = score(tiny, half, split="test")
    assert alone.number().estimate == pytest.approx(1)
    assert math.isnan(alone.number().low)
    assert any("one video has no interval" in note for note in alone.notes)
    assert score(tiny, half).to_frame()["few_clusters"].all()


def test_rare_classes_are_counted_in_the_whole_dataset_or_in_training(
    theatre: MemoryDataset, good: pl.DataFrame
) -> None:
    totals = {"dataset": range(9), "train": range(3)}
    for where, chosen in totals.items():
        truth = ground_truth(theatre, [f"v{k}" for k in chosen])
        counts = np.bincount(truth.boxes.classes["ivt"], minlength=3)
        fewer = int(np.sort(counts)[1])  # only the rarest class is rarer than the second
        scores = score(theatre, good, split="test", rare=fewer, rare_from=where)
        assert scores.sheets["classes_ivt"].filter("rare")["class"].to_list() == np.flatnonzero(counts < fewer).tolist()


def test_the_threshold_may_come_from_other_videos(theatre: MemoryDataset, poor: pl.DataFrame, tmp_path: Path) -> None:
    chosen = score(theatre, poor, split="test")
    assert any("chosen on the scored data" in note for note in chosen.notes)
    validated = score(theatre, poor, split="test", threshold_from="val")
    assert not any("chosen on the scored data" in note for note in validated.notes)
    assert validated.number(metric="F1").estimate <= chosen.number(metric="F1").estimate
    on_val = score(theatre, poor, split="val")
    on_val.save(tmp_path / "val")
    stored = score(theatre, poor, split="test", threshold_from=tmp_path / "val")
    assert stored.thresholds == validated.thresholds == on_val.thresholds
    assert stored.number(metric="F1") == validated.number(metric="F1")


def test_scores_off_the_grid_are_reported_where_the_threshold_comes_from_another_split(
    theatre: MemoryDataset, poor: pl.DataFrame
) -> None:
    percent = poor.with_columns(pl.col("score") * 100)
    scores = score(theatre, percent, split="test", threshold_from="val", convention="ivtd")
    assert sum("lie outside 0 to 1" in note for note in scores.notes) == 1


def test_instruments_alone_can_be_scored(tiny: MemoryDataset, half: pl.DataFrame) -> None:
    table = half.select("video", "frame", "score", "x", "y", "w", "h", instrument=pl.Series([0, 1, 1]))
    with pytest.raises(DataError, match=r"verb: found -1 .* because component 'v' is scored"):
        score(tiny, table)
    scores = score(tiny, table, components=["i"])
    assert scores.number("i").estimate == pytest.approx((HALF + 1) / 2)
    assert "association" not in scores.sheets


def test_the_constant_predictor_is_a_floor(theatre: MemoryDataset, poor: pl.DataFrame) -> None:
    floor = score(theatre, None, constant=True)
    assert floor.name == "constant"
    assert floor.number().estimate < score(theatre, poor).number().estimate


def test_a_saved_score_is_seven_files_and_its_lock(theatre: MemoryDataset, good: pl.DataFrame, tmp_path: Path) -> None:
    scores = score(theatre, good, name="mine")
    path = scores.save(tmp_path / "run")
    assert json.loads(path.read_text())["numbers"][0]["estimate"] == scores.numbers[0].interval.estimate
    files = ["counts.parquet", "details.json", "objects.parquet", "ranked.parquet", "replicates.parquet", "run.json",
             "run.lock", "scores.json"]  # fmt: skip
    assert [p.name for p in sorted((tmp_path / "run").iterdir())] == files


@pytest.mark.figures
def test_the_report_holds_every_table_and_figure(theatre: MemoryDataset, good: pl.DataFrame, tmp_path: Path) -> None:
    scores = score(theatre, good)
    page = write_page_of([scores], scores.save(tmp_path).parent)
    text = page.read_text()
    assert "chosen on the scored data" in text
    assert "disagree by more than 0.01" in text
    assert {p.stem for p in (tmp_path / "tables").glob("*.csv")} == set(scores.tables)
    assert {p.stem for p in (tmp_path / "figures").glob("*.svg")} == set(scores.figures)
    assert {"curves_ivt", "confusion_i", "ap_by_frequency", "conventions"} <= set(scores.figures)
    for table in scores.tables:
        if not table.startswith(("confusion", "headline", "thresholds")):
            assert f"tables/{table}.csv" in text
    assert scores._repr_html_().startswith("<div>")
    assert scores.plot().title.startswith("Precision over recall of triplets")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"split": "holdout"}, "split holdout: found no such video, expected one of test, train"),
        ({"folds": {"a": ["v3"]}}, "fold a: found no video v3 in the dataset"),
        ({"folds": {"a": []}}, "fold a: found no test video"),
        ({"folds": "nowhere"}, "folds nowhere: found neither name nor file"),
        ({"folds": {"a": ["v1"]}, "split": "test"}, "folds and split: expected one"),
        ({"folds": {"a": ["v1"]}, "leave_source_out": True}, "folds and leave_source_out"),
        ({"leave_source_out": True, "split": "test"}, "found only source B, expected at least two"),
        ({"threshold_from": "holdout"}, "found neither a scored folder nor a split"),
        ({"threshold_from": "test"}, "found video v2 among the scored ones"),
        ({"rare_from": "train", "folds": {"a": ["v1"]}}, "rare_from train: a: found no training video"),
        ({"convention": "voc"}, "convention 'voc': expected one of coco, ivtd, ivtd-legacy"),
        ({"components": ["x"]}, "component 'x': expected one of"),
        ({"task": "recognition", "convention": "ivtd"}, "convention ivtd: found recognition scores"),
    ],
)
def test_options_that_cannot_be_used_are_refused_in_one_sentence(
    tiny: MemoryDataset, half: pl.DataFrame, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(SurgevalError) as error:
        score(tiny, half, **options)
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{", "cut off"),
        ("[]", "expected a JSON object"),
        ('{"a": 3}', "fold a: test: found 3, expected a list of videos"),
        ('{"a": ["v1", "v1"]}', "fold a: test: found a video twice"),
        ('{"a": {"train": ["v2"]}}', "fold a: test: found null"),
        ("{}", "found no fold"),
    ],
)
def test_a_broken_file_of_folds_is_named(
    tiny: MemoryDataset, half: pl.DataFrame, tmp_path: Path, content: str, sentence: str
) -> None:
    path = tmp_path / "folds.json"
    path.write_text(content)
    with pytest.raises(SurgevalError, match=r"folds\.json") as error:
        score(tiny, half, folds=path)
    assert sentence in str(error.value)


def test_a_file_of_folds_gives_the_same_as_a_mapping(tiny: MemoryDataset, half: pl.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "folds.json"
    path.write_text('{"a": ["v1"], "b": {"train": ["v1"], "test": ["v2"]}}')
    mapping = score(tiny, half, folds={"a": ["v1"], "b": ["v2"]})
    assert score(tiny, half, folds=path).to_frame().equals(mapping.to_frame())


def test_an_unknown_number_or_figure_is_refused(tiny: MemoryDataset, half: pl.DataFrame) -> None:
    scores = score(tiny, half)
    with pytest.raises(BadInput, match="rows of to_frame"):
        scores.number("ivt", "mAP75")
    with pytest.raises(BadInput, match="expected one of curves_i"):
        scores.plot("podium")
