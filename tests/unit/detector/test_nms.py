"""Which boxes are reported: confidence, labels, groups and limits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from surgeval.detector.nms import SELECTING, Selecting, select
from surgeval.errors import BadInput

BOX, SAME, FAR = [0.0, 0, 10, 10], [0.0, 0, 10, 9], [50.0, 50, 60, 60]


def _found(
    boxes: list[list[float]], scores: list[list[float]], parts: Any = None, **settings: Any
) -> list[tuple[int, float]]:
    found = select(torch.tensor([boxes]), {"ivt": torch.tensor([scores])}, "ivt", parts, Selecting(**settings))[0]
    return [(int(kind), round(float(score), 3)) for kind, score in zip(found.classes, found.scores, strict=True)]


def test_every_class_of_a_point_is_a_candidate_or_only_the_best() -> None:
    scores = [[0.9, 0.3], [0.2, 0.8]]
    assert _found([BOX, FAR], scores) == [(0, 0.9), (1, 0.8), (1, 0.3), (0, 0.2)]
    assert _found([BOX, FAR], scores, multi_label=False) == [(0, 0.9), (1, 0.8)]


def test_boxes_suppress_each_other_within_a_class_or_a_tool_or_all_alike() -> None:
    scores = [[0.9, 0.0, 0.0], [0.0, 0.8, 0.0], [0.0, 0.0, 0.7]]
    tools = np.array([[0, 1, 1], [0, 2, 2], [1, 0, 0]])
    boxes = [BOX, SAME, SAME]
    assert _found(boxes, scores, mode="class") == [(0, 0.9), (1, 0.8), (2, 0.7)]
    assert _found(boxes, scores, tools, mode="tool") == [(0, 0.9), (2, 0.7)]
    assert _found(boxes, scores, mode="agnostic") == [(0, 0.9)]


def test_classes_whose_instrument_is_not_known_are_not_one_tool() -> None:
    unknown = np.full((2, 3), -1)
    assert len(_found([BOX, SAME], [[0.9, 0.0], [0.0, 0.8]], unknown, mode="tool")) == 2


def test_suppression_by_tool_needs_the_parts_of_all_classes() -> None:
    with pytest.raises(BadInput, match="found none, expected 1"):
        _found([BOX], [[0.9]], mode="tool")
    with pytest.raises(BadInput, match="found 2, expected 1"):
        _found([BOX], [[0.9]], np.zeros((2, 3)), mode="tool")


def test_a_score_must_be_above_the_confidence() -> None:
    assert _found([BOX, FAR], [[0.25], [0.26]], confidence=0.25) == [(0, 0.26)]


def test_the_most_sure_boxes_are_kept_and_ties_go_to_the_first() -> None:
    boxes = [[20.0 * i, 0, 20.0 * i + 10, 10] for i in range(6)]
    found = select(torch.tensor([boxes]), {"i": torch.full((1, 6, 1), 0.5)}, "i", None, Selecting(most=4))[0]
    assert found.boxes[:, 0].tolist() == [0, 20, 40, 60]


@pytest.mark.parametrize("candidates", [1, 2, 3, 7, 100])
def test_only_the_highest_candidates_enter(candidates: int) -> None:
    boxes = [[20.0 * i, 0, 20.0 * i + 10, 10] for i in range(9)]
    scores = [0.3, 0.9, 0.6, 0.2, 0.5, 0.8, 0.1, 0.7, 0.4]
    found = _found(boxes, [[score] for score in scores], candidates=candidates)
    assert [score for _, score in found] == sorted(scores, reverse=True)[:candidates]


def test_the_limit_on_candidates_holds_for_every_image() -> None:
    boxes = torch.tensor([[[20.0 * i, 0, 20.0 * i + 10, 10] for i in range(4)]]).expand(2, -1, -1)
    scores = torch.tensor([[[0.9], [0.8], [0.7], [0.6]], [[0.0], [0.0], [0.5], [0.0]]])
    found = select(boxes, {"i": scores}, "i", None, Selecting(candidates=3))
    assert [len(image) for image in found] == [3, 1]


def test_equal_scores_at_the_limit_of_candidates_go_to_the_lower_point() -> None:
    boxes = torch.tensor([[[20.0 * i, 0, 20.0 * i + 10, 10] for i in range(50)]])
    found = select(boxes, {"i": torch.full((1, 50, 1), 0.5)}, "i", None, Selecting(candidates=5))[0]
    assert found.boxes[:, 0].tolist() == [0, 20, 40, 60, 80]


def test_a_box_keeps_what_every_head_says_at_its_point() -> None:
    heads = {"ivt": torch.rand(2, 30, 4), "i": torch.rand(2, 30, 3)}
    boxes = torch.rand(2, 30, 4).cumsum(-1) * 100
    for image, found in enumerate(select(boxes, heads, "ivt")):
        assert len(found) == len(found.scores) == len(found.heads["i"])
        for row in range(len(found)):
            point = (boxes[image] == found.boxes[row]).all(-1).nonzero().item()
            assert torch.equal(found.heads["i"][row], heads["i"][image, point])
            assert found.heads["ivt"][row, found.classes[row]] == found.scores[row]


def test_images_without_candidates_have_no_boxes() -> None:
    found = select(torch.rand(3, 5, 4), {"i": torch.zeros(3, 5, 2)}, "i")
    assert [len(image) for image in found] == [0, 0, 0]
    assert found[0].boxes.shape == (0, 4)
    assert found[0].heads["i"].shape == (0, 2)
    assert select(torch.zeros(0, 5, 4), {"i": torch.zeros(0, 5, 2)}, "i") == []


def test_values_that_are_no_numbers_are_not_reported() -> None:
    nan = float("nan")
    boxes = [[nan, 0, 1, 1], BOX, [0.0, 0, float("inf"), 1], FAR]
    assert _found(boxes, [[0.9], [0.8], [0.7], [nan]]) == [(0, 0.8)]


def test_half_precision_is_compared_in_single() -> None:
    boxes = torch.tensor([[BOX, SAME]], dtype=torch.float16)
    found = select(boxes, {"i": torch.tensor([[[0.9], [0.8]]], dtype=torch.float16)}, "i")[0]
    assert found.boxes.dtype == torch.float32
    assert len(found) == 1


def test_presets_are_those_of_the_protocols() -> None:
    assert SELECTING["default"] == Selecting(confidence=0.001, iou=0.7, most=300, mode="class", multi_label=True)
    assert SELECTING["coco"].most == 100
    assert (SELECTING["prostatd-repo"].confidence, SELECTING["prostatd-repo"].iou) == (0.25, 0.6)
    assert (SELECTING["prostatd-repo-rtdetr"].confidence, SELECTING["prostatd-repo-rtdetr"].iou) == (0.001, 0.45)
    assert SELECTING["viewer"].mode == "tool"


@pytest.mark.parametrize("wrong", [{"confidence": -0.1}, {"iou": 1.5}, {"most": 0}, {"candidates": 0}, {"mode": "box"}])
def test_settings_that_cannot_be_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="selecting boxes"):
        Selecting(**wrong)
