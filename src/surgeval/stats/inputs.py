"""Reading scores, cluster ids and slices from the caller, and refusing what would silently bias an interval.

Clusters are numbered by their sorted ids and scores are sorted inside a cluster, so the order of the rows never
changes a result, not even in the last digit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from surgeval.arrays import AnyArray, Bools, Floats, Ints, encode
from surgeval.errors import BadInput, locate

__all__ = ["Floats", "Ints", "Scores", "finite", "masks", "same_length", "slices_by"]


Scores: TypeAlias = Sequence[float] | AnyArray | Iterable[float]


def finite(values: Scores, label: str = "values") -> Floats:
    """The values as a float array; a missing, infinite or non-numeric one is an error that names its row."""
    raw = values if isinstance(values, np.ndarray) and values.dtype.kind in "biuf" else list(values)
    if isinstance(raw, list):
        # Text is refused although NumPy would read "1": a column of text is a column read wrongly.
        for row, value in enumerate(raw):
            if value is None or isinstance(value, (str, bytes, complex)):
                raise BadInput(locate(label, f"row {row}", None, f"found {value!r}, expected a finite number"))
    try:
        array = np.asarray(raw, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise BadInput(
            locate(label, None, None, f"found values that are no numbers ({error}), expected finite numbers")
        ) from error
    if array.ndim != 1:
        raise BadInput(locate(label, None, None, f"found an array of shape {array.shape}, expected one value per row"))
    if not array.size:
        raise BadInput(locate(label, None, None, "found no rows, expected at least one"))
    bad = ~np.isfinite(array)
    if bad.any():
        row = int(bad.argmax())
        raise BadInput(locate(label, f"row {row}", None, f"found {array[row]}, expected a finite number"))
    return array


def same_length(first: Floats, second: Floats | Ints, name: str) -> None:
    """Refuse columns of different length."""
    if len(first) != len(second):
        raise BadInput(locate(name, None, None, f"found {len(second)} rows, expected {len(first)} rows, one per value"))


def masks(slices: Mapping[str, npt.ArrayLike], rows: int) -> dict[str, Bools]:
    """The slices as boolean row masks; one of another type or length, or an empty one, is an error naming it."""
    checked: dict[str, Bools] = {}
    for name, rows_of in slices.items():
        mask = np.asarray(rows_of)
        if mask.dtype != np.bool_ or mask.shape != (rows,):
            raise BadInput(
                locate(
                    "slices", repr(name), None, f"found {mask.dtype} of shape {mask.shape}, expected {rows} booleans"
                )
            )
        if not mask.any():
            raise BadInput(
                locate("slices", repr(name), None, "found no rows, expected at least one (leave empty slices out)")
            )
        checked[name] = mask
    if not checked:
        raise BadInput(locate("slices", None, None, "found none, expected at least one"))
    return checked


def slices_by(column: str, labels: Iterable[Any]) -> dict[str, Bools]:
    """One slice per distinct label of a column, named `column=label`.

    >>> {name: mask.tolist() for name, mask in slices_by("skill", ["verb", "target", "verb"]).items()}
    {'skill=target': [False, True, False], 'skill=verb': [True, False, True]}
    """
    encoded = encode(labels, column)
    return {f"{column}={key}": encoded.codes == code for code, key in enumerate(encoded.keys)}


def is_missing(value: object) -> bool:
    """Whether a rating is absent: None or NaN."""
    return value is None or (isinstance(value, (float, np.floating)) and math.isnan(value))
