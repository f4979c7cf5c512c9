"""Simulated detectors: deterministic, ordered by quality, and usable as predictions."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from surgeval.datasets import MemoryDataset
from surgeval.errors import BadInput
from surgeval.phantom import simulate_detector
from surgeval.protocols.triplets import score_triplets
from surgeval.vocab import LabelSpace


def test_the_same_seed_gives_the_same_table(theatre: MemoryDataset) -> None:
    assert simulate_detector(theatre, "fair", 5).equals(simulate_detector(theatre, "fair", 5))
    assert not simulate_detector(theatre, "fair", 5).equals(simulate_detector(theatre, "fair", 6))


def test_what_happens_in_a_video_does_not_depend_on_the_others(theatre: MemoryDataset) -> None:
    alone = MemoryDataset(theatre.space, theatre.frames("v4"))
    whole = simulate_detector(theatre, "poor").filter(pl.col("video") == "v4")
    assert simulate_detector(alone, "poor").equals(whole)


def test_a_better_detector_scores_higher(theatre: MemoryDataset) -> None:
    qualities: Any = ("good", "fair", "poor")
    found = [score_triplets(simulate_detector(theatre, q), theatre) for q in qualities]
    for component in ("i", "v", "t", "ivt"):
        ap = [one.number(component).estimate for one in found]
        assert ap[0] > ap[1] > ap[2]


def test_boxes_stay_in_the_frame_and_scores_in_the_unit_interval(theatre: MemoryDataset) -> None:
    table = simulate_detector(theatre, "poor")
    assert table["score"].is_between(0, 1).all()
    assert (table["x"] >= 0).all()
    assert (table["x"] + table["w"] <= 201.01).all()  # a box of the border keeps a width of 1
    assert (table["w"] >= 1).all()


def test_scores_rank_right_detections_above_wrong_ones(theatre: MemoryDataset) -> None:
    score = score_triplets(simulate_detector(theatre, "fair"), theatre)
    curve = score.curves["i"][0]
    assert curve.y[5] > curve.y[-20]


def test_an_unknown_quality_and_a_space_without_triplets_are_refused(theatre: MemoryDataset) -> None:
    excellent: Any = "excellent"
    with pytest.raises(BadInput, match="expected one of good, fair, poor"):
        simulate_detector(theatre, excellent)
    with pytest.raises(BadInput, match="found no triplets"):
        simulate_detector(MemoryDataset(LabelSpace("tools", ("hook",)), []))
