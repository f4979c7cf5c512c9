"""The triplets protocol on real labels and a real detector's boxes."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from surgeval.datasets import open_dataset
from surgeval.datasets.predictions import ground_truth
from surgeval.protocols.triplets import TripletScores, score_triplets
from surgeval.report import dataset_statistics

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def psi_ava(real_data: Path) -> TripletScores:
    folder = real_data / "psi-ava"
    return score_triplets(folder / "val_coco_preds_v3_35s.json", folder / "val_coco_anns_v3_35s.json", rare=300)


def test_a_real_detector_scores_as_pycocotools_says(psi_ava: TripletScores) -> None:
    assert psi_ava.settings["components"] == ["i"]
    assert psi_ava.number("i", "mAP50").estimate == pytest.approx(0.830451, abs=1e-6)
    assert psi_ava.number("i", "mAP50:95").estimate == pytest.approx(0.686366, abs=1e-6)
    assert psi_ava.number("i", "AR").estimate == pytest.approx(0.733, abs=5e-4)
    assert psi_ava.number("i", "mAP50").estimate in psi_ava.number("i", "mAP50")


def test_on_real_boxes_the_conventions_disagree_and_that_is_said(psi_ava: TripletScores) -> None:
    row = psi_ava.sheets["conventions"].row(by_predicate=pl.col("metric") == "mAP50:95", named=True)
    assert row["difference"] > 0.05
    assert any("disagree by more than 0.01" in note for note in psi_ava.notes)


def test_rare_instruments_are_the_two_with_fewer_boxes(psi_ava: TripletScores) -> None:
    rare = psi_ava.sheets["classes_i"].filter("rare")
    assert dict(rare.select("name", "instances").iter_rows()) == {"Laparoscopic Grasper": 75, "Clip Applier": 33}


def test_what_a_constant_predictor_scores_on_cholect50(real_data: Path) -> None:
    folder = real_data / "cholect50-val"
    frames = score_triplets(None, folder, constant=True, task="recognition")
    # The numbers of docs/triplets.md.
    found = {c: round(frames.number(c).estimate, 3) for c in ("i", "v", "t", "iv", "it", "ivt")}
    assert found == {"i": 0.190, "v": 0.128, "t": 0.087, "iv": 0.058, "it": 0.032, "ivt": 0.027}
    assert frames.number(scope="video (class-first)").estimate == pytest.approx(0.052, abs=5e-4)
    top = [frames.number("ivt", f"top-{k}", "recall among the highest scores").estimate for k in (5, 10, 20)]
    assert [round(value, 3) for value in top] == [0.383, 0.592, 0.845]
    boxes = score_triplets(None, folder, constant=True, task="detection")
    assert (boxes.sheets["classes_ivt"]["videos"] == 1).sum() == 20
    assert boxes.sheets["classes_ivt"]["rare"].all()
    assert {c: round(boxes.number(c).estimate, 3) for c in ("i", "v", "t", "ivt")} == {
        "i": 0.002, "v": 0.002, "t": 0.003, "ivt": 0.002,
    }  # fmt: skip


def test_frequencies_and_co_occurrence_of_the_real_boxes_are_those_of_the_docs(real_data: Path) -> None:
    tables = dataset_statistics(open_dataset(real_data / "cholect50-val")).tables
    counts = tables["triplets"].filter(pl.col("total") > 0).sort("total", descending=True)
    assert (len(counts), counts["total"].sum(), counts["total"][0]) == (44, 1192, 141)
    assert sum(counts["total"].head(10).to_list()) / 1192 == pytest.approx(0.59, abs=0.005)
    pairs = {row["instrument"]: row for row in tables["instrument_instrument"].iter_rows(named=True)}
    assert [pairs["grasper"][name] for name in ("grasper", "bipolar", "irrigator", "clipper", "scissors")] == [
        39, 64, 38, 24, 15,
    ]  # fmt: skip
    assert not any(value for row in pairs.values() for name, value in row.items()
                   if "grasper" not in (row["instrument"], name) and name != "instrument")  # fmt: skip
    verbs = {row["instrument"]: row for row in tables["instrument_verb"].iter_rows(named=True)}
    assert (verbs["clipper"]["clip"], verbs["scissors"]["cut"], verbs["bipolar"]["coagulate"]) == (106, 101, 198)


def test_real_cholect50_labels_written_as_predictions_are_perfect(real_data: Path) -> None:
    truth = ground_truth(open_dataset(real_data / "cholect50-val"))
    names = truth.scored[truth.boxes.frame]
    table = names.with_columns(
        pl.Series("triplet", truth.boxes.classes["ivt"]), pl.lit(0.9).alias("score"),
        *(pl.Series(side, truth.boxes.xywh[:, k]) for k, side in enumerate("xywh")),
    )  # fmt: skip
    scores = score_triplets(table, truth.dataset)
    assert [scores.number(component).estimate for component in ("i", "v", "t", "ivt")] == [1, 1, 1, 1]
    assert scores.number(metric="lm", scope="association").estimate == 1
