"""JPEG that nobody vouches for. A decoder goes over the whole picture once more for every scan that the file names."""

from __future__ import annotations

import re

__all__ = ["too_many_scans"]

_MOST_SCANS = 100  # encoders write about ten; a scan takes 95 bytes and a tenth of a second of 64 megapixels
_SCAN, _END = 0xDA, 0xD9
_BARE = frozenset({0x01, *range(0xD0, 0xD9)})  # markers without a length: restarts and the beginning
_MARKER = re.compile(rb"\xff++([^\x00\xff])")


def too_many_scans(data: bytes) -> str:
    r"""What to say of a JPEG whose scans would keep a decoder busy for minutes; empty of any other.

    >>> scan = b"\xff\xda\x00\x02..."
    >>> too_many_scans(b"\xff\xd8" + 3 * scan + b"\xff\xd9"), too_many_scans(b"\xff\xd8" + 500 * scan + b"\xff\xd9")
    ('', 'a picture of 500 scans')
    """
    if data.count(b"\xff\xda") <= _MOST_SCANS:
        return ""
    scans = _scans(data)  # fewer where a film or a preview is in the file
    return f"a picture of {scans} scans" if scans > _MOST_SCANS else ""


def _scans(data: bytes) -> int:
    """How many there are, marker by marker up to the end of the picture, as decoders walk."""
    scans, at = 0, 0
    while marker := _MARKER.search(data, at):
        kind, at = marker[1][0], marker.end()
        if kind == _END:
            break
        scans += kind == _SCAN
        if kind not in _BARE:
            at += int.from_bytes(data[at : at + 2], "big")
    return scans
