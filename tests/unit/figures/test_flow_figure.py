"""The picture of the way to a motion mask: five panels of one scale, and words."""

from __future__ import annotations

import numpy as np
import pytest

from surgeval.errors import BadInput
from surgeval.figures import FlowPipeline
from surgeval.figures.optical_flow import flow_colours


def pipeline(title: str = "Motion") -> FlowPipeline:
    frame = np.full((40, 60, 3), 90, np.uint8)
    camera = np.zeros((40, 60, 2))
    camera[..., 0] = -2.0
    after, mask = np.zeros((40, 60, 2)), np.zeros((40, 60), bool)
    mask[10:20, 10:30] = True
    after[mask] = (0.0, 3.0)
    return FlowPipeline(title, frame, camera + after, camera, after, mask)


def test_still_is_white_and_opposite_directions_have_opposite_colours() -> None:
    right, left = flow_colours(np.array([[[1.0, 0.0], [-1.0, 0.0]]]), 1.0)[0].astype(int)
    assert right.tolist() == [255, 0, 0] and left.tolist() == [0, 255, 255]
    assert (flow_colours(np.array([[[9.0, 0.0]]]), 1.0)[0, 0] == right).all()  # faster than the scale: full colour


def test_the_panels_show_frame_flows_and_mask() -> None:
    figure = pipeline()
    frame, before, camera, after, marked = figure.panels()
    assert (frame == figure.frame).all()
    assert (before[0, 0] == camera[0, 0]).all() and (before[15, 15] != camera[15, 15]).any()
    assert (after[0, 0] == 255).all() and (after[15, 15] != 255).any()
    assert (marked[~figure.mask] == 90).all() and (marked[figure.mask] != 90).any(axis=-1).all()


def test_the_panels_stand_side_by_side_under_their_names_with_the_wheel() -> None:
    sheet = pipeline("<b>hook</b> $x$").draw()
    assert sheet.shape[1] > 5 * 320
    assert (sheet == pipeline().draw()).all()
    names = sheet[:20]
    dark = np.flatnonzero((names < 100).all(axis=2).any(axis=0))
    assert [bool(((dark > left) & (dark < left + 328)).any()) for left in range(0, 1640, 328)] == [True] * 5
    assert (sheet[30:, -90:] != 255).any()  # the wheel


def test_the_words_say_how_much_moves() -> None:
    assert "8.33 % of the frame is marked" in pipeline().alt


def test_arrays_that_do_not_fit_together_are_refused() -> None:
    good = pipeline()
    with pytest.raises(BadInput, match="of one size"):
        FlowPipeline("x", good.frame, good.before[:10], good.camera, good.after, good.mask)
    with pytest.raises(BadInput, match="finite"):
        FlowPipeline("x", good.frame, np.full_like(good.before, np.nan), good.camera, good.after, good.mask)
