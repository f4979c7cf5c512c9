"""Flow and camera motion on a clip of real laparoscopy."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from tests.flow_fields import forward_backward_error

from surgeval.datasets import open_video, read_image
from surgeval.explain.camera import edge_motion, fit_camera_robust
from surgeval.explain.flow import DisFlow, FlowPair
from surgeval.explain.motion import motion_from_flow, round_field
from surgeval.records import CameraMotion

pytestmark = pytest.mark.real
FIRST, COUNT = 100, 8


@pytest.fixture(scope="module")
def pairs(real_data: Path) -> list[tuple[FlowPair, np.ndarray]]:
    clips = sorted((real_data / "clip").glob("*.mp4"))
    if not clips:
        pytest.skip("the folder clip/ has no video")
    dataset = open_video(clips[0])
    frames = list(dataset.frames(clips[0].stem))[FIRST : FIRST + COUNT + 1]
    images = [read_image(frame.image) for frame in frames if frame.image is not None]
    return [(DisFlow().pair(a, b), round_field(a)) for a, b in pairwise(images)]


def test_most_pixels_come_back_to_where_they_started(pairs: list[tuple[FlowPair, np.ndarray]]) -> None:
    errors = [np.nanmedian(forward_backward_error(pair)[area]) for pair, area in pairs]
    assert np.median(errors) < 0.3


def test_the_camera_of_a_hand_does_not_jump(pairs: list[tuple[FlowPair, np.ndarray]]) -> None:
    found = [fit_camera_robust(pair.forward, pair.backward, where=area) for pair, area in pairs]
    assert all(fit.converged for fit in found)
    height, width = pairs[0][0].forward.shape[:2]
    motions = [fit.motion for fit in found]
    steps = [
        edge_motion(CameraMotion(b.P - a.P, b.T - a.T, b.Z - a.Z, b.R - a.R), height, width)
        for a, b in pairwise(motions)
    ]
    # From one 25th of a second to the next the speed changes by a few pixels at most.
    assert np.median(steps) < 0.005 * width


def test_going_back_is_the_opposite_camera_motion(pairs: list[tuple[FlowPair, np.ndarray]]) -> None:
    gaps = []
    for pair, area in pairs:
        assert pair.backward is not None
        there, back = (fit_camera_robust(flow, where=area).motion for flow in (pair.forward, pair.backward))
        sum_ = CameraMotion(there.P + back.P, there.T + back.T, there.Z + back.Z, there.R + back.R)
        gaps.append(edge_motion(sum_, *pair.forward.shape[:2]))
    assert np.median(gaps) < 0.25


def test_correction_leaves_less_motion_than_there_was(pairs: list[tuple[FlowPair, np.ndarray]]) -> None:
    before = [np.median(np.hypot(*np.moveaxis(pair.forward[area], -1, 0))) for pair, area in pairs]
    after = [np.median(motion_from_flow(pair, area=area).magnitude[area]) for pair, area in pairs]
    assert np.mean(after) <= np.mean(before)
