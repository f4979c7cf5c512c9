"""The camera fit: exact on its own fields, equal to least squares, deaf to instruments when robust."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surgeval.errors import BadInput
from surgeval.explain.camera import camera_field, corrected_flow, edge_motion, fit_camera, fit_camera_robust
from surgeval.records import CameraMotion

SHIFT, TURN = st.floats(-5, 5), st.floats(-0.03, 0.03)
MOTIONS = st.builds(CameraMotion, P=SHIFT, T=SHIFT, Z=TURN, R=TURN)


def apart(a: CameraMotion, b: CameraMotion, height: int, width: int) -> float:
    return edge_motion(CameraMotion(a.P - b.P, a.T - b.T, a.Z - b.Z, a.R - b.R), height, width)


@given(MOTIONS, st.integers(2, 30), st.integers(2, 30))
def test_a_pure_camera_field_gives_its_parameters_back(motion: CameraMotion, height: int, width: int) -> None:
    field = camera_field(motion, height, width)
    assert apart(fit_camera(field), motion, height, width) < 1e-9
    assert np.abs(corrected_flow(field, fit_camera(field))).max() < 1e-9


@given(st.integers(0, 2**32 - 1), st.floats(0.05, 1.0))
def test_a_masked_fit_is_least_squares_on_the_design_matrix(seed: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    flow, where = rng.normal(0, 2, (9, 13, 2)), rng.random((9, 13)) < share
    where[0, 0] = where[8, 12] = True
    y, x = (axis[where] for axis in np.meshgrid(np.arange(9) - 4.0, np.arange(13) - 6.0, indexing="ij"))
    zero, one = np.zeros_like(x), np.ones_like(x)
    design = np.vstack([np.column_stack([-one, zero, -x, y]), np.column_stack([zero, -one, -y, -x])])
    expected = np.linalg.lstsq(design, np.concatenate([flow[where][:, 0], flow[where][:, 1]]))[0]
    assert apart(fit_camera(flow, where=where), CameraMotion(*expected.tolist()), 9, 13) < 1e-8


def test_forward_and_backward_together_are_the_fit_to_half_their_difference() -> None:
    rng = np.random.default_rng(1)
    forward, backward = rng.normal(0, 1, (8, 11, 2)), rng.normal(0, 1, (8, 11, 2))
    assert fit_camera(forward, backward) == fit_camera((forward - backward) / 2)


def test_pan_plus_one_moves_the_content_left_and_positive_zoom_shrinks() -> None:
    assert camera_field(CameraMotion(1, 0, 0, 0), 5, 5)[2, 2].tolist() == [-1.0, 0.0]
    assert camera_field(CameraMotion(0, 0, 0.1, 0), 5, 5)[2, 4].tolist() == [-0.2, 0.0]


@given(MOTIONS, st.floats(0.05, 0.33), st.floats(2, 8), st.floats(0, 2 * math.pi), st.integers(0, 2**32 - 1))
def test_an_instrument_over_a_third_of_the_view_does_not_move_the_robust_fit(
    motion: CameraMotion, share: float, speed: float, angle: float, seed: int
) -> None:
    height, width = 40, 60
    flow = camera_field(motion, height, width) + np.random.default_rng(seed).normal(0, 0.1, (height, width, 2))
    flow[:, : round(share * width)] += (speed * math.cos(angle), speed * math.sin(angle))
    fit = fit_camera_robust(flow)
    assert fit.converged
    assert apart(fit.motion, motion, height, width) < 0.1
    assert fit.share == pytest.approx(1 - round(share * width) / width, abs=0.03)
    assert fit.scale == pytest.approx(0.1, rel=0.6)


def test_the_plain_fit_is_biased_by_an_instrument_and_the_masked_one_is_not() -> None:
    truth = CameraMotion(P=1.0, T=0.5, Z=0.01, R=-0.01)
    flow = camera_field(truth, 36, 50)
    tool = np.zeros((36, 50), bool)
    tool[5:15, 5:20] = True
    flow[tool] += (4.0, -3.0)
    assert apart(fit_camera(flow), truth, 36, 50) > 0.2
    assert apart(fit_camera(flow, where=~tool), truth, 36, 50) < 1e-9


def test_a_large_field_is_fitted_on_a_lattice_and_a_sparse_mask_is_not_missed() -> None:
    truth = CameraMotion(P=1.0, T=-2.0, Z=0.002, R=0.003)
    flow = camera_field(truth, 300, 400)
    assert apart(fit_camera_robust(flow).motion, truth, 300, 400) < 1e-6
    between = np.zeros((300, 400), bool)
    between[1::2, 1::2] = True  # a lattice from the corner would meet none of these
    assert apart(fit_camera_robust(flow, where=between).motion, truth, 300, 400) < 1e-6


@pytest.mark.parametrize("pixels", [0, 1])
def test_fewer_than_two_pixels_are_no_fit(pixels: int) -> None:
    where = np.zeros((4, 4), bool)
    where[0, :pixels] = True
    for fit in (fit_camera, fit_camera_robust):
        with pytest.raises(BadInput, match=f"at least 2 pixels, not {pixels}"):
            fit(np.zeros((4, 4, 2)), where=where)


def test_two_pixels_are_enough() -> None:
    truth = CameraMotion(P=1.0, T=-2.0, Z=0.02, R=0.03)
    where = np.zeros((4, 4), bool)
    where[0, 0] = where[3, 1] = True
    assert apart(fit_camera(camera_field(truth, 4, 4), where=where), truth, 4, 4) < 1e-9


def test_values_that_are_not_finite_are_refused_where_they_are_used() -> None:
    flow = np.zeros((4, 4, 2))
    flow[0, 0] = (np.inf, np.nan)
    where = np.ones((4, 4), bool)
    with pytest.raises(BadInput, match="NaN or infinity"):
        fit_camera(flow)
    where[0, 0] = False
    assert fit_camera(flow, where=where) == CameraMotion(0.0, 0.0, 0.0, 0.0)


def test_shapes_that_do_not_fit_are_named() -> None:
    flow = np.zeros((4, 5, 2))
    with pytest.raises(BadInput, match=r"not \(2, 4, 5\)"):
        fit_camera(np.zeros((2, 4, 5)))
    with pytest.raises(BadInput, match="backward flow"):
        fit_camera(flow, flow[:3])
    with pytest.raises(BadInput, match="must be bool"):
        fit_camera(flow, where=np.ones((4, 5), np.uint8))
