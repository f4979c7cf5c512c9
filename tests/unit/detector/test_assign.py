"""Which points learn which box: the claims of the paper's section E.1 and the cases it leaves open."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from tests.unit.detector.scenes import grid, scene

from surgeval.detector import assign as module
from surgeval.detector.assign import ASSIGNMENT_RULES, Assignment, AssignmentRule, BatchTruth, assign, assign_output
from surgeval.errors import BadInput

WAYS = pytest.mark.parametrize("fixed_shapes", [False, True], ids=["as-on-the-cpu", "as-on-the-device"])
PRESETS = pytest.mark.parametrize("preset", ["paper", "ultralytics"])


def _one(
    truth_boxes: list[list[float]],
    labels: list[list[int]],
    scores: Any = None,
    *,
    mask: list[int] | None = None,
    **more: Any,
) -> Assignment:
    """One image of 64 x 64 whose points all predict a box of 24 pixels around themselves."""
    points, _ = grid()
    boxes = torch.cat((points - 12, points + 12), 1)
    scores = torch.full((len(points), len(labels[0])), 0.5) if scores is None else scores
    marks = torch.tensor(labels).bool().reshape(-1, scores.shape[1])
    rows = torch.ones(len(truth_boxes)) if mask is None else torch.tensor(mask)
    return assign(
        scores[None],
        boxes[None],
        points,
        torch.tensor(truth_boxes).reshape(1, -1, 4),
        marks[None],
        rows.bool()[None],
        **more,
    )


@WAYS
@PRESETS
def test_a_box_takes_its_ten_best_points_inside_it(preset: str, fixed_shapes: bool) -> None:
    found = _one([[8.0, 8, 40, 40]], [[1]], rule=ASSIGNMENT_RULES[preset], fixed_shapes=fixed_shapes)
    positive = (found.owner[0] == 0).nonzero()[:, 0]
    points, _ = grid()
    assert len(positive) == 10
    assert ((points[positive] > 8) & (points[positive] < 40)).all()
    assert int(found.positive.sum()) == 10


@WAYS
@PRESETS
def test_a_small_box_takes_only_the_points_inside_it(preset: str, fixed_shapes: bool) -> None:
    found = _one([[9.0, 9, 15, 15]], [[1]], rule=ASSIGNMENT_RULES[preset], fixed_shapes=fixed_shapes)
    assert int((found.owner >= 0).sum()) == 1


def test_without_the_restriction_points_outside_are_taken_too() -> None:
    found = _one([[9.0, 9, 15, 15]], [[1]], rule=replace(ASSIGNMENT_RULES["paper"], inside=False))
    assert int((found.owner >= 0).sum()) > 1


@WAYS
@PRESETS
@pytest.mark.parametrize("inside", [True, False])
def test_a_box_without_area_gets_no_positives(preset: str, fixed_shapes: bool, inside: bool) -> None:
    rule = replace(ASSIGNMENT_RULES[preset], inside=inside)
    found = _one(
        [[8.0, 8, 8, 40], [8.0, 12, 40, 12], [30.0, 30, 20, 20]], [[1]] * 3, rule=rule, fixed_shapes=fixed_shapes
    )
    assert (found.owner == -1).all()
    assert not found.target.any()
    assert float(found.total) == 0


@WAYS
@PRESETS
def test_padded_rows_and_images_without_boxes_are_background(preset: str, fixed_shapes: bool) -> None:
    found = _one([[8.0, 8, 40, 40]], [[1]], mask=[0], rule=ASSIGNMENT_RULES[preset], fixed_shapes=fixed_shapes)
    assert (found.owner == -1).all()
    found = _one([], [], torch.full((84, 3), 0.5), rule=ASSIGNMENT_RULES[preset], fixed_shapes=fixed_shapes)
    assert (found.owner == -1).all()
    assert found.target.shape == (1, 84, 3)
    assert not found.target.any()


@WAYS
@PRESETS
def test_padding_changes_nothing(preset: str, fixed_shapes: bool) -> None:
    box, padding = [8.0, 8, 40, 40], [0.0, 0, 0, 0]
    plain = _one([box], [[0, 1]], rule=ASSIGNMENT_RULES[preset], fixed_shapes=fixed_shapes)
    padded = _one([padding, box, padding], [[1, 0], [0, 1], [1, 0]], mask=[0, 1, 0], rule=ASSIGNMENT_RULES[preset],
                  fixed_shapes=fixed_shapes)  # fmt: skip
    assert torch.equal(plain.target, padded.target)
    assert torch.equal(plain.owner >= 0, padded.owner == 1)


@WAYS
@PRESETS
def test_of_several_triplets_on_a_box_the_best_one_speaks_for_it(preset: str, fixed_shapes: bool) -> None:
    torch.manual_seed(0)
    scores = torch.rand(84, 4)
    several = _one([[8.0, 8, 40, 40]], [[1, 0, 1, 0]], scores, rule=ASSIGNMENT_RULES[preset], fixed_shapes=fixed_shapes)
    best = scores[:, [0, 2]].amax(1, keepdim=True)
    single = _one([[8.0, 8, 40, 40]], [[1]], best, rule=ASSIGNMENT_RULES[preset], fixed_shapes=fixed_shapes)
    assert torch.equal(several.owner, single.owner)
    torch.testing.assert_close(several.target[..., [0, 2]], single.target.expand(-1, -1, 2))
    assert not several.target[..., [1, 3]].any()
    torch.testing.assert_close(several.total, single.total)  # t counts once for a point, not once for a class


@WAYS
def test_a_box_without_a_class_gets_no_positives_and_takes_none_from_others(fixed_shapes: bool) -> None:
    for rule in ASSIGNMENT_RULES.values():
        found = _one([[8.0, 8, 40, 40], [8.0, 8, 40, 40]], [[0, 0], [0, 1]], rule=rule, fixed_shapes=fixed_shapes)
        assert set(found.owner[0].tolist()) == {-1, 1}


def test_the_rules_differ_in_who_gets_a_contested_point() -> None:
    boxes = [[8.0, 8, 40, 40], [8.0, 8, 40, 41]]  # the first overlaps better, the second is surer
    scores = torch.tensor([[0.1, 0.9]]).expand(84, 2)
    by_score = _one(boxes, [[1, 0], [0, 1]], scores, rule=AssignmentRule(topk=84, conflict="score"))
    by_overlap = _one(boxes, [[1, 0], [0, 1]], scores, rule=AssignmentRule(topk=84, conflict="overlap"))
    assert set(by_score.owner[0].tolist()) == {-1, 1}
    assert int((by_overlap.owner == 0).sum()) > 0


@WAYS
@PRESETS
def test_the_best_point_of_a_box_has_the_best_overlap_as_its_target(preset: str, fixed_shapes: bool) -> None:
    output, truth = scene(3, images=1)
    found = assign_output(output, truth, "ivt", ASSIGNMENT_RULES[preset], fixed_shapes=fixed_shapes)
    assert found.positive.any()
    assert (found.weight[found.positive] >= 0).all()
    assert (found.weight <= 1).all()


@PRESETS
def test_an_output_is_assigned_by_its_probabilities_and_boxes(preset: str) -> None:
    from surgeval.detector.geometry import decode

    output, truth = scene(5)
    boxes = decode(output.box, output.points, output.strides)
    by_hand = assign(output.logits["ivt"].sigmoid(), boxes, output.points, truth.boxes, truth.labels["ivt"], truth.mask,
                     ASSIGNMENT_RULES[preset])  # fmt: skip
    found = assign_output(output, truth, "ivt", ASSIGNMENT_RULES[preset])
    assert torch.equal(found.owner, by_hand.owner)
    torch.testing.assert_close(found.target, by_hand.target)
    assert not found.target.requires_grad


def test_a_batch_in_parts_is_assigned_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    output, truth = scene(6, images=5)
    whole = assign_output(output, truth, "ivt", fixed_shapes=True)
    monkeypatch.setattr(module, "_BLOCK", 84 * 5 * 2)
    parts = assign_output(output, truth, "ivt", fixed_shapes=True)
    for name in ("owner", "point", "row", "positive", "weight"):
        assert torch.equal(getattr(whole, name), getattr(parts, name))


def test_nothing_on_a_device_depends_on_content() -> None:
    """Tensors of torch's meta device have shapes and no content: asking for some would raise."""
    output, truth = scene(7)
    output.box, output.points, output.strides = (
        values.detach().to("meta") for values in (output.box, output.points, output.strides)
    )
    output.logits = {head: values.detach().to("meta") for head, values in output.logits.items()}
    for rule in ASSIGNMENT_RULES.values():
        found = assign_output(output, truth.to("meta"), "ivt", rule)
        assert found.owner.shape == (3, 84)
        assert found.point.shape == (3, 5 * 10)


def test_truth_counts_its_labels_and_pads_its_rows() -> None:
    marks = torch.tensor([[True, True, False], [False, False, True]])
    none = torch.zeros(0, 3, dtype=torch.bool)
    truth = BatchTruth.of([torch.ones(2, 4), torch.ones(0, 4)], [{"i": marks}, {"i": none}], rows=4)
    assert truth.boxes.shape == (2, 4, 4)
    assert truth.mask.tolist() == [[True, True, False, False], [False] * 4]
    assert truth.labels_per_box == 2
    assert truth.to("meta").labels_per_box == 2
    with pytest.raises(BadInput, match="found 2 boxes in an image, expected at most 1"):
        BatchTruth.of([torch.ones(2, 4)], [{"i": marks}], rows=1)


@pytest.mark.parametrize("wrong", [{"topk": 0}, {"alpha": -1.0}, {"overlap": "giou"}, {"conflict": "first"}])
def test_a_rule_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="assignment rule: found"):
        AssignmentRule(**wrong)
