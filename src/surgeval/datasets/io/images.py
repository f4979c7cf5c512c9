"""Pixels: `read_image` turns an `ImageRef` into an RGB array, whether it names an image file or a frame of a video.

Image files are decoded by Pillow because it says when a file is cut off (OpenCV fills the rest with grey). A rotation
tag (EXIF) is ignored: boxes refer to the pixels as they are stored.
"""

from __future__ import annotations

import struct
import warnings
import zlib
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import BinaryIO

import numpy as np
import PIL.Image
from PIL import UnidentifiedImageError

from surgeval.arrays import Image
from surgeval.datasets.io.layout import IMAGES
from surgeval.datasets.io.values import MAX_PIXELS, MAX_SIDE, fits
from surgeval.datasets.io.video import read_video_frame
from surgeval.datasets.io.whole import missing_rows, without_end
from surgeval.errors import DataError
from surgeval.files import NotRegular, open_regular
from surgeval.records import ImageRef

SUFFIXES = IMAGES
_FORMATS = ("JPEG", "PNG", "BMP", "TIFF", "WEBP")  # Pillow opens MPO as JPEG
_LIMITS = f"at most {MAX_SIDE} a side and {MAX_PIXELS} in all"
_STRIP = 1 << 22  # pixels that are converted at a time
_MAX_JPEG = 1 << 28  # bytes, far above what so many pixels take
_MAX_RUNS = 1 << 24  # bytes of a BMP whose runs of equal pixels Pillow unpacks one by one, in Python
# Nothing says which value is white.
_UNSCALED = {"F": "pixels of floating-point numbers", "I": "pixels of 32-bit integers"}
# What Pillow's decoders were seen to raise on damaged files.
_DECODING = (OSError, ValueError, SyntaxError, TypeError, EOFError, IndexError, KeyError, struct.error, MemoryError,
             OverflowError, ZeroDivisionError, PIL.Image.DecompressionBombError)  # fmt: skip


def read_image(ref: ImageRef) -> Image:
    """The pixels of a frame as RGB, shape (height, width, 3).

    A missing, damaged or cut-off file raises `DataError` naming it.

    >>> import tempfile
    >>> import PIL.Image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     PIL.Image.new("RGB", (64, 48), (255, 0, 0)).save(f"{folder}/frame.png")
    ...     pixels = read_image(ImageRef(Path(folder) / "frame.png"))
    >>> pixels.shape, pixels[0, 0].tolist()
    ((48, 64, 3), [255, 0, 0])
    """
    if ref.frame is not None:
        return read_video_frame(ref.path, ref.frame)
    return decode(ref.path)


def decode(path: Path) -> Image:
    """The pixels of an image file as RGB."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with open_regular(path) as stream, PIL.Image.open(_strict(stream, path), formats=_FORMATS) as image:
                if not fits(*image.size):
                    size = f"{image.size[0]} × {image.size[1]} pixels"
                    raise DataError(path, f"found {size}, expected {_LIMITS}", code="image-broken")
                if any(tile[0] == "bmp_rle" for tile in image.tile) and path.stat().st_size > _MAX_RUNS:
                    raise DataError(
                        path,
                        f"found runs of pixels in a file of this size, expected at most {_MAX_RUNS} bytes",
                        code="image-broken",
                    )
                pixels = _rgb(image, path)
                if image.format == "PNG" and missing_rows(stream):
                    raise DataError(
                        path,
                        "found a damaged image (its data end before its last row), expected a readable image",
                        code="image-broken",
                    )
                return pixels
    except FileNotFoundError:
        raise DataError(path, "found no such file, expected an image", code="image-missing") from None
    except NotRegular as error:
        expected = "a readable image" if path.is_dir() else "a regular file"
        raise DataError(path, f"found {error}, expected {expected}", code="image-broken") from None
    except zlib.error:
        found = "a damaged image (its data do not unpack)"
        raise DataError(path, f"found {found}, expected a readable image", code="image-broken") from None
    except PIL.Image.DecompressionBombError:
        raise DataError(path, f"found a picture that is too large, expected {_LIMITS}", code="image-broken") from None
    except UnidentifiedImageError:
        content = "a file that is no image" if path.stat().st_size else "an empty file"
        expected = f"an image ({', '.join(_FORMATS)})"
        raise DataError(path, f"found {content}, expected {expected}", code="image-broken") from None
    except PermissionError as error:
        refusal = f"a file that cannot be opened ({error.strerror})"
        raise DataError(path, f"found {refusal}, expected a readable image", code="image-broken") from None
    except _DECODING as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        found = f"a damaged image ({reason})"
        raise DataError(path, f"found {found}, expected a readable image", code="image-broken") from error


def _strict(stream: BufferedReader, path: Path) -> BinaryIO:
    """The file as it is decoded: a JPEG that ends before its last row is then found out."""
    start = stream.read(3)
    stream.seek(0)
    if start != b"\xff\xd8\xff":
        return stream
    data = stream.read(_MAX_JPEG + 1)
    stream.seek(0)
    if len(data) > _MAX_JPEG:
        raise DataError(path, f"more than {_MAX_JPEG} bytes, the limit for a JPEG", code="image-broken")
    return BytesIO(without_end(data))


def _rgb(image: PIL.Image.Image, path: Path) -> Image:
    """Eight bits a channel; Pillow cuts larger values off at 255 instead of scaling them."""
    if image.mode in _UNSCALED:
        raise DataError(path, f"found {_UNSCALED[image.mode]}, expected 8 or 16 bits a channel", code="image-broken")
    if image.mode.startswith("I;16"):  # grey; of 16-bit colours Pillow keeps the high bytes itself
        grey = (np.asarray(image) >> 8).astype(np.uint8)
        return np.repeat(grey[..., None], 3, axis=2)
    width, height = image.size
    rows = max(1, _STRIP // width)
    if rows >= height:
        return np.array(image.convert("RGB"))
    pixels = np.empty((height, width, 3), np.uint8)  # in strips: Pillow makes three copies of what it hands over
    for top in range(0, height, rows):
        strip = image.crop((0, top, width, min(top + rows, height)))
        pixels[top : top + rows] = np.asarray(strip.convert("RGB"))
    return pixels


def image_size(path: str | Path) -> tuple[int, int] | None:
    """Width and height from the file's header, or None where that cannot be read.

    >>> import tempfile
    >>> import PIL.Image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     PIL.Image.new("RGB", (64, 48)).save(f"{folder}/frame.png")
    ...     image_size(Path(folder) / "frame.png"), image_size(Path(folder) / "missing.png")
    ((64, 48), None)
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with open_regular(path) as stream, PIL.Image.open(stream, formats=_FORMATS) as image:
                return image.size if fits(*image.size) else None
    except _DECODING:
        return None
