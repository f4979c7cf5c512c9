"""From two frames to a motion mask in five panels: frame, flow, the camera's part, the rest, mask (Figure 2).

A picture and no chart. Colour is direction (see the wheel), strength is speed; the three flow panels share one scale,
so a pale panel is slow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surgeval.arrays import AnyFloats, Bools, Image
from surgeval.figures.image_overlay import draw_text, text_height
from surgeval.figures.theme import number, plain, require

_NAMES = ("frame", "flow", "camera", "flow − camera", "motion mask")
_MARK = np.array([0, 200, 120], dtype=np.float64)
_PANEL = 320  # pixels across
_GAP, _LETTERS = 8, 15


def flow_colours(flow: AnyFloats, top: float) -> Image:
    """Direction as hue, length as saturation (white is still, full at `top` px), as RGB.

    >>> flow_colours(np.zeros((1, 1, 2)), 1.0).tolist()
    [[[255, 255, 255]]]
    """
    import cv2

    u, v = flow[..., 0].astype(np.float32), flow[..., 1].astype(np.float32)
    hue = np.degrees(np.arctan2(v, u)).astype(np.float32) % np.float32(360)
    strength = np.clip(np.hypot(u, v) / np.float32(max(top, 1e-6)), 0, 1)
    rgb = cv2.cvtColor(np.dstack([hue, strength, np.ones_like(hue)]).astype(np.float32), cv2.COLOR_HSV2RGB)
    colours: Image = np.rint(255 * rgb).astype(np.uint8)
    return colours


@dataclass(frozen=True, slots=True, eq=False)
class FlowPipeline:
    """The way to a motion mask: arrays of one frame size, flows in pixels."""

    title: str
    frame: Image
    before: AnyFloats
    camera: AnyFloats
    after: AnyFloats
    mask: Bools

    def __post_init__(self) -> None:
        size = self.frame.shape[:2]
        flows = (self.before, self.camera, self.after)
        require(
            self.frame.dtype == np.uint8 and self.frame.shape == (*size, 3) and self.frame.size > 0
            and all(flow.shape == (*size, 2) for flow in flows) and self.mask.shape == size,
            f"Figure {self.title!r}: frame, three flows and mask must be of one size.",
        )  # fmt: skip
        require(all(np.isfinite(flow).all() for flow in flows), f"Figure {self.title!r}: flows must be finite.")

    @property
    def top(self) -> float:
        """The speed (px) at full colour: the 99th percentile of the flow before correction, at least half a pixel."""
        return max(float(np.quantile(np.hypot(self.before[..., 0], self.before[..., 1]), 0.99)), 0.5)

    @property
    def alt(self) -> str:
        """Mean speeds before and after, and how much is marked."""
        before, after = (float(np.hypot(f[..., 0], f[..., 1]).mean()) for f in (self.before, self.after))
        return (
            f"Five panels: {plain(self.title)}. Mean flow {number(before)} px, without the camera's part "
            f"{number(after)} px; {number(100 * float(self.mask.mean()))} % of the frame is marked as moving."
        )

    def panels(self) -> tuple[Image, ...]:
        """The five pictures, left to right."""
        marked = self.frame.astype(np.float64)
        marked[self.mask] = 0.45 * marked[self.mask] + 0.55 * _MARK
        fields = [flow_colours(flow, self.top) for flow in (self.before, self.camera, self.after)]
        return (self.frame, *fields, marked.astype(np.uint8))

    def draw(self) -> Image:
        """The panels side by side under their names, and the colour wheel with the speed at its rim."""
        import cv2

        height, width = self.mask.shape
        high = max(1, round(_PANEL * height / width))
        head, wheel = text_height(_LETTERS) + 6, min(high - 2, 96)
        sheet = np.full((head + high, 5 * (_PANEL + _GAP) + wheel + _GAP, 3), 255, np.uint8)
        for k, (name, panel) in enumerate(zip(_NAMES, self.panels(), strict=True)):
            left = k * (_PANEL + _GAP)
            way = cv2.INTER_AREA if width > _PANEL else cv2.INTER_LINEAR
            sheet[head:, left : left + _PANEL] = cv2.resize(panel, (_PANEL, high), interpolation=way)
            draw_text(sheet, name, (left + _PANEL // 2, 2), _LETTERS, anchor="ma")
        if wheel >= 8:
            left = 5 * (_PANEL + _GAP)
            sheet[head : head + wheel, left : left + wheel] = _wheel(wheel)
            draw_text(sheet, f"{self.top:.1f} px", (left + wheel // 2, 2), _LETTERS, anchor="ma")
        return sheet


def _wheel(side: int) -> Image:
    """The colours of all directions; speed grows outwards."""
    axis = np.linspace(-1, 1, side)
    x, y = np.meshgrid(axis, axis)
    colours = flow_colours(np.dstack([x, y]), 1.0)
    colours[np.hypot(x, y) > 1] = 255
    return colours
