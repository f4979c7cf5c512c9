"""The array types that signatures name, once for the whole package, and `encode`: labels as numbers.

`Floats` is what numbers are computed in (64 bits); `Singles` is what networks, heatmaps and optical flow use (32 bits);
`AnyFloats` and `AnyInts` accept every width. An `Image` is one picture, RGB or grey; `Bytes` are other numbers
of 8 bits: several pictures, planes, packed masks. Shapes are said in the docstrings.

>>> import numpy as np
>>> boxes: Floats = np.array([[0.1, 0.2, 0.3, 0.4]])
>>> frame: Image = np.zeros((4, 6, 3), np.uint8)
>>> boxes.dtype, frame.dtype
(dtype('float64'), dtype('uint8'))
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from surgeval.errors import BadInput, sentence

__all__ = [
    "AnyArray",
    "AnyFloats",
    "AnyInts",
    "Bools",
    "Bytes",
    "Encoded",
    "Floats",
    "Image",
    "Ints",
    "Singles",
    "encode",
]

Bools: TypeAlias = npt.NDArray[np.bool_]
Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Singles: TypeAlias = npt.NDArray[np.float32]
AnyInts: TypeAlias = npt.NDArray[np.integer[Any]]
AnyFloats: TypeAlias = npt.NDArray[np.floating[Any]]
AnyArray: TypeAlias = npt.NDArray[Any]
Bytes: TypeAlias = npt.NDArray[np.uint8]
Image: TypeAlias = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Encoded:
    """Ids as numbers: `keys[codes[row]]` is the id of a row; keys are sorted."""

    codes: Ints
    keys: tuple[str | int, ...]


def encode(ids: Iterable[Any], label: str = "clusters") -> Encoded:
    """Number the ids by their sorted order; a null, blank or odd id is an error that names its row.

    >>> encode(["v2", "v1", "v2"]).codes.tolist()
    [1, 0, 1]
    """
    items: list[Any] = ids.tolist() if isinstance(ids, np.ndarray) else list(ids)
    try:
        unique = list(dict.fromkeys(items))
    except TypeError as error:
        raise BadInput(sentence(label, None, None, "ids that cannot be compared", "text or whole numbers")) from error
    kinds = {_kind(key) for key in unique}
    if "bad" in kinds or len(kinds) > 1:
        first = _kind(items[0])
        row = next(i for i, item in enumerate(items) if _kind(item) == "bad" or _kind(item) != first)
        wanted = "a video or patient id" if _kind(items[row]) == "bad" else "ids of one kind, all text or all numbers"
        raise BadInput(sentence(label, f"row {row}", None, repr(items[row]), wanted))
    keys = sorted(unique)
    number = {key: code for code, key in enumerate(keys)}
    return Encoded(np.fromiter((number[item] for item in items), dtype=np.int64, count=len(items)), tuple(keys))


def _kind(key: object) -> str:
    if isinstance(key, str):
        return "text" if key.strip() else "bad"
    return "number" if isinstance(key, int) and not isinstance(key, bool) else "bad"
