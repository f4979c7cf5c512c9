"""Check values from outside against a pydantic model, and describe what is wrong with them in plain sentences."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["describe_error", "error_code", "format_field", "preview"]


class _Preview(reprlib.Repr):
    def repr_float(self, value: float, level: int) -> str:
        if math.isfinite(value):
            return repr(value)
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


_repr = _Preview()
_repr.maxstring = _repr.maxother = _repr.maxlong = 60
_repr.maxlist = _repr.maxtuple = 6
_repr.maxdict = 3
_repr.maxlevel = 3


def preview(value: object) -> str:
    """A value as it appears in a sentence: one printable line of bounded length.

    >>> preview(float("nan")), preview("a" * 100)[:5], preview(None), preview([1, 2])
    ('NaN', "'aaaa", 'nothing', '[1, 2]')
    """
    if value is None:
        return "nothing"
    text = _repr.repr(value)
    return text if len(text) <= 160 else text[:157] + "..."


def format_field(location: Sequence[str | int]) -> str:
    """The path to a field as a JavaScript programmer would write it.

    >>> format_field(("units", 3, "name"))
    'units[3].name'
    """
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).removeprefix(".")


# Error types of pydantic: the plain sentence about the expected value, and the kind of problem.
_TYPES = {
    "bool_parsing": ("true or false", "not-a-flag"),
    "bool_type": ("true or false", "not-a-flag"),
    "dict_type": ("an object", "wrong-shape"),
    "finite_number": ("a finite number", "not-finite"),
    "float_parsing": ("a number", "not-a-number"),
    "float_type": ("a number", "not-a-number"),
    "int_from_float": ("a whole number", "not-a-number"),
    "int_parsing": ("a whole number", "not-a-number"),
    "int_type": ("a whole number", "not-a-number"),
    "list_type": ("a list", "wrong-shape"),
    "model_attributes_type": ("an object", "wrong-shape"),
    "model_type": ("an object", "wrong-shape"),
    "string_type": ("text", "not-text"),
    "string_unicode": ("valid Unicode", "not-text"),
    "tuple_type": ("a list", "wrong-shape"),
}
_OTHER_TYPES = {"missing": "key-missing", "extra_forbidden": "key-unknown", "json_invalid": "json-broken"}


def describe_error(error: Mapping[str, Any]) -> str:
    """What is wrong with one field, as a sentence without its name.

    >>> from pydantic import TypeAdapter, ValidationError
    >>> try:
    ...     TypeAdapter(int).validate_python("three")
    ... except ValidationError as error:
    ...     describe_error(error.errors()[0])
    "expected a whole number, got 'three'"
    """
    kind, message = str(error["type"]), str(error["msg"])
    if kind == "missing":
        return "is missing"
    if kind == "extra_forbidden":
        return "unknown key"
    if kind == "json_invalid":
        return f"not valid JSON: {message.removeprefix('Invalid JSON: ')}"
    if kind in _TYPES:
        return f"expected {_TYPES[kind][0]}, got {preview(error['input'])}"
    if message.startswith("Input should be "):
        expected = message.removeprefix("Input should be ")
        expected = f"a value {expected}" if expected.startswith(("greater", "less")) else expected
        return f"expected {expected}, got {preview(error['input'])}"
    return message.removeprefix("Value error, ")


def error_code(error: Mapping[str, Any]) -> str:
    """The kind of problem that an error of pydantic is.

    A validator that raises `PydanticCustomError("box-degenerate", …)` names the kind itself.

    >>> error_code({"type": "missing", "loc": ("units",), "msg": "Field required", "input": {}})
    'key-missing'
    """
    kind = str(error["type"])
    if kind in _TYPES:
        return _TYPES[kind][1]
    return _OTHER_TYPES.get(kind, kind if "-" in kind else "wrong-value")
