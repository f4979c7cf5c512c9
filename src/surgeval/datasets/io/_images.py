"""Pixels: `read_image` turns an `ImageRef` into an RGB array, whether it names an image file or a frame of a video.

Image files are decoded by Pillow because it says when a file is cut off (OpenCV fills the rest with grey). A rotation
tag (EXIF) is ignored: boxes refer to the pixels as they are stored.
"""

from __future__ import annotations

import struct
import warnings
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image, UnidentifiedImageError

from surgeval.datasets.io._layout import IMAGES
from surgeval.datasets.io._values import MAX_SIDE
from surgeval.datasets.io._video import read_video_frame
from surgeval.errors import DataError
from surgeval.files import FOLDER, NotRegular, open_regular
from surgeval.records import ImageRef

SUFFIXES = IMAGES
_FORMATS = ("JPEG", "PNG", "BMP", "TIFF", "WEBP")  # Pillow opens MPO as JPEG
# Nothing says which value is white.
_UNSCALED = {"F": "pixels of floating-point numbers", "I": "pixels of 32-bit integers"}
# What Pillow's decoders were seen to raise on damaged files.
_DECODING = (OSError, ValueError, SyntaxError, TypeError, EOFError, IndexError, KeyError, struct.error, MemoryError,
             OverflowError, ZeroDivisionError, Image.DecompressionBombError)  # fmt: skip


def read_image(ref: ImageRef) -> npt.NDArray[np.uint8]:
    """The pixels of a frame as RGB, shape (height, width, 3).

    A missing, damaged or cut-off file raises `DataError` naming it.
    """
    if ref.frame is not None:
        return read_video_frame(ref.path, ref.frame)
    return decode(ref.path)


def decode(path: Path) -> npt.NDArray[np.uint8]:
    """The pixels of an image file as RGB."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with open_regular(path) as stream, Image.open(stream, formats=_FORMATS) as image:
                if max(image.size) > MAX_SIDE:
                    raise DataError(path, found=f"{image.size[0]} × {image.size[1]} pixels",
                                    expected=f"at most {MAX_SIDE} a side")  # fmt: skip
                return _rgb(image, path)
    except FileNotFoundError:
        raise DataError(path, found="no such file", expected="an image") from None
    except NotRegular as error:
        expected = "a readable image" if str(error) == FOLDER else "a regular file"
        raise DataError(path, found=error, expected=expected) from None
    except Image.DecompressionBombError:
        limit = f"at most {2 * (Image.MAX_IMAGE_PIXELS or 0) // 1_000_000} million pixels"
        raise DataError(path, found="a picture that is too large", expected=limit) from None
    except UnidentifiedImageError:
        found = "a file that is no image" if path.stat().st_size else "an empty file"
        raise DataError(path, found=found, expected=f"an image ({', '.join(_FORMATS)})") from None
    except PermissionError as error:
        found = f"a file that cannot be opened ({error.strerror})"
        raise DataError(path, found=found, expected="a readable image") from None
    except _DECODING as error:
        found = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(path, found=f"a damaged image ({found})", expected="a readable image") from error


def _rgb(image: Image.Image, path: Path) -> npt.NDArray[np.uint8]:
    """Eight bits a channel; Pillow cuts larger values off at 255 instead of scaling them."""
    if image.mode in _UNSCALED:
        raise DataError(path, found=_UNSCALED[image.mode], expected="8 or 16 bits a channel")
    if image.mode.startswith("I;16"):  # grey; of 16-bit colours Pillow keeps the high bytes itself
        grey = (np.asarray(image) >> 8).astype(np.uint8)
        return np.repeat(grey[..., None], 3, axis=2)
    return np.array(image.convert("RGB"))


def image_size(path: Path) -> tuple[int, int] | None:
    """Width and height from the file's header, or None where that cannot be read."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with open_regular(path) as stream, Image.open(stream, formats=_FORMATS) as image:
                return image.size if max(image.size) <= MAX_SIDE and min(image.size) > 0 else None
    except _DECODING:
        return None
