"""ivtmetrics' `Detection` and `Disentangle`: cases worked by hand, and the package itself where it is installed."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from surgeval.compat import ivtd, ivtmetrics
from surgeval.errors import BadInput

LEFT, RIGHT, FAR = [0.1, 0.1, 0.2, 0.2], [0.5, 0.5, 0.2, 0.2], [0.8, 0.1, 0.1, 0.1]
SHARES = ("lm", "plm", "ids", "idm", "mil", "fp", "fn")
Frame = list[list[float]]


def _metric(mode: str, *frames: tuple[Frame, Frame]) -> ivtmetrics.Detection:
    metric = ivtmetrics.Detection(mode=mode)
    metric.update([truths for truths, _ in frames], [said for _, said in frames])
    return metric


def _row(triplet: int, box: list[float], score: float = 1.0, tool: int = 0) -> list[float]:
    return [triplet, tool, score, *box]


def _shares(metric: ivtmetrics.Detection) -> dict[str, float]:
    found = metric.compute_AP()
    return {key: found[key] for key in SHARES if found[key]}


def test_a_box_that_was_compared_before_has_grown_in_the_package() -> None:
    """Of two detections the second is exact; the package has added the truth's corner to its size twice by then."""
    frame = ([_row(17, LEFT)], [_row(17, RIGHT, 0.9), _row(17, LEFT, 0.8)])
    fixed, legacy = (_metric(mode, frame).compute_AP() for mode in ("fixed", "legacy"))
    assert (fixed["AP"][17], fixed["Rec"][17], fixed["Pre"][17]) == pytest.approx((0.5, 1.0, 0.5))
    assert (legacy["AP"][17], legacy["Rec"][17], legacy["Pre"][17]) == (0.0, 0.0, 0.0)
    assert np.isnan(fixed["AP"][16]) and fixed["mAP"] == 0.5


def test_detections_are_ranked_by_score_over_all_frames() -> None:
    """A false one of score 0.1 in the first frame, a right one of 0.9 in the second: 6 of 11 recalls are reached."""
    frames = (([_row(17, LEFT)], [_row(17, FAR, 0.1)]), ([_row(17, LEFT)], [_row(17, LEFT, 0.9)]))
    assert _metric("fixed", *frames).compute_AP()["AP"][17] == pytest.approx(6 / 11)
    assert _metric("legacy", *frames).compute_AP()["AP"][17] == pytest.approx(6 * 0.5 / 11)


def test_the_first_truth_left_can_be_switched_too() -> None:
    frame = ([_row(1, LEFT), _row(2, RIGHT)], [_row(2, LEFT, 0.9)])
    assert _shares(_metric("fixed", frame)) == {"ids": 0.5, "fn": 0.5}
    assert _shares(_metric("legacy", frame)) == pytest.approx({"fp": 1 / 3, "fn": 2 / 3})


def test_a_detection_of_a_class_that_is_not_shown_is_false() -> None:
    frame = ([_row(1, LEFT)], [_row(5, FAR, 0.9)])
    assert _shares(_metric("fixed", frame)) == {"fp": 0.5, "fn": 0.5}
    assert _shares(_metric("legacy", frame)) == {"fn": 1.0}


def test_each_name_of_the_association_is_given() -> None:
    near = [0.15, 0.1, 0.2, 0.2]
    shifted = [0.2, 0.1, 0.2, 0.2]  # overlaps the half of it: one third of the union
    for box, name in ((LEFT, "lm"), (near, "lm"), (shifted, "plm"), (FAR, "mil")):
        assert _shares(_metric("fixed", ([_row(3, LEFT)], [_row(3, box, 0.9)]))) == {name: 1.0}
    assert _shares(_metric("fixed", ([_row(3, LEFT)], [_row(4, LEFT, 0.9)]))) == {"idm": 0.5, "fn": 0.5}
    assert _shares(_metric("fixed", ([], [_row(4, LEFT, 0.9)]))) == {"fp": 1.0}


def test_all_videos_together_have_an_association_only_when_repaired() -> None:
    rows = ([_row(1, LEFT)], [_row(1, LEFT, 0.9)])
    assert _metric("fixed", rows).compute_global_AP("i")["lm"] == 1.0
    with pytest.raises(KeyError, match="fp"):
        _metric("legacy", rows).compute_global_AP("i")


