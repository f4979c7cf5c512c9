"""Boxes and names on a frame can be read: they keep apart, grow with the frame and obey no name."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from surgeval.detector.inference import DrawnBox, draw_boxes
from surgeval.detector.inference.draw import _common, _free_place, _plate

BOXES = st.lists(st.tuples(st.integers(0, 700), st.integers(0, 380)), min_size=2, max_size=4)


@given(BOXES)
def test_names_of_a_few_boxes_never_cover_one_another(corners: list[tuple[int, int]]) -> None:
    placed: list[tuple[int, int, int, int]] = []
    for x, y in corners:
        placed.append(_free_place(np.array([x, y, x + 150.0, y + 100.0]), 200, 20, 854, 480, 2, placed))
    for number, one in enumerate(placed):
        assert 0 <= one[0] < one[2] <= 854
        assert 0 <= one[1] < one[3] <= 480
        assert all(_common(one, other) == 0 for other in placed[:number])


def test_letters_grow_with_the_frame() -> None:
    heights = []
    for width, height in ((427, 240), (854, 480), (1708, 960)):
        blank = np.zeros((height, width, 3), np.uint8)
        box = np.array([0.3, 0.4, 0.6, 0.8]) * np.array([width, height, width, height])
        shown = draw_boxes(blank, [DrawnBox(box, "hook dissect 0.87", 2)])
        above = shown[: round(box[1]) - 4].any(axis=(1, 2))
        heights.append(int(above.sum()))
    assert heights[0] < heights[1] < heights[2]
    assert heights[2] > 1.5 * heights[1]


def test_a_box_beyond_the_frame_and_a_name_of_a_megabyte_are_drawn_as_far_as_they_go() -> None:
    frame = np.zeros((64, 96, 3), np.uint8)
    shown = draw_boxes(frame, [DrawnBox(np.array([-50.0, -50.0, 500.0, 500.0]), "\x1b[2J" + "x" * 1_000_000, 40)])
    assert shown.shape == frame.shape
    assert shown.any()
    assert draw_boxes(frame, []).sum() == 0


def test_every_instrument_has_its_colour() -> None:
    plates = [_plate("hook", kind, 15, 1)[2, 2].tolist() for kind in range(8)]
    assert len({tuple(colour) for colour in plates}) == 8
