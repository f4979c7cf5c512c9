"""What the colours of the pictures mean: for the page as keys, for a single picture as a band below it."""

from __future__ import annotations

import cv2
import numpy as np

from surgeval.arrays import Image
from surgeval.figures.image_overlay import draw_text, text_height
from surgeval.pages import LegendKey

__all__ = ["CYAN", "GREEN", "WHITE", "heat_colours", "legend_band", "picture_keys"]

GREEN, WHITE, CYAN = (70, 220, 90), (255, 255, 255), (60, 220, 255)
_UNSEEN = "darkened: cut off before the model sees the frame"
_HEAT = "heat: from least to most evidence for the {}"
_LINES = {"attended region": WHITE, "what moves": CYAN, "annotated boxes": GREEN}
_INK, _DARK = (30, 30, 30), (60, 70, 82)


def heat_colours(count: int) -> Image:
    """So many colours of the heatmap, least evidence first, as rows of RGB.

    >>> heat_colours(5).shape
    (5, 3)
    """
    levels = np.linspace(0, 255, count).astype(np.uint8)[:, None]
    colours: Image = cv2.cvtColor(cv2.applyColorMap(levels, cv2.COLORMAP_TURBO), cv2.COLOR_BGR2RGB)[:, 0]
    return colours


def picture_keys(*, motion: bool = True) -> tuple[LegendKey, ...]:
    """The keys of the gallery; `motion` says whether what moves is outlined."""
    lines = {text: colour for text, colour in _LINES.items() if motion or text != "what moves"}
    return (
        LegendKey(_HEAT.format("prompt"), tuple(_hex(colour) for colour in heat_colours(12).tolist())),
        *(LegendKey(f"line: {text}", (_hex(colour),)) for text, colour in lines.items()),
        LegendKey(_UNSEEN, ("#1b2027", "#1b2027")),
    )


def legend_band(width: int, size: int, subject: str = "prompt") -> Image:
    """A white band that explains an overlay: heat, outline, and what the model never saw; letters of `size`."""
    step, swatch = text_height(size) + size // 3, 6 * size
    band = np.full((3 * step + size // 2, width, 3), 255, dtype=np.uint8)
    rows = (_HEAT.format(subject), "white line: attended region", _UNSEEN)
    for number, text in enumerate(rows):
        top = size // 4 + number * step
        sample = band[top : top + size, size // 2 : size // 2 + swatch]
        if number == 0:
            sample[:] = heat_colours(sample.shape[1])[None]
        else:
            sample[:] = _DARK
        if number == 1:
            middle = size // 2
            sample[middle - 1 : middle + 1] = WHITE
        draw_text(band, text, (size + swatch, top), size, _INK)
    return band


def _hex(colour: list[int] | tuple[int, ...]) -> str:
    return "#" + "".join(f"{value:02x}" for value in colour)
