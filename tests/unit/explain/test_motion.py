"""The motion mask, and planted truth: the phantom's camera is recovered, and the mask finds where the work is done."""

from __future__ import annotations

import os
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import Once

from surgeval.datasets import open_dataset, read_image
from surgeval.errors import BadInput
from surgeval.explain.camera import camera_field
from surgeval.explain.flow import FlowPair
from surgeval.explain.motion import CameraChoice, MotionSettings, find_motion, motion_from_flow, motion_mask
from surgeval.phantom import write_phantom
from surgeval.records import Box, CameraMotion

# Few frames zoom fast. In short two operations whose camera moves much, by the script: of 80 frames 7 to 10 move by
# more than a pixel in each of P, T, Z and R.
FILMED: dict[str, Any] = (
    {"seed": 31, "videos": 18} if os.environ.get("SURGEVAL_LONG") else {"seed": 93, "videos": 2, "seconds": 40}
)
NOTHING = CameraMotion(0.0, 0.0, 0.0, 0.0)


def test_a_fifth_is_marked_where_everything_moves() -> None:
    found = motion_mask(np.arange(1.0, 101.0).reshape(10, 10))
    assert found.share == 0.2 and not found.still and not found.floored
    assert found.mask.ravel()[-20:].all()


def test_noise_below_the_floor_is_no_motion() -> None:
    quiet = np.random.default_rng(0).uniform(0, 0.2, (20, 20))
    found = motion_mask(quiet)
    assert found.still and found.floored and found.share == 0 and not found.mask.any()
    assert motion_mask(quiet, floor=0.0).share == pytest.approx(0.2)


def test_the_percentile_is_taken_in_the_evaluated_area_only() -> None:
    speed = np.ones((10, 10))
    speed[:5] = 9.0  # fast, and not looked at
    speed[9] = 2.0
    area = np.zeros((10, 10), bool)
    area[5:] = True
    found = motion_mask(speed, area=area)
    assert found.mask.sum() == 10 and found.mask[9].all() and found.share == 0.2


@given(st.integers(0, 2**32 - 1), st.floats(0.01, 1.0), st.floats(0, 3))
def test_a_higher_floor_or_a_smaller_share_never_adds_a_pixel(seed: int, keep: float, floor: float) -> None:
    speed = np.random.default_rng(seed).exponential(1.0, (12, 15))
    mask = motion_mask(speed, keep_top=keep, floor=floor).mask
    assert not (motion_mask(speed, keep_top=keep / 2, floor=floor).mask & ~mask).any()
    assert not (motion_mask(speed, keep_top=keep, floor=floor + 0.5).mask & ~mask).any()
    assert not mask.any() or (speed[~mask] < speed[mask].min()).all()


def test_what_cannot_be_masked_is_named() -> None:
    speed = np.ones((4, 4))
    for keep_top, floor, said in ((0.0, 0.0, "keep_top"), (1.2, 0.0, "keep_top"), (0.2, -1.0, "floor")):
        with pytest.raises(BadInput, match=said):
            motion_mask(speed, keep_top=keep_top, floor=floor)
    with pytest.raises(BadInput, match="no pixels"):
        motion_mask(speed, area=np.zeros((4, 4), bool))
    with pytest.raises(BadInput, match="NaN or infinity"):
        motion_mask(np.full((4, 4), np.nan))
    with pytest.raises(BadInput, match=r"'best'\. Use one of none, plain, masked, robust"):
        MotionSettings(camera="best")  # type: ignore[arg-type]


