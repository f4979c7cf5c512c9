"""Confusion matrices, ordinal cost-aware F1, frequencies."""

from __future__ import annotations

import numpy as np
import pytest

from surgeval.errors import BadInput
from surgeval.metrics import (
    Boxes,
    CostAware,
    DetectionSet,
    confusion_matrix,
    cost_aware_f1,
    match_boxes,
    rare_classes,
)

A, B, FAR = [0.0, 0.0, 10.0, 10.0], [20.0, 0.0, 10.0, 10.0], [40.0, 0.0, 5.0, 5.0]


def _boxes(rows: list[tuple[int, int, int, int, int, list[float], float]]) -> Boxes:
    columns = list(zip(*rows, strict=True)) if rows else [()] * 7
    classes = dict(zip(("ivt", "i", "v", "t"), columns[1:5], strict=True))
    return Boxes.of(columns[0], classes, list(columns[5]), columns[6])


def _paper_example() -> DetectionSet:
    truth = _boxes([(0, 22, 1, 0, 0, A, 1), (0, 21, 0, 9, 9, B, 1), (1, 22, 1, 0, 0, A, 1)])
    below_b, below_a = [20.0, 1.0, 10.0, 10.0], [0.0, 1.0, 10.0, 10.0]
    found = _boxes(
        [
            (0, 22, 1, 0, 0, A, 0.9),
            (0, 19, 0, 3, 3, below_b, 0.8),
            (0, 22, 1, 0, 0, FAR, 0.3),
            (1, 25, 1, 0, 3, below_a, 0.7),
            (1, 22, 1, 0, 0, A, 0.6),
        ]
    )
    return DetectionSet.of(found, truth, [0, 0])


def _f1(result: CostAware, part: str) -> float:
    return float(result.scores[part].f1[22])


def test_the_worked_example_of_the_cost_aware_score() -> None:
    result = cost_aware_f1(_paper_example(), 89)
    assert result.scores["ivt"].precision[22] == pytest.approx(1 / 3)
    assert result.scores["ivt"].recall[22] == pytest.approx(0.9)
    assert [_f1(result, p) for p in ("ivt", "i", "t", "bbox")] == pytest.approx([0.486486, 0.5, 0.4, 0.05], abs=1e-6)
    assert result.macro(over="truth") == pytest.approx(0.243243, abs=1e-6)
    assert result.macro(over="seen") == pytest.approx(0.121622, abs=1e-6)
    assert result.macro(over="all") == pytest.approx(0.005466, abs=1e-6)
    assert result.macro(over="all", undefined="skip") == pytest.approx(0.486486, abs=1e-6)


def test_same_class_matching_and_weighted_parts_are_choices() -> None:
    data = _paper_example()
    same = cost_aware_f1(data, 89, matching="same-class")
    assert _f1(same, "ivt") == pytest.approx(0.8)
    assert same.macro() == pytest.approx(0.4)
    weighted = cost_aware_f1(data, 89, weighted_parts=True)
    assert _f1(weighted, "i") == pytest.approx(0.5 * _f1(cost_aware_f1(data, 89), "i"))


def test_a_confidence_cut_off_removes_the_low_boxes_from_precision() -> None:
    result = cost_aware_f1(_paper_example(), 89, min_score=0.5)
    assert result.scores["ivt"].precision[22] == pytest.approx(1 / 2)


def test_wrong_choices_are_refused() -> None:
    data = _paper_example()
    with pytest.raises(BadInput, match="matching"):
        cost_aware_f1(data, 89, matching="both")
    with pytest.raises(BadInput, match="weights"):
        cost_aware_f1(data, 89, weights={"i": 1.0})
    with pytest.raises(BadInput, match="found class 25"):
        cost_aware_f1(data, 25)
    with pytest.raises(BadInput, match="choose"):
        match_boxes(data, choose="last")
    with pytest.raises(BadInput, match="over"):
        cost_aware_f1(data, 89).macro(over="some")


def test_matching_without_classes_takes_the_best_overlap_or_the_first() -> None:
    truth = _boxes([(0, 0, 0, 0, 0, [0.0, 2.0, 10.0, 10.0], 1), (0, 1, 1, 0, 0, A, 1)])
    found = _boxes([(0, 0, 0, 0, 0, A, 0.9)])
    data = DetectionSet.of(found, truth, [0])
    assert match_boxes(data).tolist() == [1]
    assert match_boxes(data, choose="first").tolist() == [0]
    assert match_boxes(data, same_class="i").tolist() == [0]
    assert match_boxes(data, min_score=0.95).tolist() == [-1]


def test_every_truth_and_every_counted_prediction_stands_once_in_the_confusion_matrix() -> None:
    data = _paper_example()
    matrix = confusion_matrix(data, "i", 7)
    assert matrix.counts[:, :-1].sum() == len(data.targets)
    assert matrix.counts[:-1].sum() == len(data.predictions)
    assert matrix.counts[-1, -1] == 0
    above = confusion_matrix(data, "i", 7, min_score=0.65)
    assert above.counts[:-1].sum() == 3
    assert above.labels(["a"]) == (("a", "missed"), ("a", "background"))


def test_columns_of_the_normalised_matrix_sum_to_one_or_are_nan() -> None:
    shares = confusion_matrix(_paper_example(), "v", 10).normalised()
    sums = shares.sum(axis=0)
    assert np.allclose(sums[~np.isnan(sums)], 1)
    assert np.isnan(shares[:, 5]).all()


def test_a_class_is_rare_when_it_occurs_but_in_few_instances() -> None:
    assert rare_classes([3, 1, 0], fewer_than=2).tolist() == [1]
