"""Middlebury's `.flo` files: optical flow computed elsewhere.

Twelve bytes of header (the number 202021.25, width, height), then u, v per pixel, row by row, all little-endian 4-byte
numbers. A header is believed only when the file is exactly as long as it says.
"""

from __future__ import annotations

import os
import stat
import struct
from pathlib import Path

import numpy as np

from surgeval.arrays import Singles
from surgeval.errors import DataError

__all__ = ["read_flo"]

_MAGIC = 202021.25
_HEADER = struct.Struct("<fii")
_MAX_SIDE = 16_384
_UNKNOWN = 1e9  # the format's mark of a pixel without flow is any larger number


def read_flo(path: Path, size: tuple[int, int] | None = None) -> Singles:
    """The flow (H, W, 2) of a `.flo` file; `size` is the (height, width) it must have."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise DataError(path, "found no regular file, expected a .flo file")
        with path.open("rb") as stream:
            length = os.fstat(stream.fileno()).st_size
            height, width = _checked_header(path, stream.read(_HEADER.size), length, size)
            body = stream.read(8 * width * height)
    except FileNotFoundError:
        raise DataError(path, "found no such file, expected a .flo file") from None
    except ValueError:  # a name with a zero byte
        raise DataError(path, "found a name that no file can have, expected a .flo file") from None
    except OSError as error:
        raise DataError(path, f"found {error.strerror or 'an unreadable file'}, expected a .flo file") from None
    if len(body) != 8 * width * height:
        raise DataError(path, "found a file that became shorter while it was read, expected a .flo file")
    flow = np.frombuffer(body, dtype="<f4").reshape(height, width, 2).astype(np.float32)
    bad = ~(np.abs(flow) < _UNKNOWN).all(axis=2)
    if bad.any():
        row, column = (int(axis[0]) for axis in np.nonzero(bad))
        u, v = flow[row, column].tolist()
        raise DataError(
            path,
            f"found ({u:g}, {v:g}), expected finite flow on every pixel ({int(bad.sum())} have none)",
            record=f"row {row}, column {column}",
            field="flow",
        )
    return flow


def _checked_header(path: Path, header: bytes, length: int, size: tuple[int, int] | None) -> tuple[int, int]:
    if len(header) < _HEADER.size:
        raise DataError(path, f"found {len(header)} bytes, expected a .flo header of {_HEADER.size} bytes")
    magic, width, height = _HEADER.unpack(header)
    if magic != _MAGIC:
        raise DataError(path, f"found {magic:g}, expected {_MAGIC} (a little-endian .flo file)", field="magic")
    if not (1 <= width <= _MAX_SIDE and 1 <= height <= _MAX_SIDE):
        raise DataError(path, f"found {width}×{height}, expected sides from 1 to {_MAX_SIDE}", field="size")
    if length != _HEADER.size + 8 * width * height:
        expected = f"{_HEADER.size + 8 * width * height} for {width}×{height} pixels"
        raise DataError(path, f"found {length}, expected {expected}", field="length in bytes")
    if size is not None and (height, width) != size:
        raise DataError(path, f"found {width}×{height}, expected the frame's {size[1]}×{size[0]}", field="size")
    return height, width