def test_only_the_instrument_is_left_when_the_camera_is_taken_away() -> None:
    truth = CameraMotion(P=2.0, T=-1.0, Z=0.01, R=0.02)
    forward = camera_field(truth, 60, 80).astype(np.float32)
    tool = np.zeros((60, 80), bool)
    tool[10:30, 10:40] = True
    forward[tool] += np.float32(1.5)
    pair = FlowPair(forward, -forward)
    for settings, known in ((MotionSettings(), None), (MotionSettings("masked"), tool)):
        np.testing.assert_array_equal(motion_from_flow(pair, settings, instruments=known).moving.mask, tool)
    plain = motion_from_flow(pair, MotionSettings("none"))
    assert plain.camera == NOTHING and (plain.moving.mask != tool).any()
    with pytest.raises(BadInput, match="needs an instrument mask"):
        motion_from_flow(pair, MotionSettings("masked"))
    with pytest.raises(BadInput, match="needs a backward flow"):
        motion_from_flow(FlowPair(forward, None))


# ── planted truth ───────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Seen:
    found: list[CameraMotion]
    truth: list[CameraMotion]
    cover: dict[CameraChoice, npt.NDArray[np.float64]]  # frames × (mask and region, mask, region and area, area)


def _inside(box: Box, shape: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    y, x = np.mgrid[: shape[0], : shape[1]] + 0.5
    x1, y1, x2, y2 = box.corners
    inside: npt.NDArray[np.bool_] = (x1 <= x) & (x < x2) & (y1 <= y) & (y < y2)
    return inside


@pytest.fixture(scope="module")
def phantom(once: Once) -> Seen:
    def make(out: Path) -> None:
        out.mkdir()
        (out / "seen.pickle").write_bytes(pickle.dumps(_seen(write_phantom(out / "phantom", processes=1, **FILMED))))

    seen: Seen = pickle.loads((once("camera", make) / "seen.pickle").read_bytes())
    return seen


def _seen(folder: Path) -> Seen:
    dataset = open_dataset(folder)
    found, truth = [], []
    cover: dict[CameraChoice, list[tuple[int, ...]]] = {"none": [], "robust": []}
    for video in dataset.videos():
        for frame in dataset.frames(video.name):
            if frame.image is None or frame.successor is None or frame.camera is None:
                continue
            motion = find_motion(read_image(frame.image), read_image(frame.successor))
            found.append(motion.camera)
            truth.append(frame.camera)
            if frame.region is None or motion.area is None:
                continue
            region = _inside(frame.region, motion.area.shape) & motion.area
            uncorrected = motion_from_flow(motion.flow, MotionSettings("none"), area=motion.area)
            for choice, mask in (("robust", motion.moving.mask), ("none", uncorrected.moving.mask)):
                counts = (int((mask & region).sum()), int(mask.sum()), int(region.sum()), int(motion.area.sum()))
                cover[choice].append(counts)  # type: ignore[index]
    return Seen(found, truth, {choice: np.array(rows, dtype=np.float64) for choice, rows in cover.items()})


@pytest.mark.parametrize("name", ["P", "T", "Z", "R"])
def test_the_phantom_camera_is_recovered(phantom: Seen, name: str) -> None:
    """Median over frames: within 5 % where the parameter moves the corner by 1 px, else within 0.05 px there."""
    reach = 1.0 if name in "PT" else float(np.hypot(447 / 2, 255 / 2))
    truth = reach * np.array([getattr(motion, name) for motion in phantom.truth])
    error = np.abs(reach * np.array([getattr(motion, name) for motion in phantom.found]) - truth)
    large = np.abs(truth) >= 1
    assert large.sum() >= 3 and (~large).sum() >= 50
    assert np.median(error[large] / np.abs(truth[large])) < 0.05
    assert np.median(error[~large]) < 0.05


def test_the_motion_mask_finds_the_work_better_than_chance_and_than_without_correction(phantom: Seen) -> None:
    share = {}
    for choice, (hit, marked, region, area) in ((c, rows.T) for c, rows in phantom.cover.items()):
        assert marked.size >= 50
        share[choice] = hit.sum() / marked.sum()
        assert share[choice] > (marked * region / area).sum() / marked.sum()
    assert share["robust"] > share["none"]
