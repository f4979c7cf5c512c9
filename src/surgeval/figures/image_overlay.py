"""Words, boxes, masks, maps and graphs on images, with Pillow: what is drawn on a frame and is no chart.

Texts are set in the DejaVu Sans of this package (Latin, Greek, Cyrillic, arrows and mathematical signs), so every
machine draws the same pixels; Pillow's own font has little more than ASCII.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from io import BytesIO
from typing import Literal, TypeAlias

import numpy as np
from PIL import Image as Picture
from PIL import ImageColor, ImageDraw, ImageFont

from surgeval.arrays import Bools, Floats, Image

Ink: TypeAlias = str | tuple[int, int, int]
Point: TypeAlias = tuple[float, float]
End: TypeAlias = Literal["arrow", "tail", "circle"]

_SMOOTH = 2  # lines are drawn so much larger and made smaller: Pillow's own have steps


@lru_cache(maxsize=64)
def load_font(size: int) -> ImageFont.FreeTypeFont:
    """The font for texts on images, of this height in pixels."""
    return ImageFont.truetype(BytesIO(_font_bytes()), size)


@lru_cache(maxsize=1)
def _font_bytes() -> bytes:
    return (files("surgeval.figures") / "fonts" / "DejaVuSans.ttf").read_bytes()


def text_width(text: str, size: int) -> int:
    """Pixels that a line takes."""
    return math.ceil(load_font(size).getlength(text))


def text_height(size: int) -> int:
    """Pixels from one line to the next."""
    return sum(load_font(size).getmetrics()) + 2


def draw_text(
    image: Image,
    text: str,
    at: tuple[int, int],
    size: int,
    ink: Ink = (0, 0, 0),
    *,
    anchor: str = "la",
    bold: bool = False,
) -> None:
    """Draw a line into the image; `anchor` is Pillow's and says which point of the text lies at x, y.

    >>> image = np.full((20, 60, 3), 255, np.uint8)
    >>> draw_text(image, "hook", (2, 2), 12)
    >>> bool((image < 128).any())
    True
    """
    font = load_font(size)
    x1, y1, x2, y2 = (math.floor(v) for v in font.getbbox(text, anchor=anchor, stroke_width=int(bold)))
    left, top = max(0, at[0] + x1 - 1), max(0, at[1] + y1 - 1)
    right, bottom = min(image.shape[1], at[0] + x2 + 2), min(image.shape[0], at[1] + y2 + 2)
    if right <= left or bottom <= top:
        return
    part = Picture.fromarray(image[top:bottom, left:right])
    place = (at[0] - left, at[1] - top)
    ImageDraw.Draw(part).text(place, text, fill=ink, font=font, anchor=anchor, stroke_width=0.4 if bold else 0)
    image[top:bottom, left:right] = np.asarray(part)


def text_plate(text: str, size: int, fill: Ink, ink: Ink, *, rim: int = 0, rim_ink: Ink = (16, 16, 16)) -> Image:
    """The text on a filled plate with a rim, to be pasted beside a box."""
    pad = max(2, size // 5)
    wide, high = text_width(text, size) + 2 * (pad + rim), round(1.25 * size) + 2 * rim
    plate = Picture.new("RGB", (wide, high), rim_ink)
    draw = ImageDraw.Draw(plate)
    draw.rectangle((rim, rim, wide - 1 - rim, high - 1 - rim), fill=fill)
    draw.text((rim + pad, high / 2), text, font=load_font(size), fill=ink, anchor="lm")
    return np.asarray(plate)


def heat_colours(values: Floats) -> Image:
    """A map of any range as colours from dark blue over green to dark red (turbo).

    >>> heat_colours(np.array([[0.0, 1.0]])).shape
    (1, 2, 3)
    """
    import cv2

    low, high = float(values.min()), float(values.max())
    grey = np.rint(255 * (values - low) / ((high - low) or 1.0)).astype(np.uint8)
    return np.asarray(cv2.cvtColor(cv2.applyColorMap(grey, cv2.COLORMAP_TURBO), cv2.COLOR_BGR2RGB))


def blend(image: Image, colours: Image, opacity: float, mask: Bools | None = None) -> Image:
    """The image with colours laid over it, everywhere or where the mask is set."""
    mixed = np.rint((1 - opacity) * image.astype(np.float64) + opacity * colours.astype(np.float64)).astype(np.uint8)
    return mixed if mask is None else np.where(mask[..., None], mixed, image)


class Sheet:
    """A canvas on which lines, discs, boxes and words are drawn in pixels with fractions, smoothly.

    >>> sheet = Sheet(40, 20)
    >>> sheet.line((2, 10), (38, 10), "#000000", 2)
    >>> sheet.image().shape
    (20, 40, 3)
    """

    def __init__(self, width: int, height: int, paper: Ink = "#ffffff") -> None:
        self._canvas = Picture.new("RGB", (_SMOOTH * width, _SMOOTH * height), paper)
        self._draw = ImageDraw.Draw(self._canvas)

    def paste(self, image: Image, left: float, top: float, width: float, height: float) -> None:
        """An image, stretched to this size."""
        size = (max(1, round(_SMOOTH * width)), max(1, round(_SMOOTH * height)))
        picture = Picture.fromarray(image).resize(size, Picture.Resampling.BILINEAR)
        self._canvas.paste(picture, (round(_SMOOTH * left), round(_SMOOTH * top)))

    def box(
        self, corners: tuple[float, float, float, float], *, fill: Ink | None = None, edge: Ink | None = None,
        width: float = 1, radius: float = 0,
    ) -> None:  # fmt: skip
        """A rectangle, filled or not."""
        self._draw.rounded_rectangle(_scaled(corners), _SMOOTH * radius, fill, edge, round(_SMOOTH * width))

    def line(self, a: Point, b: Point, ink: Ink, width: float = 1) -> None:
        """A straight line."""
        self._draw.line(_scaled((*a, *b)), ink, max(1, round(_SMOOTH * width)))

    def dashes(self, corners: tuple[float, float, float, float], ink: Ink, width: float = 1, dash: float = 4) -> None:
        """A dashed rectangle."""
        x1, y1, x2, y2 = corners
        for a, b in (((x1, y1), (x2, y1)), ((x2, y1), (x2, y2)), ((x2, y2), (x1, y2)), ((x1, y2), (x1, y1))):
            length = math.dist(a, b)
            for k in range(math.ceil(length / (1.7 * dash))):
                start, end = k * 1.7 * dash / length, min(1.0, (k * 1.7 + 1) * dash / length)
                self.line(_between(a, b, start), _between(a, b, end), ink, width)

    def disc(self, centre: Point, radius: float, fill: Ink, edge: Ink | None = None, width: float = 1) -> None:
        """A filled circle."""
        x, y = centre
        self._draw.ellipse(
            _scaled((x - radius, y - radius, x + radius, y + radius)), fill, edge, round(_SMOOTH * width)
        )

    def ring(self, centre: Point, radius: float, ink: Ink, width: float) -> None:
        """A circle."""
        x, y = centre
        self._draw.ellipse(_scaled((x - radius, y - radius, x + radius, y + radius)), None, ink, round(_SMOOTH * width))

    def arrow(
        self, a: Point, b: Point, ends: tuple[str, str], ink: Ink, rim: Ink, *, size: float = 6, gap: float = 5
    ) -> None:
        """An edge of a graph with its mark at each end: arrow, tail or circle."""
        length = math.dist(a, b)
        if length <= 2 * gap:
            return
        here, there = _between(a, b, gap / length), _between(b, a, gap / length)
        self.line(here, there, rim, 3)
        self.line(here, there, ink, 1.5)
        for tip, back, mark in ((here, there, ends[0]), (there, here, ends[1])):
            if mark == "arrow":
                self._head(tip, back, size, ink, rim)
            elif mark == "circle":
                self.disc(_between(tip, back, size / length), 0.45 * size, "#ffffff", rim, 1)

    def _head(self, tip: Point, back: Point, size: float, ink: Ink, rim: Ink) -> None:
        length = math.dist(tip, back) or 1.0
        x, y = (back[0] - tip[0]) / length, (back[1] - tip[1]) / length
        corners = [tip, (tip[0] + size * x - 0.5 * size * y, tip[1] + size * y + 0.5 * size * x),
                   (tip[0] + size * x + 0.5 * size * y, tip[1] + size * y - 0.5 * size * x)]  # fmt: skip
        self._draw.polygon([(_SMOOTH * px, _SMOOTH * py) for px, py in corners], ink, rim, _SMOOTH)

    def text(
        self, at: Point, text: str, size: int, ink: Ink = "#20262c", *, anchor: str = "la", bold: bool = False
    ) -> None:
        """A line of text; `anchor` is Pillow's."""
        font = load_font(_SMOOTH * size)
        place = (_SMOOTH * at[0], _SMOOTH * at[1])
        self._draw.text(place, text, font=font, fill=ink, anchor=anchor, stroke_width=0.35 * _SMOOTH if bold else 0)

    def label(self, centre: Point, text: str, size: int, fill: Ink, ink: Ink = "#20262c") -> None:
        """A text in a box with round corners."""
        x, y = centre
        half, high = text_width(text, size) / 2 + 0.4 * size, 0.75 * size
        self.box((x - half, y - high, x + half, y + high), fill=fill, edge=ink, width=1, radius=0.3 * size)
        self.text(centre, text, size, ink, anchor="mm")

    def image(self) -> Image:
        """The drawing as an RGB array."""
        size = (self._canvas.width // _SMOOTH, self._canvas.height // _SMOOTH)
        return np.asarray(self._canvas.resize(size, Picture.Resampling.LANCZOS))


def rgb(colour: Ink) -> tuple[int, int, int]:
    """A colour as three numbers.

    >>> rgb("#ff8000")
    (255, 128, 0)
    """
    red, green, blue = ImageColor.getrgb(colour)[:3] if isinstance(colour, str) else colour
    return red, green, blue


def _scaled(numbers: Sequence[float]) -> tuple[float, ...]:
    return tuple(_SMOOTH * value for value in numbers)


def _between(a: Point, b: Point, share: float) -> Point:
    return a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1])
