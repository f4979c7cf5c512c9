"""Small pictures of a run's cases, kept in the run so that its page needs no dataset: `pictures.parquet`.

How many are kept is bounded (`PICTURES`), the wrong cases first; a case without one says so on the page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import cv2
import numpy as np
import polars as pl
from pydantic import Field

from surgeval.arrays import Image
from surgeval.errors import DataError
from surgeval.files import StoredTable

__all__ = ["PICTURES", "film_strip", "load_pictures", "save_pictures", "thumbnail"]

PICTURES = 120  # kept by default
_WIDTH = 480  # pixels


class PictureRow(StoredTable, name="pictures.parquet", most=20_000):
    """A small JPEG of a case."""

    case: str
    jpeg: Annotated[bytes, Field(max_length=1 << 20)]


def thumbnail(image: Image) -> bytes:
    """A frame as a small JPEG.

    >>> import numpy as np
    >>> thumbnail(np.zeros((1080, 1920, 3), np.uint8))[:3].hex()
    'ffd8ff'
    """
    from surgeval.pages import jpeg_bytes

    height, width = image.shape[:2]
    scale = min(1.0, _WIDTH / width, _WIDTH / height)
    size = max(1, round(width * scale)), max(1, round(height * scale))
    small = image if scale == 1 else cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    return jpeg_bytes(small)


def film_strip(frames: Sequence[bytes]) -> bytes | None:
    """JPEG frames beside each other, as one small JPEG; None where there are none.

    >>> frame = thumbnail(np.zeros((20, 30, 3), np.uint8))
    >>> film_strip([frame, frame])[:3].hex(), film_strip([])
    ('ffd8ff', None)
    """
    decoded = (cv2.imdecode(np.frombuffer(frame, np.uint8), cv2.IMREAD_COLOR) for frame in frames)
    images = [image for image in decoded if image is not None]
    if not images:
        return None
    low = min(image.shape[0] for image in images)
    level = [cv2.resize(image, (max(1, image.shape[1] * low // image.shape[0]), low)) for image in images]
    return thumbnail(np.hstack(level)[..., ::-1].astype(np.uint8))


def save_pictures(folder: str | Path, pictures: Mapping[str, bytes]) -> None:
    """Store JPEG files by case, in place of those that were stored before."""
    (Path(folder) / PictureRow.file_name).unlink(missing_ok=True)
    if pictures:
        PictureRow.save(pl.DataFrame({"case": list(pictures), "jpeg": list(pictures.values())}), folder)


def load_pictures(folder: str | Path) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """The pictures by case, and a note where what is stored cannot be used.

    >>> load_pictures(Path("no/such/run"))
    ({}, ())
    """
    if not (Path(folder) / PictureRow.file_name).exists():
        return {}, ()
    try:
        return dict(PictureRow.load(folder).iter_rows()), ()
    except DataError as error:
        return {}, (f"{error}: the page has no pictures",)
