"""The motion mask: what moves in the scene once the camera's own motion is taken away (SurgXBench, Figure 2).

A percentile alone marks a fifth of every picture, also of one in which nothing moves; the absolute floor says how much
motion is motion. A mask that nothing passes is flagged `still`, never silently empty.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from surgeval.arrays import AnyFloats, Bools, Image
from surgeval.errors import BadInput
from surgeval.explain.camera import corrected_flow, fit_camera, fit_camera_robust
from surgeval.explain.flow import DisFlow, FlowMethod, FlowPair
from surgeval.explain.flow.view import round_field
from surgeval.records import CameraMotion

__all__ = ["FLOOR", "CameraChoice", "Motion", "MotionMask", "MotionSettings", "find_motion", "flow_magnitude",
           "motion_from_flow", "motion_mask"]  # fmt: skip

FLOOR = 0.25  # px between frames 1/25 s apart: nine of ten pixels of still tissue stay below (docs/motion.md)
CameraChoice = Literal["none", "plain", "masked", "robust"]


@dataclass(frozen=True, slots=True)
class MotionSettings:
    """How camera motion is fitted and what counts as motion; `camera="none"` leaves the flow as it is."""

    camera: CameraChoice = "robust"
    use_backward: bool = True
    keep_top: float = 0.2
    floor: float = FLOOR
    field_only: bool = True  # leave out the black around the scope's round field

    def __post_init__(self) -> None:
        if self.camera not in get_args(CameraChoice):
            raise BadInput(f"camera fit: found {self.camera!r}, expected one of {', '.join(get_args(CameraChoice))}")
        _check_mask_options(self.keep_top, self.floor)

    def record(self) -> Mapping[str, object]:
        """The settings, for run.json."""
        return {
            "camera_fit": self.camera, "use_backward": self.use_backward, "motion_keep_top": self.keep_top,
            "motion_floor_px": self.floor, "field_only": self.field_only,
        }  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class MotionMask:
    """The moving pixels.

    `still`: nothing reaches the floor, the mask is empty. `floored`: the floor, not the percentile, set the threshold.
    """

    mask: Bools
    threshold: float
    share: float  # of the evaluated area
    still: bool
    floored: bool


@dataclass(frozen=True, slots=True, eq=False)
class Motion:
    """Everything on the way from two frames to a motion mask."""

    flow: FlowPair
    camera: CameraMotion
    corrected: AnyFloats
    magnitude: AnyFloats
    moving: MotionMask
    area: Bools | None  # evaluated pixels; None is the whole frame


def flow_magnitude(flow: AnyFloats) -> AnyFloats:
    """The length of every flow vector, (H, W).

    >>> flow_magnitude(np.array([[[3.0, 4.0], [0.0, 0.0]]])).tolist()
    [[5.0, 0.0]]
    """
    length: AnyFloats = np.hypot(flow[..., 0], flow[..., 1])
    return length


def motion_mask(
    magnitude: AnyFloats, *, keep_top: float = 0.2, floor: float = FLOOR, area: Bools | None = None
) -> MotionMask:
    """Pixels among the fastest `keep_top` of the evaluated area, and at least `floor` px fast.

    The percentile is numpy's (linear interpolation) in float64; ties with it belong to the mask, so more than
    `keep_top` may be marked: read `share`.

    >>> motion_mask(np.array([[0.0, 0.1], [0.1, 3.0]])).mask.tolist()
    [[False, False], [False, True]]
    >>> motion_mask(np.zeros((2, 2))).still
    True
    """
    _check_mask_options(keep_top, floor)
    if magnitude.ndim != 2 or not magnitude.size:
        raise BadInput(f"motion magnitude: found shape {magnitude.shape}, expected (height, width)")
    if area is not None and (area.shape != magnitude.shape or area.dtype != np.bool_):
        found = f"{area.dtype} of shape {area.shape}"
        raise BadInput(f"evaluated area: found {found}, expected bool of shape {magnitude.shape}")
    values = (magnitude if area is None else magnitude[area]).astype(np.float64).ravel()
    if not values.size:
        raise BadInput("evaluated area: found no pixel, expected at least one")
    if not np.isfinite(values).all():
        raise BadInput("motion magnitude: found values that are not finite, expected pixels per frame")
    fast = float(np.quantile(values, 1.0 - keep_top))
    threshold = max(fast, floor)
    mask = magnitude >= threshold
    if area is not None:
        mask &= area
    count = int(mask.sum())
    return MotionMask(mask, threshold, count / values.size, still=count == 0, floored=floor > fast)


def find_motion(
    a: Image, b: Image, method: FlowMethod | None = None, settings: MotionSettings | None = None, *,
    instruments: Bools | None = None, key: str = "",
) -> Motion:  # fmt: skip
    """Flow, camera motion and motion mask of frame `a` towards `b`.

    `instruments` are pixels that a `masked` fit leaves out (and a `robust` one, where they are known).

    >>> import cv2
    >>> still = cv2.GaussianBlur(np.random.default_rng(0).integers(0, 255, (96, 96), np.uint8), (0, 0), 2.0)
    >>> moved = still.copy(); moved[30:60, 30:60] = still[30:60, 24:54]  # a square moves six pixels to the right
    >>> motion = find_motion(still, moved)
    >>> bool(motion.moving.mask[45, 45]), bool(motion.moving.mask[5, 5])
    (True, False)
    """
    settings = settings or MotionSettings()
    pair = (method or DisFlow()).pair(a, b, key=key, backward=settings.use_backward)
    area = round_field(a) if settings.field_only else None
    return motion_from_flow(pair, settings, area=area, instruments=instruments)


def motion_from_flow(
    pair: FlowPair, settings: MotionSettings | None = None, *, area: Bools | None = None,
    instruments: Bools | None = None,
) -> Motion:  # fmt: skip
    """The same from a flow that is at hand.

    >>> flow = np.zeros((8, 10, 2)); flow[..., 0] = -2.0; flow[2:4, 3:6] = [9.0, 5.0]  # an instrument in a panning view
    >>> motion = motion_from_flow(FlowPair(flow, None), MotionSettings(use_backward=False))
    >>> round(motion.camera.P, 2), int(motion.moving.mask.sum())
    (2.0, 6)
    """
    settings = settings or MotionSettings()
    camera = _camera(pair, settings, area, instruments)
    corrected = corrected_flow(pair.forward, camera)
    magnitude = flow_magnitude(corrected)
    moving = motion_mask(magnitude, keep_top=settings.keep_top, floor=settings.floor, area=area)
    return Motion(pair, camera, corrected, magnitude, moving, area)


def _camera(pair: FlowPair, settings: MotionSettings, area: Bools | None, instruments: Bools | None) -> CameraMotion:
    if settings.camera == "none":
        return CameraMotion(0.0, 0.0, 0.0, 0.0)
    backward = None
    if settings.use_backward:
        if pair.backward is None:
            raise BadInput("camera fit: found no backward flow, expected it or use_backward=False")
        backward = pair.backward
    if settings.camera == "plain":
        return fit_camera(pair.forward, backward, where=area)
    if instruments is None and settings.camera == "masked":
        raise BadInput(
            "masked camera fit: found no instrument mask, expected one (or the robust fit, which needs none)"
        )
    where = area
    if instruments is not None:
        if instruments.shape != pair.forward.shape[:2] or instruments.dtype != np.bool_:
            found = f"{instruments.dtype} of shape {instruments.shape}"
            raise BadInput(f"instrument mask: found {found}, expected bool of shape {pair.forward.shape[:2]}")
        where = ~instruments if area is None else area & ~instruments
    if settings.camera == "masked":
        return fit_camera(pair.forward, backward, where=where)
    return fit_camera_robust(pair.forward, backward, where=where).motion


def _check_mask_options(keep_top: float, floor: float) -> None:
    if not 0 < keep_top <= 1:
        raise BadInput(f"keep_top: found {keep_top}, expected a share above 0 and at most 1")
    if not (math.isfinite(floor) and floor >= 0):
        raise BadInput(f"motion floor: found {floor}, expected a finite number of pixels, at least 0")
