"""Boxes of equal score: matched together and one step of the curve, whatever their order; and the best-F1 threshold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from surgeval.errors import BadInput
from surgeval.metrics import (
    Boxes,
    Convention,
    DetectionAccumulator,
    DetectionSet,
    associate,
    confusion_matrix,
    evaluate_detection,
    match_boxes,
    operating_point,
    rank_detections,
)

BOX, FAR = [0.0, 0.0, 10.0, 10.0], [50.0, 50.0, 5.0, 5.0]


def _set(videos: list[int], found: list[tuple[int, float, list[float]]]) -> DetectionSet:
    """One class; a true `BOX` in every frame."""
    truth = Boxes.of(range(len(videos)), {"i": [0] * len(videos)}, [BOX] * len(videos))
    frames, scores, boxes = zip(*found, strict=True)
    return DetectionSet.of(Boxes.of(frames, {"i": [0] * len(found)}, boxes, scores), truth, videos)


def test_equal_scores_are_one_step_by_hand() -> None:
    """Four frames, score 1.0 everywhere, two hits: precision 2/4 up to recall 2/4, so 51 of 101 points of 0.5."""
    orders = ([BOX, BOX, FAR, FAR], [FAR, FAR, BOX, BOX])
    data = [_set([0] * 4, [(f, 1.0, box) for f, box in enumerate(boxes)]) for boxes in orders]
    assert [evaluate_detection(d, {"i": 1})["i"].overall.mAP for d in data] == [pytest.approx(0.5 * 51 / 101)] * 2
    named = [evaluate_detection(d, {"i": 1}, convention="coco")["i"].overall.mAP for d in data]
    assert named == pytest.approx([51 / 101, 0.5 * 51 / 101])  # hits first, misses first
    # ivtd joins (0, 1), (0.25, 0.5) at the first hit, (0.5, 0.5) and (1, 0): 0.75 / 4 + 0.5 / 4 + 0.25 / 2.
    free = [evaluate_detection(d, {"i": 1}, convention="ivtd", ties="free")["i"].overall for d in data]
    assert [scores.mAP for scores in free] == pytest.approx([0.4375, 0.4375])


def test_the_largest_overlap_of_a_tied_group_is_matched_first() -> None:
    """The loose box could take the truth at 0.5 (IoU 0.6), but the exact box of the same score fits it better."""
    loose = [0.0, 0.0, 10.0, 6.0]
    for boxes in ([loose, BOX], [BOX, loose]):
        data = _set([0], [(0, 0.7, box) for box in boxes])
        ranked = rank_detections(data, "i", 1)
        at = dict(zip(map(tuple, data.predictions.xywh[ranked.rows].tolist()), ranked.hits[:, 0], strict=True))
        assert at == {tuple(BOX): True, tuple(loose): False}
        assert match_boxes(data).tolist() == [0 if box == BOX else -1 for box in boxes]


def test_a_tied_group_is_cut_whole_at_a_hundred_detections() -> None:
    """99 boxes above it: a group of three begins as the 100th and counts whole; a group behind it does not."""
    found = [(0, 2.0 - k / 1000, FAR) for k in range(99)] + [(0, 0.5, FAR), (0, 0.5, FAR), (0, 0.5, BOX)]
    ranked = rank_detections(_set([0], [*found, (0, 0.4, FAR)]), "i", 1)
    assert len(ranked.rows) == 102
    assert ranked.hits[:, 0].any()
    assert len(rank_detections(_set([0], found), "i", 1, "coco").rows) == 100


def test_equal_boxes_of_two_classes_and_equal_scores_count_the_same_in_any_order() -> None:
    truth = Boxes.of([0], {"ivt": [1]}, [BOX])
    for ids in ([0, 1], [1, 0]):
        data = DetectionSet.of(Boxes.of([0, 0], {"ivt": ids}, [BOX, BOX], [0.5, 0.5]), truth, [0])
        assert confusion_matrix(data, "ivt", 2).counts.tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
        assert associate(data).counts[0].tolist() == [1, 0, 0, 0, 0, 1, 0]


def test_ties_are_free_unless_a_convention_is_named() -> None:
    data = _set([0] * 3, [(0, 1.0, BOX), (1, 1.0, FAR), (2, 0.5, BOX)])
    metric = DetectionAccumulator({"i": 1})
    metric.update(data.predictions, data.targets, "v")
    given: list[tuple[dict[str, Any], str]] = [
        ({}, "free"), ({"convention": "coco"}, "reference"), ({"convention": "ivtd"}, "reference"),
        ({"ties": "reference"}, "reference"), ({"convention": "ivtd", "ties": "free"}, "free"),
    ]  # fmt: skip
    for options, ties in given:
        for result in (evaluate_detection(data, {"i": 1}, **options), metric.compute(**options)):
            assert (result.ties, result["i"].ranked.ties) == (ties, ties)
    with pytest.raises(BadInput, match="ties 'none': expected one of free, reference"):
        evaluate_detection(data, {"i": 1}, ties="none")  # type: ignore[arg-type]


@pytest.mark.parametrize("scores", [(80, 90, 20), (0.0008, 0.0009, 0.0002), (-1.5, 2.5, -7.0)])
def test_the_best_f1_threshold_is_found_at_the_scores_on_any_scale(scores: tuple[float, float, float]) -> None:
    data = _set([0] * 2, [(0, scores[0], BOX), (1, scores[1], BOX), (1, scores[2], FAR)])
    for convention in (None, "coco"):
        overall = evaluate_detection(data, {"i": 1}, convention=convention)["i"].overall
        assert overall.mean("F1") == pytest.approx(1)
        assert overall.threshold == min(scores[:2])
    assert confusion_matrix(data, "i", 1, min_score=overall.threshold).counts.tolist() == [[2, 0], [0, 0]]


@pytest.mark.parametrize("convention", ["ivtd", "ivtd-legacy"])
def test_the_threshold_of_ivtd_stays_on_its_grid(convention: Convention) -> None:
    data = _set([0] * 2, [(0, 80, BOX), (1, 90, BOX), (1, 20, FAR)])
    point = operating_point(rank_detections(data, "i", 1, convention))
    assert 0 <= point.threshold <= 1
    assert point.f1[0] < 0.9


def test_the_best_threshold_is_the_best_of_all_that_could_be_given() -> None:
    random = np.random.default_rng(4)
    rows = [(int(f), float(random.integers(12)) - 3, BOX if random.random() < 0.5 else FAR) for f in range(30)]
    data = _set([0] * 15 + [1] * 15, rows)
    ranked = rank_detections(data, "i", 1)
    for video, drawn in ((None, None), (0, None), (1, None), (None, np.array([3, 1]))):
        best = operating_point(ranked, video, multiplicity=drawn)
        given = {
            score: operating_point(ranked, video, threshold=score, multiplicity=drawn).f1[0]
            for score in sorted(set(data.predictions.score.tolist()))
        }
        assert best.f1[0] == max(given.values())
        assert best.f1[0] == given[best.threshold]
