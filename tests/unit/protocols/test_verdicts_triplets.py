"""Verdicts on planted detectors: the oracle, the lucky, the one that says the same in every frame."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.protocols.conftest import SPACE, moment
from tests.unit.protocols.planted_verdicts import near, rank_of

from surgeval.datasets import MemoryDataset
from surgeval.protocols.triplets import verdict as triplets
from surgeval.protocols.triplets.method import score_triplets
from surgeval.protocols.triplets.page import triplet_sections
from surgeval.protocols.triplets.result import load_triplets
from surgeval.protocols.triplets.scoring.constant import SEVERAL_BOXES
from surgeval.protocols.verdict import Reason, Verdict, verdict_of

# triplets

TOLD = triplets.TripletFacts(
    videos=9, subject="triplets", metric="mAP50", number=near(0.5), baseline=0.01, without={"v1": 0.5, "v2": 0.48},
    classes=[triplets.ClassScore("hook,cut,gut", 0.6, 0.0, 30), triplets.ClassScore("hook,cut,liver", 0.4, 0.0, 20)],
    boxes=triplets.BoxCounts(right=60, other_class=10, missed=30, unmatched=10, threshold=0.25),
)  # fmt: skip


def told(facts: triplets.TripletFacts) -> Verdict:
    return verdict_of(triplets.claim_of(facts), triplets.reasons_of(facts), facts.videos)


def told_by(facts: triplets.TripletFacts, rule: str) -> Reason:
    return next(reason for reason in told(facts).reasons if reason.rule.name == rule)


def test_one_video_that_carries_a_number_limits_the_verdict() -> None:
    assert told(TOLD).grade == "passes"
    wonder = told(replace(TOLD, without={"v1": 0.5, "v2": 0.05}))
    assert wonder.grade == "inconclusive"
    assert "one video decides it: without v2 mAP50 is 0.050" in wonder.sentence


def test_classes_that_are_never_found_are_named() -> None:
    rows = [triplets.ClassScore(f"class {n}", 0.0, 0.0, 30 - n) for n in range(3)]
    found = told(replace(TOLD, classes=[*rows, TOLD.classes[0]]))
    assert found.grade == "inconclusive"
    assert "class 0; class 1; class 2" in " ".join(one.text for one in found.reasons)


def test_half_of_the_classes_may_be_low_and_more_may_not() -> None:
    for low, holds in ((2, True), (3, False)):
        scores = [triplets.ClassScore(f"class {n}", 0.0 if n < low else 0.5, 0.0, 20) for n in range(4)]
        assert told_by(replace(TOLD, classes=scores), "classes").holds is holds


def test_a_class_that_is_always_there_and_always_found_counts_as_found() -> None:
    always = triplets.ClassScore("hook,cut,gut", 1.0, 1.0, 30)
    found = told_by(replace(TOLD, classes=[always]), "classes")
    assert (found.holds, found.text) == (True, "The one class that occurs is found.")
    missed = told_by(replace(TOLD, classes=[always._replace(ap=0.9)]), "classes")
    assert missed.holds is False
    assert missed.text == (
        "The one class that occurs is not found better than by the median box of each class in every frame: "
        "hook,cut,gut."
    )


def test_only_what_has_no_precision_is_called_not_found() -> None:
    low, none, fine = (triplets.ClassScore(name, ap, 0.2, 20) for name, ap in (("low", 0.2), ("none", 0), ("fine", 1)))
    both = told_by(replace(TOLD, classes=[low, none, fine], metric="mAP"), "classes")
    assert both.text == (
        "2 of 3 classes that occur (67 %) are not found better than by the class frequencies: low; none. "
        "Not found at all: none."
    )
    assert told_by(replace(TOLD, classes=[none, fine]), "classes").text == (
        "1 of 2 classes that occur (50 %) is not found: none."
    )


def test_the_weakest_classes_say_how_many_have_enough_instances() -> None:
    scores = [triplets.ClassScore(f"class {n}", 0.1 * n, 0.0, count) for n, count in enumerate((9, 10, 9))]
    text = told_by(replace(TOLD, classes=scores), "weakest").text
    assert text == "Weakest class: class 1 (0.100, 10 instances). Of 3 classes 1 has 10 or more."
    text = told_by(replace(TOLD, classes=[scores[0], scores[2]]), "weakest").text
    assert text == "None of the 2 classes that occur has 10 or more instances."


def test_boxes_are_counted_where_precision_and_recall_are_read() -> None:
    assert told_by(TOLD, "boxes").text == (
        "From the score threshold of P, R and F1 (0.250) on: of the true boxes (100) 60 % are found and named rightly, "
        "10 % found and named as another class, 30 % missed; of the reported boxes (80) 13 % match no true box."
    )
    silent = triplets.BoxCounts(right=0, other_class=0, missed=7, unmatched=0)
    assert told_by(replace(TOLD, boxes=silent), "boxes").text == (
        "From the score threshold of P, R and F1 on: of the true boxes (7) 0 % are found and named rightly, 0 % found "
        "and named as another class, 100 % missed; no box is reported."
    )


def test_boxes_of_low_score_do_not_make_a_good_detector_read_as_a_failure(theatre: MemoryDataset, oracle: Any) -> None:
    """Nine of ten boxes are guesses that the detector itself hardly believes."""
    right = oracle(theatre)
    guesses = [right.with_columns(x=pl.lit(150.0), y=pl.lit(10.0 * n), w=pl.lit(5.0), h=pl.lit(5.0),
                                  score=pl.lit(0.01)) for n in range(9)]  # fmt: skip
    scores = score_triplets(pl.concat([right, *guesses], how="vertical_relaxed"), theatre)
    assert scores.number(metric="fp", scope="association").estimate > 0.8
    found = triplets.facts_of(scores).boxes
    assert found is not None
    assert (found.right, found.other_class, found.missed, found.unmatched) == (right.height, 0, 0, 0)
    assert "100 % are found and named rightly" in told_by(triplets.facts_of(scores), "boxes").text


def test_no_video_carries_a_lead_that_is_none() -> None:
    small = replace(TOLD, number=near(0.015), without={"v1": 0.015, "v2": 0.0})
    assert told_by(small, "one video").holds is None
    assert told_by(replace(small, number=near(0.03)), "one video").holds is False


def test_the_claim_names_the_baseline() -> None:
    boxes = "the median box of each class in every frame"
    assert told(TOLD).sentence.startswith(f"It finds triplets better than {boxes}: mAP50")
    assert told(replace(TOLD, metric="mAP")).sentence.startswith(
        "It finds triplets better than the class frequencies: mAP 0.500 against 0.010"
    )
    worse = told(replace(TOLD, number=near(0.1), baseline=0.3))
    assert worse.grade == "fails"
    assert worse.sentence.startswith(f"It finds triplets worse than {boxes}")


def _constant_like(theatre: MemoryDataset, seed: int) -> pl.DataFrame:
    """Random triplets at random places."""
    dice = np.random.default_rng(seed)
    rows = [(video.name, frame.name, int(dice.integers(3)), float(dice.random()), float(dice.integers(150)),
             float(dice.integers(50)), 40.0, 40.0)
            for video in theatre.videos() for frame in theatre.frames(video.name)]  # fmt: skip
    return pl.DataFrame(rows, schema=["video", "frame", "triplet", "score", "x", "y", "w", "h"], orient="row")


def test_planted_detectors_get_the_verdict_they_deserve(theatre: MemoryDataset, oracle: Any) -> None:
    grades = {
        "oracle": score_triplets(oracle(theatre), theatre).verdict(),
        "constant": score_triplets(None, theatre, constant=True).verdict(),
        "random": score_triplets(_constant_like(theatre, 3), theatre).verdict(),
    }
    found = {name: verdict.grade for name, verdict in grades.items() if verdict is not None}
    assert found["oracle"] == "passes"
    assert found["constant"] == "inconclusive"
    assert found["random"] == "fails"


def test_the_baseline_of_a_detector_is_what_the_constant_detector_scores(theatre: MemoryDataset, oracle: Any) -> None:
    floor = {one.key: one.baseline for one in score_triplets(oracle(theatre), theatre).headlines()}
    constant = score_triplets(None, theatre, constant=True)
    assert floor["global|ivt|mAP50"] == pytest.approx(constant.number("ivt").estimate, abs=0.02)


@pytest.mark.parametrize("convention", ["coco", "ivtd", "ivtd-legacy"])
def test_a_detector_that_is_the_baseline_finds_no_class_better_than_the_floor(
    theatre: MemoryDataset, tmp_path: Path, convention: Any
) -> None:
    constant = score_triplets(None, theatre, constant=True, convention=convention)
    table = constant.sheets["classes_ivt"].filter(pl.col("instances") > 0)
    assert table["constant AP50"].to_list() == pytest.approx(table["AP50"].to_list(), abs=1e-12)
    constant.save(tmp_path)
    for scores in (constant, load_triplets(tmp_path)):
        verdict = scores.verdict()
        assert verdict is not None
        (rule,) = (reason for reason in verdict.reasons if reason.rule.name == "classes")
        assert rule.holds is False
        assert rule.text.startswith(f"{table.height} of {table.height} classes that occur (100 %) are not found better")


def test_an_oracle_beats_the_baseline_of_each_class_and_the_page_shows_it(theatre: MemoryDataset, oracle: Any) -> None:
    looking = score_triplets(oracle(theatre), theatre)
    assert told_by(triplets.facts_of(looking), "classes").holds is True
    heads = {head for section in triplet_sections(looking, {}) for one in section.tables for head in one.frame.columns}
    assert "AP50 of the constant baseline" in heads


def test_a_run_without_the_baseline_of_each_class_is_not_held_to_it(theatre: MemoryDataset) -> None:
    constant = score_triplets(None, theatre, constant=True)
    sheets = {name: sheet.drop("constant AP50", strict=False) for name, sheet in constant.sheets.items()}
    earlier = told_by(triplets.facts_of(replace(constant, sheets=sheets)), "classes")
    assert earlier.holds is None
    assert "this run does not store it" in earlier.text


def test_rounding_is_no_lead_over_the_floor() -> None:
    level = triplets.ClassScore("hook,cut,gut", 0.1 + 0.2, 0.3, 30)
    assert told_by(replace(TOLD, classes=[level]), "classes").holds is False


def test_of_instruments_alone_the_constant_file_says_more_than_the_baseline_and_says_so() -> None:
    """Every frame shows an instrument twice, in two triplets side by side: a file has a box for each, the floor one."""
    both = MemoryDataset(SPACE, [moment(video, n, 0, 1) for video in ("v1", "v2") for n in range(4)])
    constant = score_triplets(None, both, constant=True)
    floor = {one.label: one.baseline for one in constant.headlines()}
    assert (constant.number("ivt").estimate, floor["IVT mAP50"]) == (1, 1)
    assert (constant.number("i").estimate, floor["I mAP50"]) == (1, 0)  # the median box lies between the two
    assert SEVERAL_BOXES in constant.notes


@given(st.floats(0, 0.9), st.floats(0, 0.5))
def test_triplet_grades_are_monotone_in_the_number(value: float, more: float) -> None:
    worse, better = (told(replace(TOLD, number=near(v), without={})) for v in (value, value + more))
    assert rank_of(better) <= rank_of(worse)
