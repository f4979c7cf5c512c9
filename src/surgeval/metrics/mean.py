"""Means that know absent classes: nan entries are left out, and a mean of nothing is nan without a warning."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from surgeval.arrays import Floats

__all__ = ["mean_along", "mean_of"]


def mean_of(values: npt.ArrayLike, weight: npt.ArrayLike | None = None, *, any_order: bool = False) -> float:
    """The (weighted) mean of the entries that are not nan; nan when there are none. For `any_order` see `mean_along`.

    >>> mean_of([1.0, float("nan"), 0.5]), mean_of([float("nan")])
    (0.75, nan)
    """
    array = np.asarray(values, dtype=np.float64)
    if weight is not None or any_order:
        return float(mean_along(array, 0, weight, any_order=any_order))
    present = array[~np.isnan(array)]
    return float(present.mean()) if present.size else float("nan")


def mean_along(
    values: npt.ArrayLike, axis: int, weight: npt.ArrayLike | None = None, *, any_order: bool = False
) -> Floats:
    """`mean_of` along one axis; `weight` has one entry per place along it (how often a video was drawn).

    With `any_order` the entries are summed from the lowest to the highest, so that their order (that of videos) does
    not change the last digit.

    >>> mean_along([[1.0, float("nan")], [0.0, float("nan")]], axis=0).tolist()
    [0.5, nan]
    >>> mean_along([[1.0, float("nan")], [0.0, 0.4]], axis=0, weight=[3, 1]).tolist()
    [0.75, 0.4]
    """
    array = np.asarray(values, dtype=np.float64)
    present = (~np.isnan(array)).astype(np.float64)
    if weight is not None:
        shape = [1] * array.ndim
        shape[axis] = -1
        present *= np.asarray(weight, dtype=np.float64).reshape(shape)
    count = present.sum(axis=axis)
    products = np.multiply(array, present, out=np.zeros_like(array), where=present != 0)
    total = (np.sort(products, axis=axis) if any_order else products).sum(axis=axis)
    return np.asarray(np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0), dtype=np.float64)
