"""A scene's pictures as a chat model is shown them: at most so many, evenly spaced, as JPEG data URLs."""

from __future__ import annotations

import base64
from pathlib import Path

import cv2
import numpy as np

from surgeval.datasets import read_image, video_index
from surgeval.datasets.io import SUFFIXES
from surgeval.errors import BadInput
from surgeval.records import ImageRef

__all__ = ["picture_parts"]

_JPEG_QUALITY = 90


def picture_parts(
    folder: Path, media: tuple[str, ...], window: tuple[float | None, float | None], *, most: int, longest_edge: int
) -> list[dict[str, object]]:
    """The message parts that hold the pictures of a scene, in their order."""
    refs = [ref for name in media for ref in _frames(folder / name, window, most)]
    spread = sorted({round(k) for k in np.linspace(0, len(refs) - 1, min(most, len(refs)))}) if refs else []
    return [_part(refs[number], longest_edge) for number in spread]


def _frames(path: Path, window: tuple[float | None, float | None], most: int) -> list[ImageRef]:
    if path.suffix.casefold() not in SUFFIXES:
        return [ImageRef(path)]
    times = video_index(path).times
    start, end = window
    inside = np.flatnonzero((times >= (start or 0.0) - 1e-6) & (times <= (np.inf if end is None else end) + 1e-6))
    if not inside.size:
        raise BadInput(f"{path}: found no frame from {start or 0:g} s on, expected the clip of a record")
    return [ImageRef(path, int(inside[round(k)])) for k in np.linspace(0, len(inside) - 1, min(most, len(inside)))]


def _part(ref: ImageRef, longest_edge: int) -> dict[str, object]:
    image = read_image(ref)
    scale = longest_edge / max(image.shape[:2])
    if scale < 1:
        size = max(1, round(image.shape[1] * scale)), max(1, round(image.shape[0] * scale))
        image = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    coded = cv2.imencode(".jpg", image[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, _JPEG_QUALITY])[1]
    url = f"data:image/jpeg;base64,{base64.b64encode(coded.tobytes()).decode()}"
    return {"type": "image_url", "image_url": {"url": url}}
