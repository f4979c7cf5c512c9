"""Plain columns as arrays, or a sentence that says what they hold instead."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from surgeval.arrays import Floats, Ints
from surgeval.errors import BadInput

__all__ = ["plain_numbers", "whole_numbers"]


def whole_numbers(values: npt.ArrayLike, name: str) -> Ints:
    """A column of integer ids, or a sentence that says what `name` holds instead."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise BadInput(f"{name}: found rows of several lengths, expected one column") from error
    if array.size == 0:
        return np.zeros(0, dtype=np.int64)
    if array.ndim != 1:
        raise BadInput(f"{name}: found {array.ndim} dimensions, expected one column")
    whole = array.dtype.kind in "iu" or (
        array.dtype.kind == "f" and bool(np.isfinite(array).all()) and bool((array % 1 == 0).all())
    )
    if not whole:
        raise BadInput(f"{name}: found {array.dtype} values that are no whole numbers, expected integer ids")
    return np.ascontiguousarray(array, dtype=np.int64)


def plain_numbers(values: npt.ArrayLike, name: str) -> Floats:
    """An array of 64-bit numbers, or a sentence that says what `name` holds instead."""
    try:
        if np.iscomplexobj(values):
            raise BadInput(f"{name}: found complex numbers, expected numbers")
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise BadInput(f"{name}: found {error}, expected numbers") from error
    return np.ascontiguousarray(array)
