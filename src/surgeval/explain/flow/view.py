"""Where a laparoscopic frame shows anything: the scope's round field without the black around it.

The black stands still however the camera moves. Left in, it pulls a camera fit towards zero, and after camera
correction it looks like the fastest thing in the picture.
"""

from __future__ import annotations

import cv2
import numpy as np

from surgeval.arrays import Bools, Image
from surgeval.errors import BadInput

__all__ = ["round_field"]

_DARK = 20  # of 255, after blurring: black with sensor noise and coding noise
_LEAST_BLACK = 0.01  # of the frame: smaller dark corners are shadow
_LEAST_FIELD = 0.1  # of the frame: a smaller rest means a dark picture, not a ring


def round_field(image: Image, margin: float = 0.022) -> Bools:
    """Pixels inside the field and at least `margin` frame widths away from the black, as bool (H, W).

    Black is what is dark and connected to the frame's border. Flow within a patch of the black's edge is drawn
    towards standing still: hence the margin. A picture without black is all field.
    """
    if image.dtype != np.uint8 or image.ndim not in (2, 3) or not 0 <= margin < 0.5:
        found = f"{image.dtype} of shape {image.shape}, margin {margin}"
        raise BadInput(f"round field: found {found}, expected a uint8 picture and a margin below 0.5")
    grey = image if image.ndim == 2 else cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
    height, width = grey.shape
    dark = (cv2.blur(grey, (5, 5)) < _DARK).astype(np.uint8)
    count, labels, stats, _ = cv2.connectedComponentsWithStats(dark, connectivity=4)
    rim = np.concatenate([labels[0], labels[-1], labels[:, 0], labels[:, -1]])
    outside = np.zeros(count, bool)
    outside[rim] = True
    outside &= stats[:, cv2.CC_STAT_AREA] >= _LEAST_BLACK * height * width
    outside[0] = False  # what is not dark
    black = outside[labels]
    reach = round(margin * width)
    if reach and black.any():
        disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * reach + 1, 2 * reach + 1))
        black = cv2.dilate(black.astype(np.uint8), disc) > 0
    field: Bools = ~black
    return field if field.mean() >= _LEAST_FIELD else np.ones((height, width), bool)
