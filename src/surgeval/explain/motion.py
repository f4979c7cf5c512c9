"""The motion mask: what moves in the scene after the camera's motion is subtracted (SurgXBench, Figure 2).

A percentile alone marks a fifth of every image, also of one in which nothing moves; the absolute floor is the smallest
motion that counts. If nothing moves that fast, the mask is flagged `still`.

Black around the scope's round field stands still however the camera moves. It would pull the camera fit towards zero
and look like the fastest motion afterwards, so it is excluded (`round_field`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import cv2
import numpy as np

from surgeval.arrays import AnyFloats, Bools, Image
from surgeval.errors import BadInput
from surgeval.explain.camera import corrected_flow, fit_camera, fit_camera_robust
from surgeval.explain.flow import DisFlow, FlowMethod, FlowPair
from surgeval.records import CameraMotion

__all__ = [
    "FLOOR",
    "CameraChoice",
    "Motion",
    "MotionMask",
    "MotionSettings",
    "find_motion",
    "flow_magnitude",
    "motion_from_flow",
    "motion_mask",
    "round_field",
]

FLOOR = 0.25  # px between frames 1/25 s apart: nine of ten pixels of still tissue stay below (docs/motion.md)
_DARK = 20  # of 255, after blurring: black with sensor noise and coding noise
_LEAST_BLACK = 0.01  # of the frame: smaller dark corners are shadow
_LEAST_FIELD = 0.1  # of the frame: a smaller field means a dark image, not a ring
CameraChoice = Literal["none", "plain", "masked", "robust"]


@dataclass(frozen=True, slots=True)
class MotionSettings:
    """How camera motion is fitted and what counts as motion; `camera="none"` does not correct the flow."""

    camera: CameraChoice = "robust"
    use_backward: bool = True
    keep_top: float = 0.2
    floor: float = FLOOR
    field_only: bool = True  # exclude the black around the scope's round field

    def __post_init__(self) -> None:
        if self.camera not in get_args(CameraChoice):
            raise BadInput(f"Unknown camera fit {self.camera!r}. Use one of {', '.join(get_args(CameraChoice))}.")
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

    `still`: nothing reaches the floor, so the mask is empty. `floored`: the threshold is the floor, not the percentile.
    """

    mask: Bools
    threshold: float
    share: float  # of the evaluated area
    still: bool
    floored: bool


@dataclass(frozen=True, slots=True, eq=False)
class Motion:
    """The motion mask of two frames and the intermediate results."""

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
    """The pixels that are among the fastest `keep_top` of the evaluated area and move at least `floor` px.

    The percentile is numpy's (linear interpolation) in float64. Ties with it belong to the mask, so `share` may exceed
    `keep_top`.

    >>> motion_mask(np.array([[0.0, 0.1], [0.1, 3.0]])).mask.tolist()
    [[False, False], [False, True]]
    >>> motion_mask(np.zeros((2, 2))).still
    True
    """
    _check_mask_options(keep_top, floor)
    if magnitude.ndim != 2 or not magnitude.size:
        raise BadInput(f"A motion magnitude must have the shape (height, width), not {magnitude.shape}.")
    if area is not None and (area.shape != magnitude.shape or area.dtype != np.bool_):
        found = f"{area.dtype} of shape {area.shape}"
        raise BadInput(f"The evaluated area must be bool of shape {magnitude.shape}, not {found}.")
    values = (magnitude if area is None else magnitude[area]).astype(np.float64).ravel()
    if not values.size:
        raise BadInput("The evaluated area has no pixels.")
    if not np.isfinite(values).all():
        raise BadInput("The motion magnitude contains NaN or infinity.")
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

    `instruments` are pixels that a `masked` fit excludes, and a `robust` one too if they are given.

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
    """Camera motion and motion mask of a given flow.

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
            raise BadInput("The camera fit needs a backward flow. Give one, or use_backward=False.")
        backward = pair.backward
    if settings.camera == "plain":
        return fit_camera(pair.forward, backward, where=area)
    if instruments is None and settings.camera == "masked":
        raise BadInput("A masked camera fit needs an instrument mask. Give one, or use the robust fit.")
    where = area
    if instruments is not None:
        if instruments.shape != pair.forward.shape[:2] or instruments.dtype != np.bool_:
            found = f"{instruments.dtype} of shape {instruments.shape}"
            raise BadInput(f"The instrument mask must be bool of shape {pair.forward.shape[:2]}, not {found}.")
        where = ~instruments if area is None else area & ~instruments
    if settings.camera == "masked":
        return fit_camera(pair.forward, backward, where=where)
    return fit_camera_robust(pair.forward, backward, where=where).motion


def _check_mask_options(keep_top: float, floor: float) -> None:
    if not 0 < keep_top <= 1:
        raise BadInput(f"keep_top must be above 0 and at most 1, not {keep_top}.")
    if not (math.isfinite(floor) and floor >= 0):
        raise BadInput(f"The motion floor must be a finite number of pixels, at least 0, not {floor}.")


def round_field(image: Image, margin: float = 0.022) -> Bools:
    """Pixels inside the scope's field and at least `margin` frame widths from the black around it, bool (H, W).

    Black are dark pixels connected to the frame's border. Near its edge, flow is biased towards zero, hence the margin.
    An image without black is all field.
    """
    if image.dtype != np.uint8 or image.ndim not in (2, 3) or not 0 <= margin < 0.5:
        found = f"{image.dtype} of shape {image.shape}, margin {margin}"
        raise BadInput(f"round_field needs a uint8 image and a margin from 0 to 0.5, not {found}.")
    grey = image if image.ndim == 2 else cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
    height, width = grey.shape
    dark = (cv2.blur(grey, (5, 5)) < _DARK).astype(np.uint8)
    count, labels, stats, _ = cv2.connectedComponentsWithStats(dark, connectivity=4)
    rim = np.concatenate([labels[0], labels[-1], labels[:, 0], labels[:, -1]])
    outside = np.zeros(count, bool)
    outside[rim] = True
    outside &= stats[:, cv2.CC_STAT_AREA] >= _LEAST_BLACK * height * width
    outside[0] = False  # the label of pixels that are not dark
    black = outside[labels]
    reach = round(margin * width)
    if reach and black.any():
        disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * reach + 1, 2 * reach + 1))
        black = cv2.dilate(black.astype(np.uint8), disc) > 0
    field: Bools = ~black
    return field if field.mean() >= _LEAST_FIELD else np.ones((height, width), bool)
