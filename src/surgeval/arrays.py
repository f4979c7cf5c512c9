"""The array types that signatures name, once for the whole package.

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

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["AnyArray", "AnyFloats", "AnyInts", "Bools", "Bytes", "Floats", "Image", "Indices", "Int8s", "Int16s",
           "Int32s", "Ints", "Singles", "UInt16s", "UInt64s"]  # fmt: skip

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
