"""Small pictures of a run's cases, kept in the run so that its page needs no dataset: `pictures.parquet`.

How many are kept is bounded (`PICTURES`), the wrong cases first; a case without one says so on the page. A run folder
may come from a stranger: a picture that is none, or too large, is left out with a note.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

import cv2
import numpy as np
import polars as pl

from surgeval.arrays import Image
from surgeval.errors import DataError
from surgeval.files import read_parquet_file, write_parquet_file
from surgeval.pages import jpeg_bytes

__all__ = ["PICTURES", "film_strip", "load_pictures", "save_pictures", "thumbnail"]

PICTURES = 120  # kept by default
_FILE = "pictures.parquet"
_WIDTH = 480  # pixels
_MOST, _BYTES, _SIDE = 20_000, 1 << 20, 4096
_SCHEMA = pl.Schema({"case": pl.String, "jpeg": pl.Binary})


def thumbnail(image: Image) -> bytes:
    """A frame as a small JPEG.

    >>> import numpy as np
    >>> thumbnail(np.zeros((1080, 1920, 3), np.uint8))[:3].hex()
    'ffd8ff'
    """
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
    path = Path(folder) / _FILE
    path.unlink(missing_ok=True)
    if not pictures:
        return
    table = pl.DataFrame({"case": list(pictures), "jpeg": list(pictures.values())}, schema=_SCHEMA)
    write_parquet_file(table, path)


def load_pictures(folder: str | Path) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """The pictures by case, and a note where what is stored cannot be used.

    >>> load_pictures(Path("no/such/run"))
    ({}, ())
    """
    path = Path(folder) / _FILE
    if not path.exists() and not path.is_symlink():
        return {}, ()
    try:
        if path.is_symlink():
            raise DataError(path, "found a link, expected the pictures of the run")
        table = read_parquet_file(path)
        if table.schema != _SCHEMA or table.height > _MOST or any(table.null_count().row(0)):
            raise DataError(path, f"found another table, expected at most {_MOST} cases with a picture each")
    except DataError as error:
        return {}, (f"{error}: the page has no pictures",)
    usable = {case: data for case, data in table.iter_rows() if _is_small_jpeg(data)}
    lost = table["case"].n_unique() - len(usable)
    return usable, (f"{path.name}: {lost} of {table.height} pictures are damaged and left out",) if lost else ()


def _is_small_jpeg(data: bytes) -> bool:
    from PIL import Image as Pillow

    if len(data) > _BYTES:
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of large pictures: refused below
            with Pillow.open(io.BytesIO(data), formats=["JPEG"]) as header:
                return max(header.size) <= _SIDE
    except (OSError, ValueError, SyntaxError, Pillow.DecompressionBombError):
        return False
