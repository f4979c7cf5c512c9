"""Motion in the pictures agrees with the motion that the states declare."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import pytest

from surgeval.phantom.scene.looks import LOOKS
from surgeval.phantom.scene.render import Renderer
from surgeval.phantom.scene.warp import compose, invert
from surgeval.phantom.script.anatomy import build_anatomy
from surgeval.phantom.script.state import CameraPose, Pull, SceneState, ToolState

ANATOMY = build_anatomy(5)
EMPTY = SceneState(0.0, "preparation", CameraPose())


@pytest.fixture(scope="module")
def renderer() -> Renderer:
    return Renderer(LOOKS["C"], ANATOMY)


def grey(image: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    return np.asarray(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), np.float32)


def moved(image: npt.NDArray[Any], affine: tuple[float, ...]) -> npt.NDArray[Any]:
    matrix = np.array(affine, np.float64).reshape(2, 3)
    size = (image.shape[1], image.shape[0])
    return np.asarray(cv2.warpAffine(image, matrix, size, flags=cv2.INTER_LINEAR))


def correlation(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> float:
    middle = np.s_[50:206, 90:358]
    return float(np.corrcoef(a[middle].ravel(), b[middle].ravel())[0, 1])


@pytest.mark.parametrize(("dx", "dy"), [(6.0, -4.0), (-3.0, 5.0), (0.0, 8.0)])
def test_a_pan_shifts_the_background_the_other_way(renderer: Renderer, dx: float, dy: float) -> None:
    before = grey(renderer.render(EMPTY).image)
    after = grey(renderer.render(replace(EMPTY, camera=CameraPose(dx, dy))).image)
    window = cv2.createHanningWindow((448, 256), cv2.CV_32F)
    (u, v), _ = cv2.phaseCorrelate(before, after, window)
    assert math.hypot(u + dx, v + dy) < 0.6


@pytest.mark.parametrize(
    "camera", [CameraPose(4, 2, 1.08, 0.0), CameraPose(0, 0, 1.0, 0.08), CameraPose(-5, 3, 0.95, -0.05)]
)
def test_zoom_and_roll_move_the_background_by_the_camera_algebra(renderer: Renderer, camera: CameraPose) -> None:
    before = grey(renderer.render(EMPTY).image)
    after = grey(renderer.render(replace(EMPTY, camera=camera)).image)
    motion = compose(camera.affine(448, 256), invert(EMPTY.camera.affine(448, 256)))
    assert correlation(moved(before, motion), after) > max(0.93, correlation(before, after) + 0.02)


@pytest.mark.parametrize(("dx", "dy"), [(9.0, -7.0), (-8.0, -6.0), (0.0, 9.0)])
def test_a_pull_moves_tissue_the_way_it_pulls(renderer: Renderer, dx: float, dy: float) -> None:
    x, y = ANATOMY.sites["gallbladder"][1]
    before = renderer.render(EMPTY).image
    after = renderer.render(replace(EMPTY, pulls=(Pull(x, y, dx, dy, 30.0),))).image
    flow = cv2.DISOpticalFlow.create(cv2.DISOPTICAL_FLOW_PRESET_MEDIUM).calc(
        grey(before).astype(np.uint8), grey(after).astype(np.uint8), None
    )
    px, py = (round(v) for v in EMPTY.camera.project((x, y), 448, 256))
    u, v = np.median(flow[py - 6 : py + 7, px - 6 : px + 7].reshape(-1, 2), axis=0)
    assert (u * dx + v * dy) / (math.hypot(u, v) * math.hypot(dx, dy)) > 0.85
    assert 0.5 < math.hypot(u, v) / math.hypot(dx, dy) < 1.5
    far = np.abs(before.astype(int) - after)[:, 400:]
    assert np.median(far) <= 2  # tissue far away stays


@pytest.mark.parametrize(
    "instrument", ["grasper", "bipolar", "hook", "scissors", "clipper", "irrigator", "specimen_bag"]
)
def test_tool_motion_maps_the_mask_onto_its_successor(renderer: Renderer, instrument: str) -> None:
    before = ToolState(1, instrument, (290.0, 70.0), (10.0, 15.0), jaw=0.5)
    after = replace(before, tip=(24.0, -4.0))
    cam0, cam1 = CameraPose(), CameraPose(5.0, -3.0, 1.06, 0.05)
    first = renderer.render(SceneState(0.0, "x", cam0, tools=(before,))).masks[1]
    second = renderer.render(SceneState(0.0, "x", cam1, tools=(after,))).masks[1]
    motion = renderer.tool_motion(before, cam0, after, cam1)
    predicted = moved(first.astype(np.uint8) * 255, motion) > 127
    known = moved(np.full_like(first, 255, dtype=np.uint8), motion) > 254  # what the first frame could see
    a, b = predicted & known, second & known
    assert (a & b).sum() / (a | b).sum() > 0.9
    assert (first & second).sum() / (first | second).sum() < 0.8  # it did move


def test_tool_motion_of_a_still_tool_under_a_still_camera_is_the_identity(renderer: Renderer) -> None:
    still = ToolState(1, "hook", (-290.0, 70.0), (10.0, 15.0))
    camera = CameraPose(3.0, 2.0, 1.1, 0.2)
    assert renderer.tool_motion(still, camera, still, camera) == pytest.approx((1, 0, 0, 0, 1, 0), abs=1e-9)


def test_glints_wander_over_the_tissue_when_the_camera_pans(renderer: Renderer) -> None:
    """A lamp at the lens: the bright spots do not stick to the tissue."""
    before = grey(renderer.render(EMPTY).image)
    after = grey(renderer.render(replace(EMPTY, camera=CameraPose(30.0, 0.0))).image)
    carried = moved(before, (1.0, 0.0, -30.0, 0.0, 1.0, 0.0))
    middle = np.s_[20:236, 30:380]
    was, now = carried[middle] > 235, after[middle] > 235
    assert was.sum() > 40 and now.sum() > 40
    assert (was & now).sum() / (was | now).sum() < 0.6
