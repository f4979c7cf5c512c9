from __future__ import annotations

from collections.abc import Callable

import cv2
import numpy as np
import numpy.typing as npt
import pytest

from surgeval.datasets import QualityLimits, frame_quality, propose_drops

Picture = npt.NDArray[np.uint8]


def scene(seed: int) -> Picture:
    """Red tissue with texture and a few highlights in a round field."""
    rng = np.random.default_rng(seed)
    coarse = cv2.resize(rng.random((12, 20)).astype(np.float32), (448, 256), interpolation=cv2.INTER_CUBIC)
    fine = cv2.resize(rng.random((90, 150)).astype(np.float32), (448, 256), interpolation=cv2.INTER_LINEAR)
    light = 0.55 + 0.3 * coarse + 0.3 * (fine - 0.5)
    image = np.clip(light[..., None] * np.array([215, 95, 80]), 0, 255)
    image[rng.random((256, 448)) > 0.999] = 255
    y, x = np.mgrid[:256, :448]
    image[(x - 224) ** 2 + (y - 128) ** 2 > 125**2] = 4
    return np.asarray(image, dtype=np.uint8)


def grey(image: Picture) -> Picture:
    return np.repeat(image.mean(axis=2, keepdims=True), 3, axis=2).astype(np.uint8)


def tinted(colour: tuple[int, int, int]) -> Callable[[Picture], Picture]:
    return lambda image: (grey(image) / 255 * np.array(colour)).astype(np.uint8)


DAMAGE: list[tuple[str, Callable[[Picture], Picture]]] = [
    ("black", np.zeros_like),
    ("black", lambda image: (image * 0.1).astype(np.uint8)),
    ("blurred", lambda image: cv2.GaussianBlur(image, (0, 0), 8)),
    ("blurred", lambda image: cv2.blur(image, (31, 31))),
    ("out of body", tinted((40, 90, 200))),
    ("out of body", tinted((60, 200, 110))),
    ("out of body", grey),
    ("too bright", lambda image: np.clip(image.astype(int) * 2 + 170, 0, 255).astype(np.uint8)),
    ("too dark", lambda image: np.where(np.arange(448)[None, :, None] < 285, image // 12, image).astype(np.uint8)),
]


def test_ordinary_frames_are_left_alone() -> None:
    assert propose_drops([frame_quality(scene(n), "v", str(n)) for n in range(20)]) == ()


@pytest.mark.parametrize(("reason", "damage"), DAMAGE)
@pytest.mark.parametrize("seed", [3, 4])
def test_every_kind_of_useless_frame_is_proposed(reason: str, damage: Callable[[Picture], Picture], seed: int) -> None:
    rows = [frame_quality(scene(n), "v", f"{n}") for n in range(9)]
    rows.append(frame_quality(damage(scene(seed)), "v", "bad"))
    (proposal,) = propose_drops(rows)
    assert (proposal.name, proposal.reason) == ("bad", reason)


def test_each_proposal_says_the_measure_and_the_limit() -> None:
    (proposal,) = propose_drops([frame_quality(np.zeros((90, 160, 3), np.uint8), "v", "000001")])
    assert str(proposal) == "v 000001: black: brightness 0 is below 30"


def test_blur_is_judged_within_the_video_and_not_among_a_few_frames() -> None:
    sharp = [frame_quality(scene(n), "sharp", str(n)) for n in range(9)]
    soft = [frame_quality(cv2.GaussianBlur(scene(n), (0, 0), 8), "soft", str(n)) for n in range(9)]
    assert propose_drops([*sharp, *soft]) == ()
    assert propose_drops([*sharp[:3], frame_quality(cv2.GaussianBlur(scene(1), (0, 0), 8), "sharp", "x")]) == ()


def test_limits_are_parameters() -> None:
    rows = [frame_quality(scene(n), "v", str(n)) for n in range(5)]
    assert len(propose_drops(rows, QualityLimits(black=256))) == 5
    dark = frame_quality(np.zeros((90, 160, 3), np.uint8))
    assert propose_drops([dark], QualityLimits(black=0, dark=1, tissue=0)) == ()


def test_sharpness_does_not_depend_on_resolution() -> None:
    image = scene(1)
    large = cv2.resize(image, None, fx=3, fy=3, interpolation=cv2.INTER_CUBIC)
    ratio = frame_quality(large).sharpness / frame_quality(image).sharpness
    assert 0.7 < ratio < 1.4


@pytest.mark.parametrize("shape", [(1, 1, 3), (2, 500, 3), (500, 2, 3), (16, 16, 3)])
def test_tiny_pictures_are_measured_too(shape: tuple[int, int, int]) -> None:
    assert frame_quality(np.full(shape, 90, np.uint8)).brightness == 90