def test_a_reset_forgets_and_an_unended_video_counts_once() -> None:
    metric = _metric("fixed", ([_row(1, LEFT)], [_row(1, LEFT, 0.9)]))
    assert metric.compute_video_AP()["mAP"] == metric.compute_global_AP()["mAP"] == 1.0
    metric.video_end()
    metric.video_end()
    assert metric.compute_video_AP()["mAP"] == metric.compute_AP()["mAP"] == 1.0
    metric.reset_global()
    assert np.isnan(metric.compute_global_AP()["mAP"])


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([[1, 0, 0.9, 0, 0, 1]], "expected rows"),
        ([[100, 0, 0.9, 0, 0, 1, 1]], "ivt ids"),
        ([[1, 6, 0.9, 0, 0, 1, 1]], "i ids"),
        ([["a", 0, 0.9, 0, 0, 1, 1]], "must hold numbers"),
    ],
)
def test_rows_that_are_none_are_refused(rows: Any, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        ivtmetrics.Detection().update([rows], [[]])


def test_a_box_may_be_a_dictionary() -> None:
    metric = ivtmetrics.Detection()
    box = [{"triplet": 17, "instrument": [0, 0.9, *LEFT]}]
    metric.update([box], [box], format="dict")
    assert metric.compute_AP("i")["AP"][0] == 1.0
    with pytest.raises(BadInput, match="'list' or 'dict'"):
        metric.update([box], [box], format="rows")


def test_components_are_the_highest_of_their_triplets() -> None:
    """CholecT50: 17 is grasper, retract, gallbladder; 60 hook, dissect, gallbladder."""
    scores = np.zeros((1, 100))
    scores[0, [17, 60]] = 0.9, 0.4
    apart = ivtmetrics.Disentangle()
    assert apart.extract(scores, "t")[0, 0] == 0.9 and apart.extract(scores, "i")[0].tolist()[:3] == [0.9, 0, 0.4]
    assert apart.bank[60].tolist() == [60, 2, 2, 0, 22, 30]
    assert apart.decompose(scores[0], "v") == apart.extract(scores, "v")[0].tolist()
    assert apart.extract(scores, "ivt") is scores
    with pytest.raises(BadInput, match="vt"):
        apart.extract(scores, "vt")


def _random_frame(dice: np.random.Generator, most: int, sure: bool) -> Frame:
    """Boxes on a coarse grid, so that they overlap, tie and meet each other often."""
    rows = [
        [int(dice.integers(8)), int(dice.integers(3)), 1.0 if sure else dice.integers(10) / 10,
         *(dice.integers(0, 6, 2) / 10), *(dice.integers(1, 5, 2) / 10)]
        for _ in range(int(dice.integers(0, most)))
    ]  # fmt: skip
    return rows or ([[]] if dice.random() < 0.5 else [])


def _random_video(dice: np.random.Generator) -> tuple[list[Frame], list[Frame]]:
    n = int(dice.integers(1, 6))
    return [_random_frame(dice, 5, True) for _ in range(n)], [_random_frame(dice, 6, False) for _ in range(n)]


def test_the_repaired_class_agrees_with_that_of_ivtd_at_eleven_points() -> None:
    dice = np.random.default_rng(0)
    for _ in range(30):
        ours, other = ivtmetrics.Detection(), ivtd.Detection(num_class=100, num_tool=6, enable_map5095=False)
        for _ in range(2):
            truths, said = _random_video(dice)
            for metric in (ours, other):
                metric.update(truths, said)
                metric.video_end()
        a, b = ours.compute_global_AP("ivt"), other.compute_global_AP("ivt", style="11point")
        for key in ("AP", *SHARES):
            np.testing.assert_allclose(a[key], b[key], atol=1e-12, err_msg=key)


def test_legacy_mode_is_the_package_to_the_last_digit() -> None:
    peer = pytest.importorskip("ivtmetrics")
    dice = np.random.default_rng(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(60):
            theirs, ours = peer.Detection(100, 6, 15, 0.5), ivtmetrics.Detection(mode="legacy")
            for _ in range(2):
                truths, said = _random_video(dice)
                for metric in (theirs, ours):
                    metric.update([[list(row) for row in frame] for frame in truths], [*said])
                    metric.video_end()
            for component in ("ivt", "i"):
                for call in ("compute_AP", "compute_video_AP"):
                    a, b = (getattr(metric, call)(component) for metric in (theirs, ours))
                    assert a.keys() == b.keys()
                    for key in a:
                        np.testing.assert_allclose(b[key], np.asarray(a[key], float), atol=1e-12, err_msg=key)
    scores = dice.random((5, 100))
    for component in ("ivt", "i", "v", "t", "iv", "it"):
        np.testing.assert_array_equal(
            ivtmetrics.Disentangle().extract(scores, component), peer.Disentangle().extract(scores, component)
        )
