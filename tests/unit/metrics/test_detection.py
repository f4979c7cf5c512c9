"""What the detection numbers mean, on cases small enough to check by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from surgeval.errors import BadInput
from surgeval.metrics import (
    CONVENTIONS,
    Boxes,
    Convention,
    DetectionAccumulator,
    DetectionSet,
    evaluate_detection,
    global_ap,
    operating_point,
    pooled,
    rank_detections,
    video_ap,
    weighted_ap,
)

BOX, FAR = [0.0, 0.0, 10.0, 10.0], [50.0, 50.0, 5.0, 5.0]


def _set(
    video: npt.ArrayLike,
    truth: list[tuple[int, int, list[float]]],
    found: list[tuple[int, int, float, list[float]]],
) -> DetectionSet:
    return DetectionSet.of(
        Boxes.of([f for f, *_ in found], {"i": [r[1] for r in found]}, [r[3] for r in found], [r[2] for r in found]),
        Boxes.of([f for f, _, _ in truth], {"i": [c for _, c, _ in truth]}, [b for _, _, b in truth]),
        video,
    )


@pytest.mark.parametrize(("n", "linear"), [(1, 0.995), (2, 0.75), (3, 0.66665), (10, 0.55)])
def test_one_hit_among_n_truths_scores_as_the_two_interpolations_say(n: int, linear: float) -> None:
    data = _set([0] * n, [(f, 0, BOX) for f in range(n)], [(0, 0, 0.9, BOX)])
    step = (100 // n + 1) / 101
    assert evaluate_detection(data, {"i": 1})["i"].overall.mAP == pytest.approx(step, abs=1e-12)
    assert evaluate_detection(data, {"i": 1}, convention="ivtd")["i"].overall.mAP == pytest.approx(linear, abs=1e-9)


def test_a_class_with_truths_and_no_predictions_scores_zero_and_an_absent_class_nan() -> None:
    data = _set([0], [(0, 0, BOX)], [])
    for convention in CONVENTIONS:
        scores = evaluate_detection(data, {"i": 2}, convention=convention)["i"].overall
        for field in ("AP", "AP_5095", "AR", "precision", "recall", "F1"):
            assert getattr(scores, field)[0] == 0
            assert np.isnan(getattr(scores, field)[1])


def test_predictions_of_a_class_absent_from_a_video_cost_nothing_there_but_cost_globally() -> None:
    data = _set([0, 1], [(0, 0, BOX), (1, 1, BOX)], [(0, 0, 0.5, BOX), (1, 0, 0.9, FAR), (1, 1, 0.5, BOX)])
    result = evaluate_detection(data, {"i": 2})["i"]
    assert result.video_wise.AP.tolist() == [1.0, 1.0]
    assert result.overall.AP.tolist() == [0.5, 1.0]


def test_class_first_and_video_first_means_differ() -> None:
    # Video 0 shows class 0 (found); video 1 shows classes 0 and 1 (missed): per class (0.5, 0), per video (1, 0).
    data = _set([0, 1], [(0, 0, BOX), (1, 0, BOX), (1, 1, BOX)], [(0, 0, 0.9, BOX)])
    result = evaluate_detection(data, {"i": 2})["i"]
    assert result.video_wise.mAP == pytest.approx(0.25)
    assert result.per_video.video_first()["AP"] == pytest.approx(0.5)


def test_interpolating_over_unsorted_confidences_is_the_legacy_defect() -> None:
    found = [(0, 0, 0.9, BOX), (1, 0, 0.3, FAR), (2, 0, 0.2, FAR), (3, 0, 0.8, BOX)]
    data = _set([0] * 4, [(f, 0, BOX) for f in range(4)], found)
    legacy = evaluate_detection(data, {"i": 1}, convention="ivtd-legacy")["i"].overall
    fixed = evaluate_detection(data, {"i": 1}, convention="ivtd")["i"].overall
    assert [legacy.mean(m) for m in ("precision", "recall", "F1")] == pytest.approx([0.5, 0.5, 0.5])
    assert [fixed.mean(m) for m in ("precision", "recall", "F1")] == pytest.approx([0.971, 0.5, 0.660], abs=1e-3)
    assert legacy.mAP == fixed.mAP


def test_the_order_of_frames_changes_the_legacy_f1_and_nothing_else() -> None:
    rows = [(0, 0, 0.9, BOX), (1, 0, 0.3, FAR), (2, 0, 0.2, FAR), (3, 0, 0.8, BOX)]
    moved = [(f if f in (0, 2) else 4 - f, c, s, b) for f, c, s, b in rows]
    truth = [(f, 0, BOX) for f in range(4)]
    for convention in CONVENTIONS:
        a, b = (
            evaluate_detection(_set([0] * 4, truth, r), {"i": 1}, convention=convention)["i"].overall
            for r in (rows, moved)
        )
        assert (a.mean("F1") == pytest.approx(b.mean("F1"))) is (convention != "ivtd-legacy")
        assert a.mAP == b.mAP


def test_ivtd_takes_the_first_truth_that_overlaps_enough_not_the_best() -> None:
    near = [0.0, 0.4, 10.0, 10.0]  # IoU 0.923 with BOX
    found = [(0, 0, 0.9, BOX)]
    orders = [[(0, 0, BOX), (0, 0, near)], [(0, 0, near), (0, 0, BOX)]]
    ivtd = [
        evaluate_detection(_set([0], truth, found), {"i": 1}, convention="ivtd")["i"].overall.mAP_5095
        for truth in orders
    ]
    coco = [evaluate_detection(_set([0], truth, found), {"i": 1})["i"].overall.mAP_5095 for truth in orders]
    assert ivtd[0] < ivtd[1]
    assert coco[0] == coco[1]


def test_coco_precision_and_recall_count_the_detections_at_or_above_the_threshold() -> None:
    found = [(0, 0, 0.9, BOX), (1, 0, 0.6, FAR), (2, 0, 0.4, BOX)]
    ranked = rank_detections(_set([0] * 3, [(f, 0, BOX) for f in range(3)], found), "i", 1)
    for threshold, expected in ((0.95, (0, 0)), (0.9, (1, 1 / 3)), (0.5, (0.5, 1 / 3)), (0.1, (2 / 3, 2 / 3))):
        point = operating_point(ranked, threshold=threshold)
        assert (point.precision[0], point.recall[0]) == pytest.approx(expected)
        assert not point.chosen_on_scored_data
    best = operating_point(ranked)
    assert best.chosen_on_scored_data
    assert best.f1[0] == pytest.approx(2 / 3)
    assert best.threshold <= 0.4


def test_a_plain_iou_threshold_other_than_a_half_leaves_map5095_alone_under_coco() -> None:
    found = [(0, 0, 0.9, [0.0, 0.0, 10.0, 4.0])]  # IoU 0.4
    data = _set([0], [(0, 0, BOX)], found)
    loose, plain = (evaluate_detection(data, {"i": 1}, iou=iou)["i"].overall for iou in (0.3, 0.5))
    assert (loose.mAP, plain.mAP) == (1, 0)
    assert loose.mAP_5095 == plain.mAP_5095 == 0


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_a_weighted_resample_equals_copying_the_videos(convention: Convention) -> None:
    random = np.random.default_rng(3)
    truth = [(f, int(random.integers(3)), [10.0 * k, 0.0, 9.0, 9.0]) for f in range(40) for k in range(3)]
    found = [
        (
            f,
            c if random.random() < 0.7 else int(random.integers(3)),
            float(random.random()),
            [b[0] + random.normal(), *b[1:]],
        )
        for f, c, b in truth
        if random.random() < 0.8
    ]
    data = _set(np.repeat(np.arange(5), 8), truth, found)
    ranked = rank_detections(data, "i", 3, convention)
    for multiplicity in ([1, 1, 1, 1, 1], [2, 0, 1, 3, 0], [0, 0, 5, 0, 0]):
        copies = data.select_videos([v for v, m in enumerate(multiplicity) for _ in range(m)])
        copied = rank_detections(copies, "i", 3, convention)
        weight = np.array(multiplicity)
        np.testing.assert_allclose(weighted_ap(ranked, weight), global_ap(copied), rtol=0, atol=1e-12)
        alone = pooled(copied, np.ones(copied.n_videos))[1]
        np.testing.assert_allclose(pooled(ranked, weight)[1], alone, rtol=0, atol=1e-12)


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_every_score_of_a_resample_equals_that_of_the_copied_videos(convention: Convention) -> None:
    random = np.random.default_rng(8)
    truth = [(f, int(random.integers(3)), [10.0 * k, 0.0, 9.0, 9.0]) for f in range(40) for k in range(3)]
    found = [(f, c, float(random.random()), b if random.random() < 0.6 else FAR) for f, c, b in truth]
    data = _set(np.repeat(np.arange(5), 8), truth, found)
    result = evaluate_detection(data, {"i": 4}, convention=convention)["i"]
    for multiplicity in ([1, 1, 1, 1, 1], [2, 0, 1, 3, 0], [0, 0, 0, 4, 0]):
        weight = np.array(multiplicity)
        copied = data.select_videos([v for v, m in enumerate(multiplicity) for _ in range(m)])
        alone = evaluate_detection(copied, {"i": 4}, convention=convention)["i"]
        for a, b in (
            (result.resampled(weight), alone.overall),
            (result.per_video.class_first(weight), alone.video_wise),
        ):
            assert a.summary() == pytest.approx(b.summary(), abs=1e-12)
        assert result.per_video.video_first(weight) == pytest.approx(alone.per_video.video_first(), abs=1e-12)
        assert result.resampled(weight).threshold == alone.overall.threshold


def test_a_resample_keeps_a_threshold_that_was_given() -> None:
    data = _set([0, 1], [(0, 0, BOX), (1, 0, BOX)], [(0, 0, 0.9, BOX), (1, 0, 0.2, BOX)])
    result = evaluate_detection(data, {"i": 1}, threshold=0.5)["i"]
    assert result.resampled(np.array([1, 3])).recall[0] == pytest.approx(1 / 4)
    with pytest.raises(BadInput, match="whole numbers"):
        operating_point(result.ranked, multiplicity=np.array([0.5, 1]))


def test_a_resample_without_a_class_gives_it_nan() -> None:
    ranked = rank_detections(_set([0, 1], [(0, 0, BOX), (1, 1, BOX)], [(0, 0, 0.9, BOX)]), "i", 2)
    assert np.isnan(weighted_ap(ranked, np.array([0, 3]))[0, 0])
    with pytest.raises(BadInput, match="one per video"):
        weighted_ap(ranked, np.array([1, 1, 1]))


def test_video_wise_ap_is_the_ap_of_each_video_alone() -> None:
    data = _set(
        [0, 1, 1], [(0, 0, BOX), (1, 0, BOX), (2, 0, BOX)], [(0, 0, 0.2, BOX), (1, 0, 0.9, FAR), (2, 0, 0.8, BOX)]
    )
    ap = video_ap(rank_detections(data, "i", 1))[:, 0, 0]
    alone = [evaluate_detection(data.select_videos([v]), {"i": 1})["i"].overall.mAP for v in range(2)]
    assert ap.tolist() == pytest.approx(alone)


def test_frames_of_interleaved_videos_are_sorted_out() -> None:
    truth, found = [(f, 0, BOX) for f in range(4)], [(0, 0, 0.9, BOX), (3, 0, 0.8, BOX)]
    mixed = evaluate_detection(_set([1, 0, 1, 0], truth, found), {"i": 1})["i"]
    assert mixed.ranked.truths.tolist() == [[2], [2]]
    assert mixed.per_video.AP[:, 0].tolist() == pytest.approx([51 / 101, 51 / 101])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"frame": [0], "classes": {"i": [0]}, "xywh": [[0, 0, float("nan"), 1]]}, "row 0: xywh"),
        ({"frame": [0], "classes": {"i": [0]}, "xywh": [[0, 0, 1, 1]], "score": [float("inf")]}, "row 0: score"),
        ({"frame": [-1], "classes": {"i": [0]}, "xywh": [[0, 0, 1, 1]]}, "frame: found -1"),
        ({"frame": [0], "classes": {"i": [0.5]}, "xywh": [[0, 0, 1, 1]]}, "whole numbers"),
        ({"frame": [0], "classes": {"i": [0, 1]}, "xywh": [[0, 0, 1, 1]]}, "found 2 rows, expected 1"),
        ({"frame": [0], "classes": {"i": [0]}, "xywh": [[0, 0, 1]]}, "four numbers per row"),
        ({"frame": [0], "classes": {"i": [0]}, "xywh": [["a", 0, 1, 1]]}, "expected numbers"),
    ],
)
def test_ill_formed_boxes_are_refused_by_name(columns: dict[str, object], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Boxes.of(**columns)  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [-1, 3])
def test_class_ids_outside_the_label_space_are_refused_never_wrapped(number: int) -> None:
    data = _set([0], [(0, 0, BOX)], [(0, number, 0.9, BOX)])
    with pytest.raises(BadInput, match=f"predictions: row 0 .frame 0.: i: found class {number}"):
        evaluate_detection(data, {"i": 3})


def test_a_box_in_a_frame_that_does_not_exist_is_refused() -> None:
    with pytest.raises(BadInput, match="predictions: row 0: frame: found 7, expected one of the 1 frames"):
        _set([0], [], [(7, 0, 0.9, BOX)])


def test_degenerate_boxes_are_counted_and_overlap_nothing() -> None:
    flat = [0.0, 0.0, 10.0, 0.0]
    result = evaluate_detection(_set([0], [(0, 0, flat)], [(0, 0, 0.9, flat)]), {"i": 1})
    assert (result.degenerate_truths, result.degenerate_predictions) == (1, 1)
    assert result["i"].overall.mAP == 0


def test_an_empty_dataset_is_all_nan() -> None:
    for convention in CONVENTIONS:
        result = evaluate_detection(_set([], [], []), {"i": 2}, convention=convention)["i"]
        assert np.isnan(result.overall.mAP)
        assert np.isnan(result.video_wise.mAP)
        assert np.isnan(result.per_video.video_first()["F1"])


def test_unknown_conventions_styles_and_thresholds_are_refused() -> None:
    data = _set([0], [(0, 0, BOX)], [(0, 0, 0.9, BOX)])
    wrong: dict[str, Any] = {"convention": "voc", "style": "12point", "iou": 0.0, "threshold": float("nan")}
    for name, value in wrong.items():
        with pytest.raises(BadInput, match=name):
            evaluate_detection(data, {"i": 1}, **{name: value})


def test_the_accumulator_gives_the_same_in_any_batches() -> None:
    rows = [(f, f % 2, 0.9 - f / 10, BOX if f != 2 else FAR) for f in range(6)]
    data = _set([0, 0, 0, 1, 1, 1], [(f, f % 2, BOX) for f in range(6)], rows)
    whole = evaluate_detection(data, {"i": 2})["i"].overall
    metric = DetectionAccumulator({"i": 2})
    for f in range(6):
        part = [Boxes.of([0], {"i": [f % 2]}, [box], [score]) for box, score in ((BOX, 1.0), (rows[f][3], rows[f][2]))]
        metric.update(part[1], part[0], f"video {f // 3}")
    again = metric.compute()["i"].overall
    assert again.summary() == whole.summary()
    assert metric.videos == ("video 0", "video 1")


def test_the_accumulator_counts_frames_without_boxes_and_refuses_too_few() -> None:
    nothing, one = Boxes.of([], {"i": []}, []), Boxes.of([2], {"i": [0]}, [BOX])
    metric = DetectionAccumulator({"i": 1})
    metric.update(nothing, one, "a", n_frames=5)
    assert metric.data().n_frames == 5
    assert metric.compute()["i"].overall.mAP == 0
    with pytest.raises(BadInput, match="frame 2, expected fewer than 2"):
        metric.update(nothing, one, "a", n_frames=2)


def test_boxes_of_several_videos_may_come_in_one_batch() -> None:
    boxes = Boxes.of([0, 2], {"i": [0, 0]}, [BOX, BOX], score=[0.9, 0.8])
    metric = DetectionAccumulator({"i": 1})
    metric.update(boxes, boxes, ["b", "a", "b"])
    assert metric.videos == ("b", "a") and metric.data().n_frames == 3
    assert metric.compute()["i"].per_video.AP[:, 0].tolist() == pytest.approx([1.0, float("nan")], nan_ok=True)


def test_videos_that_do_not_exist_cannot_be_selected() -> None:
    with pytest.raises(BadInput, match="expected numbers from 0 to 1"):
        _set([0, 1], [], []).select_videos([2])


def test_tables_name_convention_scope_and_class() -> None:
    result = evaluate_detection(_set([0], [(0, 0, BOX)], [(0, 0, 0.9, BOX)]), {"i": 2}, convention="ivtd")
    table = result.to_frame()
    assert table["convention"].unique().to_list() == ["ivtd"]
    assert table["scope"].to_list() == ["global", "video (class-first)", "video (video-first)"]
    classes = result["i"].class_table(["grasper", "hook"])
    assert classes["name"].to_list() == ["grasper", "hook"]
    assert classes["instances"].to_list() == [1, 0]


def test_the_mean_over_a_rare_subset_uses_those_classes_only() -> None:
    data = _set([0, 0], [(0, 0, BOX), (1, 1, BOX)], [(0, 0, 0.9, BOX)])
    overall = evaluate_detection(data, {"i": 2})["i"].overall
    assert (overall.mean("AP", [1]), overall.mean("AP", [0]), overall.mAP) == (0, 1, 0.5)


@pytest.mark.parametrize("side", [1e-200, 1e-160, 1.12e-16, 1e200])
@pytest.mark.parametrize("convention", CONVENTIONS)
def test_boxes_whose_area_is_beyond_floating_point_overlap_nothing(convention: Convention, side: float) -> None:
    odd = [0.0, 0.0, side, side]
    data = _set([0, 0], [(0, 0, BOX), (1, 0, odd)], [(0, 0, 0.9, odd), (1, 0, 0.8, odd), (0, 0, 0.7, BOX)])
    result = evaluate_detection(data, {"i": 1}, convention=convention)["i"].overall
    assert 0 <= result.mAP <= 1
    assert operating_point(rank_detections(data, "i", 1, convention=convention)) is not None
