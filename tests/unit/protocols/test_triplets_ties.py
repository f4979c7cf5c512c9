"""Scores of predictions with equal scores: the same from any order of videos, frames and rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surgeval import compare, load_run, score_detection, score_recognition
from surgeval.datasets import MemoryDataset
from surgeval.errors import BadInput
from surgeval.protocols.triplets import TripletScores, score_triplets
from surgeval.protocols.triplets.page import write_page_of
from surgeval.vocab import load_labels

SPACE = load_labels("prostatd")
VIDEOS = [f"v{k}" for k in range(7)]
Table = dict[str, npt.NDArray[Any]]


def _tables(scores: tuple[float, ...] = (1.0,)) -> tuple[Table, Table]:
    """2 000 predictions of 600 boxes; the detector is good in the first videos and poor in the last."""
    random = np.random.default_rng(0)
    video, frame = random.integers(0, 7, 600), random.integers(0, 40, 600)
    label = random.integers(0, 5, 600)
    box = np.column_stack([random.integers(0, 200, (600, 2)), random.integers(30, 90, (600, 2))]).astype(float)
    pick = random.integers(0, 600, 2000)
    right = random.random(2000) < 0.9 - 0.12 * video[pick]
    near = box[pick] + np.where(right[:, None], 2.0, 25.0) * random.random((2000, 4))
    said = np.where(right, label[pick], random.integers(0, 5, 2000))
    names = np.array(VIDEOS)
    truth = {"video": names[video], "frame": frame, "class": label, "box": box}
    found = {"video": names[video][pick], "frame": frame[pick], "class": said, "box": near}
    return truth, {**found, "score": random.choice(scores, 2000)}


def _in_order(table: Table, order: npt.NDArray[Any]) -> Table:
    return {name: column[order] for name, column in table.items()}


def _estimates(scores: TripletScores) -> dict[str, tuple[float, ...]]:
    parts = [(one.key.text, one.interval) for one in scores.numbers]
    return {name: (one.estimate, one.low, one.high) for name, one in parts}


def _reversed(options: dict[str, Any], scores: tuple[float, ...] = (1.0,)) -> list[TripletScores]:
    """The same tables from the first video to the last, and from the last to the first."""
    tables = _tables(scores)
    order = [np.argsort(table["video"], kind="stable") for table in tables]
    both = [[_in_order(t, o) for t, o in zip(tables, order, strict=True)],
            [_in_order(t, o[::-1]) for t, o in zip(tables, order, strict=True)]]  # fmt: skip
    return [
        score_detection(found, truth, space=SPACE, videos=VIDEOS[::step], **options)
        for (truth, found), step in zip(both, (1, -1), strict=True)
    ]


@pytest.mark.parametrize("convention", [None, "coco", "ivtd", "ivtd-legacy"])
def test_predictions_of_one_score_score_the_same_whichever_video_comes_first(convention: Any) -> None:
    first, last = _reversed({"convention": convention})
    assert first.settings["ties"] == "free"
    np.testing.assert_equal(_estimates(first), _estimates(last))
    assert any("all predictions have the same score" in note for note in first.notes) == (convention is not None)
    for name in ("conventions", "components", "association", "cost_aware", "thresholds"):
        assert first.sheets[name].equals(last.sheets[name]), name


def test_a_named_convention_keeps_its_order_and_gives_the_order_free_number_beside_it(tmp_path: Path) -> None:
    named = _reversed({"convention": "coco"}, (0.9, 0.8))
    assert named[0].number("ivt").estimate > named[1].number("ivt").estimate + 0.05
    free = _reversed({}, (0.9, 0.8))
    assert free[0].number("ivt").estimate == free[1].number("ivt").estimate
    for scores in named:
        row = scores.sheets["ties"].row(by_predicate=(pl.col("component") == "ivt") & (pl.col("metric") == "mAP50"),
                                        named=True)  # fmt: skip
        assert row["reference"] == pytest.approx(scores.number("ivt").estimate)
        assert row["order-free"] == pytest.approx(free[0].number("ivt").estimate)
        values = f"{row['reference']:.3f} in the order of convention coco and {row['order-free']:.3f} order-free"
        said = f"mAP50 of IVT is {values}"
        assert any(said in note for note in scores.notes)
    assert "ties" not in free[0].sheets
    page = write_page_of([named[0]], named[0].save(tmp_path / "run").parent).read_text()
    assert f"{free[0].number('ivt').estimate:.3f} order-free" in page
    assert "Numbers that the order of equal scores changes" in page
    again = load_run(tmp_path / "run")
    assert isinstance(again, TripletScores) and again.sheets["ties"].equals(named[0].sheets["ties"])
    with pytest.raises(BadInput, match=r"ties \(reference and free\)"):
        compare(named[0], free[0])
    np.testing.assert_equal(_estimates(_reversed({"convention": "coco", "ties": "free"}, (0.9, 0.8))[0]),
                            _estimates(free[0]))  # fmt: skip


@given(st.integers(0, 2**32 - 1))
def test_any_permutation_of_rows_gives_the_same_numbers_and_intervals(seed: int) -> None:
    random = np.random.default_rng(seed)
    tables = [_in_order(table, random.permutation(len(table["video"]))[:150]) for table in _tables((0.5, 0.9))]
    moved = [_in_order(table, random.permutation(150)) for table in tables]
    one, other = (
        score_detection(found, truth, space=SPACE, components=("i", "ivt")) for truth, found in (tables, moved)
    )  # videos count in the order in which they appear
    np.testing.assert_equal(_estimates(one), _estimates(other))


@given(st.integers(0, 2**32 - 1))
def test_recognition_does_not_depend_on_the_order_of_frames_or_videos(seed: int) -> None:
    random = np.random.default_rng(seed)
    labels, scores = random.random((60, 4)) < 0.4, random.choice([0.1, 0.5, 0.9], (60, 4))
    videos = random.choice(VIDEOS, 60)
    order = random.permutation(60)
    one, other = (
        score_recognition(scores[rows], labels[rows], videos[rows].tolist()) for rows in (np.arange(60), order)
    )
    np.testing.assert_equal(_estimates(one), _estimates(other))


def test_ties_of_class_scores_cannot_be_asked_for(theatre: MemoryDataset) -> None:
    with pytest.raises(BadInput, match="ties reference: found recognition scores"):
        score_triplets(None, theatre, constant=True, task="recognition", ties="reference")


def test_scores_outside_0_to_1_are_told_where_a_convention_looks_for_the_threshold_on_a_grid() -> None:
    truth, found = _tables((80.0, 90.0, 20.0))
    free, ivtd = (score_detection(found, truth, space=SPACE, convention=convention) for convention in (None, "ivtd"))
    told = "2000 of 2000 scores lie outside 0 to 1"
    assert [any(told in note for note in scores.notes) for scores in (free, ivtd)] == [False, True]
    assert free.thresholds["ivt"] in (80, 90, 20)
    truth, found = _tables((0.0008, 0.0009, 0.0002))
    small = score_detection(found, truth, space=SPACE, convention="ivtd")
    assert any("all scores lie below 0.001" in note for note in small.notes)
