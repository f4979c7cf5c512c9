"""Values that hash the same on every machine: JSON in one spelling.

Two settings are the same exactly when their canonical JSON is; 1 and 1.0 differ, NaN equals nothing and is refused.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence

from surgeval.errors import BadInput

__all__ = ["canonical_json", "fingerprint", "plain"]


def canonical_json(value: object, name: str = "value") -> str:
    """The one spelling of a JSON value: sorted keys, no spaces, shortest floats; NaN and infinity are refused.

    >>> canonical_json({"b": (1, 0.1), "a": None})
    '{"a":null,"b":[1,0.1]}'
    >>> canonical_json({"tau": float("nan")}, "config")
    Traceback (most recent call last):
    surgeval.errors.BadInput: config.tau: found nan, expected a finite number
    """
    return json.dumps(plain(value, name), sort_keys=True, separators=(",", ":"), allow_nan=False)


def plain(value: object, name: str) -> object:
    """The value as JSON would give it back (tuples become lists), or BadInput naming the place that cannot be."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise BadInput(f"{name}: found {value}, expected a finite number")
        return value
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise BadInput(f"{name}: found the key {key!r}, expected text")
        return {key: plain(item, f"{name}.{key}") for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return [plain(item, f"{name}[{i}]") for i, item in enumerate(value)]
    raise BadInput(f"{name}: found {type(value).__name__}, expected text, a number, true, false, null, a list or a map")


def fingerprint(value: object, name: str = "value") -> str:
    """128 bits of SHA-256 over the canonical JSON, as 32 hexadecimal digits.

    >>> fingerprint({"b": 1, "a": 2}) == fingerprint({"a": 2, "b": 1})
    True
    """
    return hashlib.sha256(canonical_json(value, name).encode()).hexdigest()[:32]
