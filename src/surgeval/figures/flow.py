"""From two frames to a motion mask in five panels: frame, flow, the camera's part, the rest, mask (Fig. 2).

Colour is direction (see the wheel), strength is speed; the three flow panels share one scale, so a pale panel is slow.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from surgeval.arrays import AnyFloats, Bools, Image
from surgeval.figures.base import require
from surgeval.figures.labels import literal, number, plain
from surgeval.figures.print import drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure


_NAMES = ("frame", "flow", "camera", "flow − camera", "motion mask")
_MARK = np.array([0, 200, 120], dtype=np.float64)


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
            f"figure {self.title!r}: expected a frame, three flows and a mask of one size",
        )  # fmt: skip
        require(all(np.isfinite(flow).all() for flow in flows), f"figure {self.title!r}: expected finite flows")

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

    def to_plotly(self) -> dict[str, Any]:
        """Five pictures side by side, embedded as PNG; the wheel is in the corner of the second."""
        height, width = self.mask.shape
        pictures = list(self.panels())
        pictures[1] = _with_wheel(pictures[1])
        # Not traces of kind "image": plotly.js gives those a style attribute, which the page's policy refuses.
        images = [
            {"source": _png(panel), "xref": "x", "yref": "y", "x": k * width * 1.04, "y": 0, "sizex": width,
             "sizey": height, "sizing": "stretch", "yanchor": "top", "layer": "above"}
            for k, panel in enumerate(pictures)
        ]  # fmt: skip
        nothing = {"type": "scatter", "hoverinfo": "skip", "showlegend": False}
        notes = [
            {"text": literal(name), "x": (k * 1.04 + 0.5) * width, "y": 0, "yshift": 12, "showarrow": False}
            for k, name in enumerate(_NAMES)
        ]
        hidden = {"visible": False, "fixedrange": True}
        xaxis = hidden | {"range": [0, 5.16 * width], "constrain": "domain"}
        yaxis = hidden | {"range": [height, -0.12 * height], "scaleanchor": "x"}
        layout = {"xaxis": xaxis, "yaxis": yaxis, "images": images, "annotations": notes, "height": 220}
        return {"data": [nothing], "layout": layout}

    def to_matplotlib(self) -> MatplotlibFigure:
        """The same for print, with the wheel and its scale."""
        height, width = self.mask.shape
        panel = 2.0
        with drawing(self.title, 5 * panel + 1.2, panel * height / width + 0.75) as (figure, axes):
            axes.set_axis_off()
            each = panel / (5 * panel + 1.2)
            for k, (name, picture) in enumerate(zip(_NAMES, self.panels(), strict=True)):
                inset = axes.inset_axes((k * each * 1.02, 0.0, each, 0.86))
                inset.imshow(picture, interpolation="none")
                inset.set_title(name, fontsize=8)
                inset.set_axis_off()
            wheel = axes.inset_axes((5 * each * 1.02, 0.1, 1 - 5 * each * 1.02, 0.66))
            wheel.imshow(_wheel(96), interpolation="none")
            wheel.set_title(f"{self.top:.1f} px", fontsize=7)
            wheel.set_axis_off()
        return figure


def _wheel(side: int) -> Image:
    """The colours of all directions; speed grows outwards."""
    axis = np.linspace(-1, 1, side)
    x, y = np.meshgrid(axis, axis)
    colours = flow_colours(np.dstack([x, y]), 1.0)
    colours[np.hypot(x, y) > 1] = 255
    return colours


def _with_wheel(panel: Image) -> Image:
    side = min(panel.shape[:2]) // 4
    if side < 8:
        return panel
    panel = panel.copy()
    panel[-side:, -side:] = _wheel(side)
    return panel


def _png(picture: Image) -> str:
    import cv2

    _, data = cv2.imencode(".png", cv2.cvtColor(picture, cv2.COLOR_RGB2BGR))
    return "data:image/png;base64," + base64.b64encode(data.tobytes()).decode()
