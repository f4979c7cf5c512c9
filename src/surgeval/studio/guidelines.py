"""Pictures beside the guidelines of a schema: image files in the project's folder `guidelines`, shown small.

The schema names a file of that folder, nothing else; what a page gets is a new picture of its pixels, never the file.
"""

from __future__ import annotations

from pathlib import Path

import cv2

from surgeval.datasets import image_size, read_image
from surgeval.errors import BadInput, DataError
from surgeval.files import leads_out, safe_name
from surgeval.records import ImageRef
from surgeval.studio.media import GUIDELINES
from surgeval.studio.pictures import EncodedPicture, encode_pixels

__all__ = ["guideline_picture"]

_LONGEST = 1200  # pixels of its longer side
_MOST_PIXELS = 1 << 24


def guideline_picture(folder: str | Path, name: str) -> EncodedPicture:
    """The picture of a guideline, by the file's name in the folder `guidelines` of a project.

    >>> import tempfile
    >>> from PIL import Image
    >>> with tempfile.TemporaryDirectory() as project:
    ...     (Path(project) / "guidelines").mkdir()
    ...     Image.new("RGB", (2400, 800)).save(f"{project}/guidelines/scissors.png")
    ...     guideline_picture(Path(project), "scissors.png").kind
    'image/jpeg'
    >>> guideline_picture(Path("videos"), "../secret.png")
    Traceback (most recent call last):
    surgeval.errors.BadInput: guideline_picture: found '../secret.png', expected the name of a file in guidelines
    """
    folder = Path(folder)
    path = folder / GUIDELINES / name
    if safe_name(name) != name or leads_out(path, folder):
        raise BadInput(f"guideline_picture: found {name[:80]!r}, expected the name of a file in {GUIDELINES}")
    width, height = image_size(path) or (0, 0)
    if width * height > _MOST_PIXELS:
        raise DataError(path, f"found {width} × {height} pixels, expected at most {_MOST_PIXELS}")
    pixels = read_image(ImageRef(path))
    height, width = pixels.shape[:2]
    if max(height, width) > _LONGEST:
        share = _LONGEST / max(height, width)
        size = max(round(width * share), 1), max(round(height * share), 1)
        pixels = cv2.resize(pixels, size, interpolation=cv2.INTER_AREA)
    return encode_pixels(pixels)
