"""Laws of recognition AP, against a slow definition and under transformations that must not matter."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surgeval.metrics import (
    average_precision,
    component_max,
    evaluate_recognition,
    prepare_recognition,
    top_k,
    weighted_average_precision,
)
from surgeval.vocab import load_labels

SEED = st.integers(0, 2**32 - 1)
DIGITS = st.sampled_from([1, 2, 9])  # few digits: many ties
Frames = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], npt.NDArray[np.int64]]


def _frames(seed: int, digits: int, classes: int = 5) -> Frames:
    random = np.random.default_rng(seed)
    n = int(random.integers(1, 40))
    labels = (random.random((n, classes)) < random.uniform(0, 0.6)).astype(np.int64)
    return labels, random.random((n, classes)).round(digits), np.sort(random.integers(0, 3, n))


def _by_definition(labels: npt.NDArray[np.int64], scores: npt.NDArray[np.float64]) -> float:
    """Sum over distinct thresholds of (recall gained) × precision."""
    if not labels.sum():
        return float("nan")
    area, last = 0.0, 0.0
    for threshold in sorted(set(scores.tolist()), reverse=True):
        chosen = scores >= threshold
        recall = labels[chosen].sum() / labels.sum()
        area += (recall - last) * labels[chosen].mean()
        last = recall
    return area


@given(SEED, DIGITS)
def test_ap_equals_its_definition(seed: int, digits: int) -> None:
    labels, scores, _ = _frames(seed, digits)
    expected = [_by_definition(labels[:, c], scores[:, c]) for c in range(labels.shape[1])]
    np.testing.assert_allclose(average_precision(scores, labels), expected, rtol=0, atol=1e-12)


@given(SEED, DIGITS)
def test_the_order_of_frames_and_a_monotone_change_of_scores_do_not_matter(seed: int, digits: int) -> None:
    labels, scores, _ = _frames(seed, digits)
    order = np.random.default_rng(seed + 1).permutation(len(labels))
    ap = average_precision(scores, labels)
    np.testing.assert_array_equal(ap, average_precision(scores[order], labels[order]))
    np.testing.assert_array_equal(ap, average_precision(8 * scores - 3, labels))


@given(SEED, DIGITS)
def test_ap_lies_between_the_prevalence_of_a_constant_predictor_and_one_for_an_oracle(seed: int, digits: int) -> None:
    labels, scores, _ = _frames(seed, digits)
    present = labels.any(axis=0)
    np.testing.assert_allclose(average_precision(labels, labels)[present], 1)
    constant = average_precision(np.zeros(labels.shape), labels)
    np.testing.assert_allclose(constant[present], labels.mean(axis=0)[present])
    assert np.isnan(average_precision(scores, labels)[~present]).all()


@given(SEED, DIGITS, st.lists(st.integers(0, 3), min_size=3, max_size=3))
def test_a_weighted_resample_is_the_copied_videos(seed: int, digits: int, multiplicity: list[int]) -> None:
    labels, scores, video = _frames(seed, digits)
    ranked = prepare_recognition(scores, labels, video)
    weight = np.array(multiplicity[: ranked.n_videos])
    rows = np.repeat(np.arange(len(video)), weight[video])
    np.testing.assert_allclose(
        weighted_average_precision(ranked, weight), average_precision(scores[rows], labels[rows]), rtol=0, atol=1e-12
    )


@given(SEED)
def test_duplicated_videos_leave_video_wise_numbers_unchanged(seed: int) -> None:
    labels, scores, video = _frames(seed, 9)
    once = evaluate_recognition(scores, labels, video)["ivt"]
    twice = evaluate_recognition(np.tile(scores, (2, 1)), np.tile(labels, (2, 1)), np.concatenate([video, video + 3]))
    assert twice["ivt"].class_first_mAP == pytest.approx(once.class_first_mAP, abs=1e-12, nan_ok=True)
    assert twice["ivt"].video_first_mAP == pytest.approx(once.video_first_mAP, abs=1e-12, nan_ok=True)


@given(SEED, st.sampled_from(["i", "v", "t", "iv", "it", "vt"]))
def test_a_component_is_present_exactly_when_one_of_its_triplets_is(seed: int, component: str) -> None:
    space = load_labels("cholect50")
    labels, scores, _ = _frames(seed, 9, classes=100)
    ids = space.component_ids(component)
    small = component_max(labels, component, space)
    for c in range(small.shape[1]):
        np.testing.assert_array_equal(small[:, c], labels[:, ids == c].any(axis=1))
    assert component_max(scores, component, space).max() == scores.max()


@given(SEED, st.integers(1, 5))
def test_top_k_grows_with_k_and_ends_at_one(seed: int, k: int) -> None:
    labels, scores, _ = _frames(seed, 9)
    assert top_k(scores, labels, k) <= top_k(scores, labels, k + 1)
    assert top_k(scores, labels, 5) == (1.0 if labels.any() else 0.0)
