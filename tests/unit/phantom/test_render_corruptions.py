"""Corruptions: nothing at level 0, never milder at a higher level."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surgeval.errors import BadInput
from surgeval.phantom.scene.corruptions import KINDS, corrupt
from surgeval.phantom.scene.looks import LOOKS
from surgeval.phantom.scene.render import Renderer
from surgeval.phantom.script.anatomy import build_anatomy
from surgeval.phantom.script.state import CameraPose, Corruption, SceneState


@pytest.fixture(scope="module")
def frame() -> npt.NDArray[np.uint8]:
    return Renderer(LOOKS["A"], build_anatomy(1)).render(SceneState(0.0, "x", CameraPose())).image


def test_all_eight_kinds_exist() -> None:
    assert set(KINDS) == {"blur", "smoke", "low_light", "dirt", "blood", "vignette", "overexposure", "noise"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [0, 7])
def test_severity_rises_with_the_level_from_nothing(frame: npt.NDArray[np.uint8], kind: str, seed: int) -> None:
    damage = [np.abs(corrupt(frame, Corruption(kind, level), seed).astype(int) - frame).mean() for level in range(6)]
    assert damage[0] == 0
    assert all(lower < higher for lower, higher in itertools.pairwise(damage)), damage


@pytest.mark.parametrize("kind", KINDS)
def test_a_corruption_is_repeatable_and_leaves_its_input_alone(frame: npt.NDArray[np.uint8], kind: str) -> None:
    original = frame.copy()
    first, second = (corrupt(frame, Corruption(kind, 3), 5) for _ in range(2))
    assert np.array_equal(first, second) and np.array_equal(frame, original)
    assert first.dtype == np.uint8 and first.shape == frame.shape


@pytest.mark.parametrize("kind", ["smoke", "low_light", "dirt", "blood", "vignette", "overexposure"])
def test_the_black_surround_stays_black(frame: npt.NDArray[np.uint8], kind: str) -> None:
    assert corrupt(frame, Corruption(kind, 5), 3)[:, :20].mean() < 20


@settings(max_examples=12, deadline=None)
@given(kind=st.sampled_from(KINDS), level=st.integers(0, 5), seed=st.integers(-5, 2**70), size=st.integers(24, 90))
def test_any_seed_and_size_gives_a_picture(kind: str, level: int, seed: int, size: int) -> None:
    image = np.full((size, size + 7, 3), 90, np.uint8)
    assert corrupt(image, Corruption(kind, level), seed).shape == image.shape


def test_unknown_kinds_levels_and_images_are_refused(frame: npt.NDArray[np.uint8]) -> None:
    with pytest.raises(BadInput, match="low_light"):
        corrupt(frame, Corruption("fog", 1), 0)
    with pytest.raises(BadInput, match="0 to 5"):
        corrupt(frame, Corruption("blur", 6), 0)
    with pytest.raises(BadInput, match="8-bit RGB"):
        corrupt(frame[..., 0], Corruption("blur", 1), 0)
