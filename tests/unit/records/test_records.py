from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from surgeval.records import Box, Mask

coordinate = st.floats(-1e4, 1e4)
size = st.floats(0.01, 1e4)
boxes = st.builds(Box, coordinate, coordinate, size, size)


@given(arrays(np.bool_, st.tuples(st.integers(1, 12), st.integers(1, 12))))
def test_a_mask_survives_its_run_lengths(array: np.ndarray) -> None:
    mask = Mask.from_array(array)
    assert np.array_equal(mask.to_array(), array)
    assert mask.area == array.sum()
    assert sum(mask.counts) == array.size


def test_run_lengths_are_those_of_coco() -> None:
    # The classic example: column-major, zeros first.
    assert Mask.from_array(np.array([[1, 0, 0], [1, 1, 0]], np.uint8)).counts == (0, 2, 1, 1, 2)


def test_the_box_of_a_mask_is_tight() -> None:
    array = np.zeros((10, 20), bool)
    array[3:5, 7:15] = True
    assert Mask.from_array(array).box() == Box(7, 3, 8, 2)
    assert Mask.from_array(np.zeros((4, 4), bool)).box() is None


@given(boxes, boxes)
def test_iou_is_symmetric_and_between_0_and_1(a: Box, b: Box) -> None:
    assert a.iou(b) == pytest.approx(b.iou(a))
    assert 0 <= a.iou(b) <= 1 + 1e-9


@given(boxes)
def test_a_box_agrees_with_itself(box: Box) -> None:
    assert box.iou(box) == pytest.approx(1, rel=1e-6)


def test_a_degenerate_box_overlaps_nothing() -> None:
    assert Box(0, 0, 0, 10).iou(Box(0, 0, 10, 10)) == 0
    assert Box(5, 5, -3, 2).iou(Box(0, 0, 10, 10)) == 0
    assert Box(5, 5, -3, 2).area == 0


@given(boxes, st.integers(1, 2000), st.integers(1, 2000))
def test_a_clipped_box_lies_inside(box: Box, width: int, height: int) -> None:
    assert box.clipped(width, height).inside(width, height, slack=1e-6)


def test_corners_may_come_in_any_order() -> None:
    assert Box.from_corners(10, 20, 3, 4) == Box(3, 4, 7, 16)
