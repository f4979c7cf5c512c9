"""Problems in files from outside: where they are, and what is wrong in a plain sentence.

A reader has a `Location`, checks values with it, and goes on after a problem; its caller decides with `on_problem`
whether to collect problems or to raise. `validate` checks a whole record against a pydantic model.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from surgeval.errors import DataError, bounded, locate

if TYPE_CHECKING:
    from pydantic import BaseModel

    Model = TypeVar("Model", bound=BaseModel)

__all__ = [
    "Level",
    "Location",
    "OnProblem",
    "Problem",
    "as_float",
    "describe_error",
    "error_code",
    "format_field",
    "format_value",
    "keep_warnings",
    "raise_errors",
    "validate",
]

Level: TypeAlias = Literal["error", "warning"]
_LONGEST = 900  # characters of each part of a problem


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong in a file, with its place.

    `kind` is one of `PROBLEM_KINDS`. An *error* makes the record unusable, so it is skipped; after a *warning* it is
    used.
    """

    kind: str
    path: str
    sentence: str
    record: str | None = None
    field: str | None = None
    level: Level = "error"

    def __post_init__(self) -> None:
        for name in ("sentence", "record", "field"):  # names in a file can be a megabyte long
            text = getattr(self, name)
            if text is not None and len(text) > _LONGEST:
                object.__setattr__(self, name, bounded(text, _LONGEST))

    def __str__(self) -> str:
        return locate(self.path, self.record, self.field, self.sentence)


OnProblem: TypeAlias = Callable[[Problem], None]


def raise_errors(problem: Problem) -> None:
    """Raise `DataError` for an error and ignore a warning.

    >>> raise_errors(Problem("image-missing", "VID01/0.jpg", "no such file", level="warning"))
    >>> raise_errors(Problem("image-missing", "VID01/0.jpg", "no such file"))
    Traceback (most recent call last):
    surgeval.errors.DataError: VID01/0.jpg: no such file
    """
    if problem.level == "error":
        raise DataError(problem.path, problem.sentence, record=problem.record, field=problem.field, code=problem.kind)


def keep_warnings(kept: list[Problem]) -> OnProblem:
    """Raise `DataError` for an error and append a warning to the list.

    >>> kept = []
    >>> keep_warnings(kept)(Problem("image-missing", "VID01/0.jpg", "no such file", level="warning"))
    >>> len(kept)
    1
    """

    def on_problem(problem: Problem) -> None:
        raise_errors(problem)
        kept.append(problem)

    return on_problem


@dataclass(frozen=True, slots=True)
class Location:
    """The file and record that are being read, and the callback for problems in them.

    The methods that check a value return it, or report a problem and return None.

    >>> problems = []
    >>> location = Location("labels.json", problems.append).at("frame 12")
    >>> location.number(3, "score"), location.number("three", "score")
    (3.0, None)
    >>> print(problems[0])
    labels.json: frame 12: score: found 'three', expected a number
    """

    file: str
    on_problem: OnProblem
    record: str | None = None

    def at(self, record: str) -> Location:
        """The same file at another record."""
        return replace(self, record=record)

    def error(self, kind: str, sentence: str, field: str | None = None) -> None:
        """Report a problem that makes the record unusable."""
        self.on_problem(Problem(kind, self.file, sentence, self.record, field))

    def warn(self, kind: str, sentence: str, field: str | None = None) -> None:
        """Report something odd but usable."""
        self.on_problem(Problem(kind, self.file, sentence, self.record, field, "warning"))

    def number(self, value: Any, field: str) -> float | None:
        """A finite number; true and false are none."""
        result = as_float(value)
        if result is None:
            self.error("not-a-number", f"found {format_value(value)}, expected a number", field)
        elif not math.isfinite(result):
            self.error("not-finite", f"found {format_value(result)}, expected a finite number", field)
            result = None
        return result

    def whole(self, value: Any, field: str, low: int, high: int, kind: str = "not-a-number") -> int | None:
        """A whole number in `low…high`; 3.0 counts as 3."""
        result = as_float(value)
        if result is None or not math.isfinite(result) or result != int(result):
            self.error(kind, f"found {format_value(value)}, expected a whole number from {low} to {high}", field)
            return None
        if not low <= result <= high:
            text = format_value(int(result) if abs(result) < 1e15 else value)  # "250" in a text file was read as 250.0
            self.error(kind, f"found {text}, expected a whole number from {low} to {high}", field)
            return None
        return int(result)

    def text(self, value: Any, field: str, *, empty: bool = False) -> str | None:
        """Text that is valid Unicode, and not empty unless allowed."""
        if not isinstance(value, str) or not (value or empty):
            self.error("not-text", f"found {format_value(value)}, expected text", field)
            return None
        if any("\ud800" <= character <= "\udfff" for character in value):
            self.error("not-text", f"found {format_value(value)}, expected text without broken characters", field)
            return None
        return value

    def mapping(self, value: Any, field: str | None = None) -> dict[str, Any] | None:
        """A JSON object."""
        if isinstance(value, dict):
            return value
        self.error("wrong-shape", f"found {format_value(value)}, expected a JSON object", field)
        return None

    def items(self, value: Any, field: str | None = None) -> list[Any] | None:
        """A JSON list."""
        if isinstance(value, list):
            return value
        self.error("wrong-shape", f"found {format_value(value)}, expected a JSON list", field)
        return None


def as_float(value: Any) -> float | None:
    """The value as a float if it is a number, else None; an int too large for a float becomes infinity.

    >>> as_float(3), as_float("3"), as_float(True)
    (3.0, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf


def validate(model: type[Model], value: object, location: Location) -> Model | None:
    """The value as an instance of the model; None after reporting every field that does not fit.

    >>> from pydantic import BaseModel
    >>> class Frame(BaseModel, strict=True):
    ...     number: int
    ...     phase: str
    >>> validate(Frame, {"number": 12, "phase": "clipping"}, Location("labels.json", print))
    Frame(number=12, phase='clipping')
    >>> validate(Frame, {"number": "twelve"}, Location("labels.json", print))
    labels.json: number: expected a whole number, got 'twelve'
    labels.json: phase: is missing
    """
    from pydantic import ValidationError

    try:
        return model.model_validate(value)
    except ValidationError as error:
        for details in error.errors(include_url=False, include_context=False):
            location.error(error_code(details), describe_error(details), format_field(details["loc"]) or None)
        return None


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


def format_value(value: object) -> str:
    """A value as it appears in a sentence: one printable line of bounded length.

    >>> format_value(float("nan")), format_value("a" * 100)[:5], format_value(None), format_value([1, 2])
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
    "bool_parsing": ("true or false", "wrong-value"),
    "bool_type": ("true or false", "wrong-value"),
    "dataclass_type": ("an object", "wrong-shape"),
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
_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")  # of models, and of dataclasses
_OTHER_TYPES = {"missing": "key-missing", "json_invalid": "file-broken", **dict.fromkeys(_UNKNOWN, "key-unknown")}


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
    if kind in _UNKNOWN:
        return "unknown key"
    if kind == "json_invalid":
        return f"not valid JSON: {message.removeprefix('Invalid JSON: ')}"
    if kind in _TYPES:
        return f"expected {_TYPES[kind][0]}, got {format_value(error['input'])}"
    if message.startswith("Input should be "):
        expected = message.removeprefix("Input should be ")
        expected = f"a value {expected}" if expected.startswith(("greater", "less")) else expected
        return f"expected {expected}, got {format_value(error['input'])}"
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
