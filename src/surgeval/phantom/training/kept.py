"""Rendered frames in a file, from one training to the next.

The file may come from anywhere: every array is compared with what a training indexes by it before it is used. What
`save_frames` writes is not compressed, so a file cannot hold more than it shows.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np

from surgeval.errors import DataError
from surgeval.files import atomic_file
from surgeval.phantom.training.data import SIZE, SLOTS, Frames
from surgeval.vocab import load_labels

__all__ = ["load_frames", "save_frames"]

_EXPECTED = "frames kept by an earlier training"
_UNREADABLE = (OSError, ValueError, LookupError, EOFError, RuntimeError, MemoryError, OverflowError, SyntaxError,
               BadZipFile, zlib.error)  # fmt: skip
_FORM: Mapping[str, tuple[type[np.generic], tuple[int, ...]]] = {  # of each array behind its first axis
    "images": (np.uint8, (SIZE, SIZE, 3)),
    "tools": (np.uint8, (SIZE, SIZE)),
    "instrument": (np.int16, (SLOTS,)),
    "triplet": (np.int16, (SLOTS,)),
    "boxes": (np.float32, (SLOTS, 4)),
    "working": (np.int16, ()),
    "tint": (np.int16, ()),
    "video": (np.int32, ()),
    "plates": (np.uint8, (SIZE, SIZE, 3)),
}


def save_frames(path: Path, frames: Frames) -> None:
    """Keep rendered frames for another training."""
    with atomic_file(path.resolve()) as stream:  # a link of the user's may lead to a larger disk
        np.savez(stream, **{field.name: getattr(frames, field.name) for field in fields(Frames)})


def load_frames(path: Path) -> Frames:
    """Frames kept by `save_frames`."""
    if not path.is_file():  # a pipe would be waited for
        raise DataError(path, f"found no ordinary file, expected {_EXPECTED}")
    try:
        with ZipFile(path) as archive:
            if sum(member.file_size for member in archive.infolist()) > path.stat().st_size:
                raise DataError(path, f"found a compressed archive, expected {_EXPECTED}")
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in _FORM}
    except _UNREADABLE as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(path, f"found a file that cannot be read ({reason}), expected {_EXPECTED}") from error
    _check_forms(path, arrays)
    _check_values(path, arrays)
    return Frames(**arrays)


def _check_forms(path: Path, arrays: Mapping[str, Any]) -> None:
    images = arrays["images"]
    frames = len(images) if isinstance(images, np.ndarray) and images.ndim else 0
    for name, (kind, form) in _FORM.items():
        array = arrays[name]
        shape = array.shape if isinstance(array, np.ndarray) else ()  # bytes are what else an archive may hold
        rows = shape[:1] if name == "plates" else (frames,)
        if shape != (*rows, *form) or array.dtype != kind:
            found = f"{array.dtype} of shape {shape}" if isinstance(array, np.ndarray) else type(array).__name__
            wanted = ("plates" if name == "plates" else str(frames or "frames"), *map(str, form))
            raise DataError(
                path, f"found {found}, expected {np.dtype(kind)} of shape ({', '.join(wanted)})", field=name
            )


def _check_values(path: Path, arrays: Mapping[str, Any]) -> None:
    space = load_labels("phantom")
    first = arrays["video"] == 0  # the one that every training uses
    for name in ("instrument", "tint"):
        if not (arrays[name][first] >= 0).any():
            raise DataError(path, "found none in video 0, expected a first video that shows one", field=name)
    videos = len(np.unique(arrays["video"]))
    for name, array, low, high in (
        ("instrument", arrays["instrument"], -1, len(space.instruments) - 1),
        ("triplet", arrays["triplet"], -1, len(space.triplets) - 1),
        ("working", arrays["working"], -1, SLOTS - 1),
        ("tint", arrays["tint"], -1, len(space.instruments) - 1),
        ("video", arrays["video"], 0, videos - 1),
        ("tools", arrays["tools"].max() >> 5, 0, SLOTS),
    ):
        least, most = int(array.min()), int(array.max())
        if least < low or most > high:
            raise DataError(path, f"found numbers from {least} to {most}, expected {low} to {high}", field=name)
    if not np.isfinite(arrays["boxes"]).all():
        raise DataError(path, "found NaN or infinity, expected finite corners", field="boxes")
