"""The agreement study: fair draws, kappas of simulated annotators with known disagreement, and where they differ."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surgeval.errors import BadInput
from surgeval.studio.agreement import (
    COMPONENTS,
    UNANSWERED,
    LabelledInstance,
    measure_agreement,
)
from surgeval.studio.segments import Segment, draw_segments

VERBS = ("cut", "dissect", "grasp", "retract")
ALL = [Segment("A", 0, 10_000)]


def scene(count: int, seed: int = 0) -> list[LabelledInstance]:
    verbs = np.random.default_rng(seed).choice(VERBS, count)
    return [LabelledInstance(str(k), "A", k, ("hook", str(verb), None)) for k, verb in enumerate(verbs)]


@given(
    st.dictionaries(st.sampled_from("ABCD"), st.integers(0, 300), min_size=1),
    st.integers(1, 6),
    st.integers(1, 60),
    st.integers(0, 5),
)
def test_segments_lie_in_their_videos_and_never_overlap(
    frames: dict[str, int], count: int, length: int, seed: int
) -> None:
    if sum(size // length for size in frames.values()) < count:
        with pytest.raises(BadInput, match="expected room"):
            draw_segments(frames, count=count, length=length, seed=seed)
        return
    drawn = draw_segments(frames, count=count, length=length, seed=seed)
    assert drawn == draw_segments(frames, count=count, length=length, seed=seed)
    taken = [(one.video, frame) for one in drawn for frame in range(one.first, one.last + 1)]
    assert len(taken) == len(set(taken)) == count * length
    assert all(0 <= frame < frames[video] for video, frame in taken)


def test_a_video_that_is_just_long_enough_is_used_up() -> None:
    drawn = draw_segments({"A": 1000}, count=5, length=200)
    assert sorted(one.first for one in drawn) == [0, 200, 400, 600, 800]


def test_every_place_of_a_single_segment_is_as_likely() -> None:
    first = [draw_segments({"A": 12, "B": 11}, count=1, length=10, seed=seed)[0] for seed in range(2000)]
    counts = [sum(one == Segment(video, k, k + 9) for one in first) for video, k in
              (("A", 0), ("A", 1), ("A", 2), ("B", 0), ("B", 1))]  # fmt: skip
    assert sum(counts) == 2000
    assert max(counts) - min(counts) < 150  # standard deviation 18


def test_kappa_of_an_annotator_who_errs_at_a_known_rate() -> None:
    truth = scene(20_000)
    rng = np.random.default_rng(1)
    said = {}
    for one in truth:
        others = [verb for verb in VERBS if verb != one.labels[1]]
        verb = str(rng.choice(others)) if rng.random() < 0.3 else one.labels[1]
        said[one.instance] = ("hook", verb, None)
    study = measure_agreement(truth, {"Ada": said}, {"Ada": [Segment("A", 0, 20_000)]})
    # four verbs alike: chance agreement is 1/4, so kappa is (0.7 - 0.25) / 0.75
    assert study.kappas["verb"]["Ada"].value == pytest.approx(0.6, abs=0.02)
    assert study.kappas["triplet"]["Ada"].value == pytest.approx(study.kappas["verb"]["Ada"].value)
    assert np.isnan(study.kappas["instrument"]["Ada"].value)  # one category only: nothing tells agreement from chance
    assert study.table()["Ada"].to_list()[0] is None


def test_what_was_left_out_counts_against_agreement_and_is_listed() -> None:
    truth = scene(400)
    half = {one.instance: one.labels for one in truth if int(one.instance) % 2}
    study = measure_agreement(truth, {"Ada": half}, {"Ada": ALL})
    assert study.kappas["verb"]["Ada"].value < 0.5
    missing = study.disagreements.filter(pl.col("annotated") == UNANSWERED)
    assert set(missing["frame"]) == set(range(0, 400, 2))
    assert set(missing["component"]) == {"instrument", "verb", "target"}


def test_every_annotator_is_judged_on_the_frames_that_were_shown() -> None:
    truth = scene(400)
    wrong = {one.instance: ("hook", "cut", None) for one in truth}
    right = {one.instance: one.labels for one in truth}
    shown = {"Ada": [Segment("A", 0, 199)], "Ben": [Segment("A", 200, 399)]}
    study = measure_agreement(truth, {"Ada": right, "Ben": wrong}, shown)
    assert study.instances == {"Ada": 200, "Ben": 200}
    assert study.kappas["verb"]["Ada"].value == 1
    assert study.kappas["verb"]["Ben"].value == pytest.approx(0, abs=1e-9)
    assert set(study.disagreements["annotator"]) == {"Ben"}
    assert study.disagreements["frame"].is_sorted()
    table = study.table()
    assert table.columns == ["component", "Ada", "Ben", "mean"]
    assert table["component"].to_list() == list(COMPONENTS)
    assert table.filter(pl.col("component") == "verb")["mean"][0] == pytest.approx(0.5)


def test_no_target_is_an_answer_and_agrees_with_no_target() -> None:
    truth = [
        LabelledInstance("1", "A", 0, ("hook", "cut", None)),
        LabelledInstance("2", "A", 1, ("hook", "cut", "liver")),
    ]
    study = measure_agreement(truth, {"Ada": {one.instance: one.labels for one in truth}}, {"Ada": ALL})
    assert study.kappas["target"]["Ada"].value == 1


@pytest.mark.parametrize(
    ("shown", "said"), [({}, "expected also the segments"), ({"Ada": [Segment("B", 0, 9)]}, "no labelled instance")]
)
def test_answers_without_frames_are_refused(shown: dict[str, list[Segment]], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        measure_agreement(scene(5), {"Ada": {}}, shown)
