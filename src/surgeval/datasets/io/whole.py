"""Whether a picture's data reach its last row: decoders fill what is missing with black or grey and say nothing.

A PNG's data are inflated once more and counted. Of a JPEG with one scan, the end marker is replaced by a few zero
bits: a decoder that then asks for more has come to the end before the last row.
"""

from __future__ import annotations

import struct
import zlib
from io import BufferedReader

__all__ = ["missing_rows", "without_end"]

_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # by PNG's colour type
_PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))  # Adam7
_PIECE = 1 << 20


def missing_rows(stream: BufferedReader) -> bool:
    """Whether the data of a PNG file end before its last row."""
    stream.seek(8)
    left, inflate = -1, zlib.decompressobj()
    while left and len(head := stream.read(8)) == 8:
        length, kind = struct.unpack(">I4s", head)
        if kind == b"IHDR":
            left = _png_bytes(*struct.unpack(">IIBBBBB", stream.read(13)))
            length -= 13
        elif kind == b"IDAT":
            while left > 0 and length > 0:
                piece = stream.read(min(length, _PIECE))
                if not piece:
                    return True
                length -= len(piece)
                while piece and left > 0 and not inflate.eof:
                    left -= min(left, len(inflate.decompress(piece, _PIECE)))
                    piece = inflate.unconsumed_tail
        elif kind == b"IEND":
            break
        stream.seek(length + 4, 1)
    return left > 0


def _png_bytes(width: int, height: int, depth: int, colour: int, _: int, __: int, interlaced: int) -> int:
    """The number of bytes that the rows of a PNG take: each begins with the number of its filter."""
    bits = depth * _CHANNELS.get(colour, 1)
    passes = _PASSES if interlaced else ((0, 0, 1, 1),)
    sizes = [((width - x + dx - 1) // dx, (height - y + dy - 1) // dy) for x, y, dx, dy in passes]
    return sum(rows * (1 + (columns * bits + 7) // 8) for columns, rows in sizes if columns > 0 and rows > 0)


def without_end(data: bytes) -> bytes:
    """A JPEG of one scan with zero bits instead of its end marker; any other data as they are."""
    at, scan = 2, b""
    while at + 4 <= len(data) and data[at] == 0xFF:
        kind, length = data[at + 1], int.from_bytes(data[at + 2 : at + 4], "big")
        if kind in (0xC0, 0xC1):
            scan = data[at + 9 : at + 10]  # the number of components of the frame
        elif kind == 0xDA:
            if not scan or data[at + 4 : at + 5] != scan:  # progressive, or one scan per component
                return data
            end = data.find(b"\xff\xd9", at + 2 + length)
            return data if end < 0 else data[:end] + bytes(8)
        elif kind == 0xFF:
            at += 1
            continue
        at += 2 + length
    return data
