"""The array types that signatures name, once for the whole package, and `encode`: labels as numbers.

`Floats` is what numbers are computed in (64 bits); `Singles` is what networks, heatmaps and optical flow use (32 bits);
`AnyFloats` and `AnyInts` accept every width. `Ints` have 64 bits; `Int8s` and the like are for arrays whose memory
counts. An `Image` is one picture, RGB or grey; `Bytes` are other numbers of 8 bits: several pictures, planes, packed
masks. Shapes are said in the docstrings.

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

from surgeval.errors import BadInput, locate

__all__ = ["AnyArray", "AnyFloats", "AnyInts", "Bools", "Bytes", "Encoded", "Floats", "Image", "Indices", "Int8s",
           "Int16s", "Int32s", "Ints", "Singles", "UInt16s", "UInt64s", "encode"]  # fmt: skip

Bools: TypeAlias = npt.NDArray[np.bool_]
Int8s: TypeAlias = npt.NDArray[np.int8]
Int16s: TypeAlias = npt.NDArray[np.int16]
Int32s: TypeAlias = npt.NDArray[np.int32]
Ints: TypeAlias = npt.NDArray[np.int64]
UInt16s: TypeAlias = npt.NDArray[np.uint16]
UInt64s: TypeAlias = npt.NDArray[np.uint64]
Indices: TypeAlias = npt.NDArray[np.intp]
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
        raise BadInput(
            locate(label, None, None, "found ids that cannot be compared, expected text or whole numbers")
        ) from error
    kinds = {_kind(key) for key in unique}
    if "bad" in kinds or len(kinds) > 1:
        first = _kind(items[0])
        row = next(i for i, item in enumerate(items) if _kind(item) == "bad" or _kind(item) != first)
        wanted = "a video or patient id" if _kind(items[row]) == "bad" else "ids of one kind, all text or all numbers"
        raise BadInput(locate(label, f"row {row}", None, f"found {items[row]!r}, expected {wanted}"))
    keys = sorted(unique)
    number = {key: code for code, key in enumerate(keys)}
    return Encoded(np.fromiter((number[item] for item in items), dtype=np.int64, count=len(items)), tuple(keys))


def _kind(key: object) -> str:
    if isinstance(key, str):
        return "text" if key.strip() else "bad"
    return "number" if isinstance(key, int) and not isinstance(key, bool) else "bad"
