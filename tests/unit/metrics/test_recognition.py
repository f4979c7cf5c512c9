"""Recognition AP: by definition, whatever the library version."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from surgeval.errors import BadInput
from surgeval.metrics import (
    RecognitionAccumulator,
    average_precision,
    component_max,
    evaluate_recognition,
    prepare_recognition,
    top_classes,
    top_k,
    video_average_precision,
    weighted_average_precision,
)
from surgeval.vocab import load_labels


def test_average_precision_of_a_hand_ranking() -> None:
    # Ranked: hit, miss, hit, miss: (1/1 + 2/3) / 2.
    assert average_precision([[0.9], [0.8], [0.7], [0.1]], [[1], [0], [1], [0]])[0] == pytest.approx((1 + 2 / 3) / 2)


def test_tied_scores_are_one_threshold_so_the_order_of_frames_is_irrelevant() -> None:
    for labels in ([[1], [0], [0]], [[0], [1], [0]], [[0], [0], [1]]):
        assert average_precision([[0.5], [0.5], [0.5]], labels)[0] == pytest.approx(1 / 3)


def test_a_class_without_positives_is_nan_and_left_out_of_the_mean() -> None:
    labels, scores = np.zeros((4, 100), int), np.random.default_rng(1).random((4, 100))
    labels[0, 0] = labels[2, 5] = 1
    result = evaluate_recognition(scores, labels, [0] * 4)["ivt"]
    assert np.isnan(result.AP).sum() == 98
    assert result.mAP == pytest.approx((result.AP[0] + result.AP[5]) / 2)


def test_a_constant_predictor_scores_the_prevalence() -> None:
    labels = np.array([[1], [0], [0], [0], [1]])
    assert average_precision(np.full((5, 1), 0.3), labels)[0] == pytest.approx(2 / 5)


def test_single_precision_scores_rank_like_themselves() -> None:
    random = np.random.default_rng(2)
    labels, scores = random.random((50, 4)) < 0.3, random.random((50, 4)).astype(np.float32)
    np.testing.assert_array_equal(average_precision(scores, labels), average_precision(scores.astype(float), labels))


@pytest.mark.parametrize(("space", "sizes"), [("cholect50", (6, 10, 15, 26, 59)), ("prostatd", (7, 10, 10, 25, 51))])
def test_components_have_the_compact_classes_of_the_label_space(space: str, sizes: tuple[int, ...]) -> None:
    labels = load_labels(space)
    scores = np.random.default_rng(0).random((3, len(labels.triplets)))
    for component, size in zip(("i", "v", "t", "iv", "it"), sizes, strict=True):
        value = component_max(scores, component, labels)
        assert value.shape == (3, size)
        assert value.max() == scores.max()
    assert component_max(scores, "vt", labels).shape[1] == labels.num_classes("vt")


def test_an_instrument_without_triplets_is_a_class_without_positives() -> None:
    phantom = load_labels("phantom")
    labels = np.zeros((2, len(phantom.triplets)), int)
    labels[0, 3] = 1
    result = evaluate_recognition(labels + 0.0, labels, [0, 0], space=phantom, components=["i"])["i"]
    assert len(result.AP) == len(phantom.instruments)
    assert np.isnan(result.AP[-1])


def test_video_wise_means_in_both_orders() -> None:
    labels = np.array([[1, 0], [0, 0], [1, 1], [0, 0]])
    scores = np.array([[0.9, 0.0], [0.1, 0.0], [0.1, 0.1], [0.9, 0.9]])
    result = evaluate_recognition(scores, labels, [0, 0, 1, 1])["ivt"]
    np.testing.assert_allclose(result.per_video, [[1, np.nan], [0.5, 0.5]])
    assert result.class_first_mAP == pytest.approx((0.75 + 0.5) / 2)
    assert result.video_first_mAP == pytest.approx((1 + 0.5) / 2)


def test_interleaved_videos_give_the_same_as_sorted_ones() -> None:
    random = np.random.default_rng(4)
    labels, scores, video = random.random((60, 3)) < 0.4, random.random((60, 3)), random.integers(0, 4, 60)
    order = np.argsort(video, kind="stable")
    np.testing.assert_array_equal(
        video_average_precision(scores, labels, video),
        video_average_precision(scores[order], labels[order], video[order]),
    )


def test_a_weighted_resample_equals_copying_the_videos() -> None:
    random = np.random.default_rng(5)
    labels, scores = random.random((80, 6)) < 0.2, random.random((80, 6)).round(1)
    video = np.repeat(np.arange(4), 20)
    ranked = prepare_recognition(scores, labels, video)
    for multiplicity in ([1, 1, 1, 1], [0, 2, 1, 0], [3, 0, 0, 1]):
        rows = np.concatenate([np.flatnonzero(video == v) for v, m in enumerate(multiplicity) for _ in range(m)])
        np.testing.assert_allclose(
            weighted_average_precision(ranked, multiplicity), average_precision(scores[rows], labels[rows]), atol=1e-12
        )
    with pytest.raises(BadInput, match="one per video"):
        weighted_average_precision(ranked, [1, 1])


def test_top_k_and_top_classes() -> None:
    labels, scores = np.array([[1, 1, 0], [0, 0, 0]]), np.array([[0.9, 0.1, 0.5], [0.1, 0.2, 0.3]])
    assert top_k(scores, labels, 1) == 0.5
    assert top_k(scores, labels, 3) == 1.0
    assert top_k(scores, np.zeros((2, 3)), 3) == 0.0
    assert list(top_classes([np.nan, 0.1, 0.4], 3)) == [2, 1, 0]
    with pytest.raises(BadInput, match="at least 1"):
        top_k(scores, labels, 0)


def test_streaming_batches_give_the_same_as_one_call() -> None:
    random = np.random.default_rng(6)
    labels, scores = (random.random((30, 100)) < 0.1).astype(int), random.random((30, 100))
    video = np.repeat([0, 1, 2], 10)
    whole = evaluate_recognition(scores, labels, video, space=load_labels("cholect50"), components=["i", "ivt"])
    metric = RecognitionAccumulator(load_labels("cholect50"), ["i", "ivt"])
    for batch in np.array_split(np.arange(30), 9):
        for v in np.unique(video[batch]):
            rows = batch[video[batch] == v]
            metric.update(scores[rows], labels[rows], f"VID{v}")
    for component, result in metric.compute().items():
        np.testing.assert_array_equal(result.AP, whole[component].AP)
        np.testing.assert_array_equal(result.per_video, whole[component].per_video)


def test_ill_formed_input_is_refused_by_name() -> None:
    with pytest.raises(BadInput, match="frame 1: class 0: found nan"):
        average_precision([[0.5], [np.nan]], [[1], [0]])
    with pytest.raises(BadInput, match="only 0 and 1"):
        average_precision([[0.5], [0.1]], [[2], [0]])
    with pytest.raises(BadInput, match=r"targets \(1, 2\) and scores \(1, 3\)"):
        average_precision([[0.5, 0.2, 0.1]], [[1, 0]])
    with pytest.raises(BadInput, match=r"^videos: found 1, expected one for each of the 2 frames"):
        video_average_precision([[0.5], [0.4]], [[1], [0]], [0])
    with pytest.raises(BadInput, match="label space"):
        evaluate_recognition(np.zeros((1, 5)), np.zeros((1, 5)), [0], components=["i"])
    with pytest.raises(BadInput, match="100 triplets of cholect50"):
        component_max(np.zeros((1, 5)), "i", load_labels("cholect50"))
    with pytest.raises(BadInput, match="update"):
        RecognitionAccumulator().compute()


@pytest.mark.parametrize("names", [["b", "b", "a", "a"], ["VID68", "VID68", "VID02", "VID02"]])
def test_videos_may_be_names_and_are_in_their_order(names: list[str]) -> None:
    labels = np.array([[1, 0], [0, 1], [1, 0], [0, 1]])
    scores = np.array([[0.9, 0.1], [0.2, 0.8], [0.4, 0.6], [0.5, 0.7]])
    numbered, named = (evaluate_recognition(scores, labels, one)["ivt"] for one in ([1, 1, 0, 0], names))
    assert named.per_video.tolist() == numbered.per_video.tolist() == [[0.5, 1.0], [1.0, 1.0]]


@pytest.mark.parametrize(
    "videos", [["a", 1], ["a", None], ["a", " "], [[0], [1]], [[0], [1, 2]], [0.5, 1], [-1, 0], [0, 2**40]]
)
def test_what_names_no_video_is_refused_in_a_sentence(videos: list[Any]) -> None:
    with pytest.raises(BadInput, match=r"^videos"):
        evaluate_recognition(np.eye(2), np.eye(2), videos)


def test_a_batch_may_hold_frames_of_several_videos() -> None:
    labels, scores = np.eye(3), np.eye(3) * 0.5
    whole, parts = RecognitionAccumulator(), RecognitionAccumulator()
    whole.update(scores, labels, ["b", "a", "b"])
    for row, name in enumerate("bab"):
        parts.update(scores[row], labels[row], name)
    assert whole.videos == parts.videos == ("b", "a")
    assert np.array_equal(whole.compute()["ivt"].per_video, parts.compute()["ivt"].per_video, equal_nan=True)
    with pytest.raises(BadInput, match="found 2, expected one for each of the 3 frames"):
        whole.update(scores, labels, ["b", "a"])
    with pytest.raises(BadInput, match="found what is no name"):
        whole.update(scores, labels, [["b"], "a", "c"])
    assert whole.videos == ("b", "a")
