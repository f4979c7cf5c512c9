"""Small parts of the ranking against counts by hand: deviations, Monte-Carlo errors, the gate's edges, equal models."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from surgeval.stats import rank_outcomes
from surgeval.stats.ranking.calibration import _deviations, _error
from surgeval.stats.ranking.gate import gate_of
from surgeval.stats.ranking.options import RankOptions
from surgeval.stats.ranking.tests import Bucket


def test_a_videos_deviation_is_weighed_by_its_size_where_videos_count_the_same() -> None:
    """Right answers 1 of 1 and 1 of 3: the mean over videos is 2/3, and the videos lie 1/3 above and below it."""
    right = np.array([[True], [True], [False], [False]])
    bucket = Bucket("b|id", right, np.array([1, 3]), np.array([0, 1]))
    macro = _deviations(bucket, RankOptions(point="macro"))
    assert macro.correct[:, 0] == pytest.approx([1 / 3, -1 / 3]) and macro.sizes.tolist() == [1, 1]
    flat = _deviations(bucket, RankOptions(point="flat"))  # 2 of 4 questions: 1/2 above, and 1 − 3/2 below
    assert flat.correct[:, 0] == pytest.approx([0.5, -0.5])


def test_the_error_of_a_share_is_that_of_a_sample() -> None:
    assert _error(np.array([0.0, 1.0, 1.0, 0.0])) == pytest.approx(np.sqrt(1 / 3) / 2)  # four squares of ¼ over three
    assert np.isnan(_error(np.array([1.0])))


@pytest.fixture(scope="module")
def clear() -> Any:
    right = {"net": [1] * 80, "base": [1, 0] * 40}
    return rank_outcomes(right, ["x|id"] * 80, [k // 10 for k in range(80)], resamples=99, baselines=["base"])


@pytest.mark.parametrize(("kept", "state"), [(20, "clearly better"), (19, "clearly better"), (18, "inconclusive")])
def test_a_lead_in_exactly_95_percent_of_the_resamples_is_enough(clear: Any, kept: int, state: str) -> None:
    places = np.array([[1, 2]] * kept + [[2, 1]] * (20 - kept))
    gate = gate_of(clear.models, ("base",), clear.evidence, clear, places)
    assert gate.state == {"net": state} and gate.ahead == {"net": {"base": kept / 20}}


def test_without_a_better_place_nobody_is_clearly_better(clear: Any) -> None:
    shared = replace(clear, final_rank=np.array([1, 1]))
    gate = gate_of(clear.models, ("base",), clear.evidence, shared)
    assert gate.dominates == gate.pre_evaluation == {"net": True}
    assert gate.final == {"net": False} and gate.state == {"net": "inconclusive"}


@pytest.mark.parametrize("test", ["bootstrap", "exchange"])
@pytest.mark.parametrize("sided", ["one", "two"])
@pytest.mark.parametrize("resamples", [20, 999])  # eight videos: random swaps, and all 128 of them
@pytest.mark.parametrize("point", ["flat", "macro"])
def test_the_p_of_identical_models_is_one(test: Any, sided: Any, resamples: int, point: Any) -> None:
    same = [k % 3 == 0 for k in range(77)]
    how: dict[str, Any] = {"resamples": resamples, "test": test, "sided": sided, "point": point}
    ranking = rank_outcomes({"a": same, "b": same}, ["x|id"] * 77, [k // 10 for k in range(77)], **how)
    assert ranking.p.tolist() == [[[1.0, 1.0], [1.0, 1.0]]]


def test_a_place_that_hangs_on_a_bucket_of_one_question_is_said() -> None:
    buckets = ["a|id"] * 20 + ["b|id"] * 20 + ["tiny|id"]
    videos = [k % 4 for k in range(41)]  # too few videos for a claim: the tie-break orders the models

    def answers(right: int, tiny: int) -> list[int]:
        return ([1] * right + [0] * (20 - right)) * 2 + [tiny]

    models = {"best": answers(19, 0), "good": answers(17, 0), "lucky": answers(4, 1)}
    found = rank_outcomes(models, buckets, videos, resamples=500)
    assert found.final_order == [["best"], ["lucky"], ["good"]]
    assert found.mean_accuracy.round(3).tolist() == [0.633, 0.567, 0.467]
    assert (
        "1 of the 3 buckets has fewer than 5 questions: tiny/id (1); mean of bucket accuracies without it: "
        "best 95.0 %, good 85.0 %, lucky 20.0 %"
    ) in found.notes
    assert (
        "places depend on tiny/id (1 question): lucky has place 2, without it 3; good has place 3, without it 2"
    ) in found.notes
