"""Array types have one name each, in `surgeval.arrays`; no other module spells them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

import surgeval
from surgeval import arrays

SPELLED = re.compile(r"NDArray\[\s*(?:(?:np|numpy)\.|Any\])")


def test_no_module_but_arrays_spells_array_types() -> None:
    package = Path(surgeval.__file__).parent
    spelled = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if SPELLED.search(path.read_text("utf-8"))
    }
    assert spelled == {"arrays.py"}


def test_the_names_stand_for_these_types() -> None:
    named = {
        "Bools": np.bool_, "Ints": np.int64, "Floats": np.float64, "Singles": np.float32, "Image": np.uint8,
        "Bytes": np.uint8, "Int8s": np.int8, "Int16s": np.int16, "Int32s": np.int32, "UInt16s": np.uint16,
        "UInt64s": np.uint64, "Indices": np.intp,
    }  # fmt: skip
    for name, kind in named.items():
        assert getattr(arrays, name).__args__[1].__args__ == (kind,), name
