"""Plain columns as arrays, or a sentence that says what they hold instead."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from surgeval.arrays import Floats, Ints, encode
from surgeval.errors import BadInput

__all__ = ["plain_numbers", "video_numbers", "whole_numbers"]

_LAST = 2**31 - 1


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


def video_numbers(videos: npt.ArrayLike) -> Ints:
    """The number of each row's video: whole numbers from 0 as they are, names by their sorted order.

    >>> video_numbers(["VID68", "VID02", "VID68"]).tolist(), video_numbers([2, 0, 2]).tolist()
    ([1, 0, 1], [2, 0, 2])
    """
    try:
        kind = np.asarray(videos).dtype.kind
    except ValueError:  # rows of several lengths
        kind = "O"
    if kind not in "biuf":
        return encode(cast("Iterable[Any]", videos), "videos").codes
    numbers = whole_numbers(videos, "videos")
    if len(numbers) and not 0 <= numbers.min() <= numbers.max() <= _LAST:
        odd = int(numbers.min() if numbers.min() < 0 else numbers.max())
        raise BadInput(f"videos: found {odd}, expected names, or numbers from 0 to {_LAST}")
    return numbers
