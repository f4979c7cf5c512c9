"""Versioned JSON files of a run folder, each declared once as a pydantic model."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, TypeVar

from pydantic import AllowInfNan, BaseModel, ConfigDict, PlainSerializer, ValidationError, WrapValidator

from surgeval.errors import DataError
from surgeval.files.atomic import write_atomically
from surgeval.files.reading import read_json_object, spell_surrogates
from surgeval.files.validate import describe_error, error_code, format_field

__all__ = ["EARLIER_VERSION", "NullableFloat", "StoredFile", "StoredPart", "check_stored"]

EARLIER_VERSION = "Written by an earlier version; run again."
_MOST_NAMED = 4  # errors that are named in one sentence
Model = TypeVar("Model", bound=BaseModel)

# A number that is null in JSON and NaN in Python where it is not defined.
NullableFloat = Annotated[
    float,
    AllowInfNan(False),
    WrapValidator(lambda value, check: math.nan if value is None or value != value else check(value)),
    PlainSerializer(lambda value: None if math.isnan(value) else value, return_type=float | None, when_used="json"),
]


class StoredPart(BaseModel):
    """A part of a stored file: strict types, no unknown keys, finite numbers only."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False,
                              ser_json_inf_nan="constants")  # fmt: skip


class StoredFile(StoredPart):
    """A JSON file with a fixed name and schema. Its first key is `format`, the version of the schema.

    A subclass declares `name`, `format` and, if 16 MiB are too few or too many, `limit` in bytes. A `compact` file has
    one line for each key, and for each item of a list. Whole numbers beyond 2⁵³, which JSON does not hold exactly, are
    refused.

    >>> import tempfile
    >>> class Receipt(StoredFile, name="receipt.json", format=1):
    ...     model: str
    ...     cases: int
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Receipt(model="net", cases=120).save(folder)
    ...     Path(folder, "receipt.json").read_text().split()
    ...     Receipt.load(folder)
    ['{', '"format":', '1,', '"model":', '"net",', '"cases":', '120', '}']
    Receipt(model='net', cases=120)
    """

    file_name: ClassVar[str]
    file_format: ClassVar[int]
    size_limit: ClassVar[int]
    is_compact: ClassVar[bool]

    def __init_subclass__(
        cls, name: str, format: int, limit: int = 1 << 24, *, compact: bool = False, **options: Any
    ) -> None:
        super().__init_subclass__(**options)
        cls.file_name, cls.file_format, cls.size_limit, cls.is_compact = name, format, limit, compact

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read the file in this folder.

        Raises `DataError` for a missing, oversized or invalid file, and for a file of another format.
        """
        path = Path(folder) / cls.file_name
        content = read_json_object(path, limit=cls.size_limit, exact=True)
        if content.pop("format", None) != cls.file_format:
            raise DataError(path, EARLIER_VERSION, code="format-version")
        return check_stored(cls, content, path)

    def save(self, folder: str | Path) -> None:
        """Write the file into this folder atomically.

        Half of a surrogate pair, which names of files can hold and UTF-8 cannot, is spelled out.
        """
        content = {"format": self.file_format, **self.model_dump(mode="json")}
        text = _compact(content) if self.is_compact else _dump(content, indent=2)
        write_atomically(Path(folder) / self.file_name, f"{spell_surrogates(text)}\n".encode())


def check_stored(model: type[Model], value: object, path: str | Path, field: str = "") -> Model:
    """The JSON value as an instance of the model. `DataError` names every field that does not fit.

    `field` is where the value stands in the file.

    >>> class Fold(StoredPart):
    ...     test: tuple[str, ...]
    >>> check_stored(Fold, {"test": ["VID01"]}, "folds.json")
    Fold(test=('VID01',))
    >>> check_stored(StoredPart, {"colour": "red"}, "run.json", "config")
    Traceback (most recent call last):
    surgeval.errors.DataError: run.json: config.colour: unknown key
    """
    try:
        return model.model_validate_json(spell_surrogates(json.dumps(value, ensure_ascii=False)))
    except ValidationError as error:
        errors = error.errors(include_url=False, include_context=False)
        places = [format_field((field, *each["loc"]) if field else each["loc"]) for each in errors]
        sentences = [describe_error(each) for each in errors]
        others = [f"{place}: {sentence}" for place, sentence in zip(places, sentences, strict=True)]
        sentence = "; ".join([sentences[0], *others[1:_MOST_NAMED]])
        if len(errors) > _MOST_NAMED:
            sentence += f"; and {len(errors) - _MOST_NAMED} more"
        raise DataError(path, sentence, field=places[0] or None, code=error_code(errors[0])) from None


def _dump(value: object, indent: int | None = None) -> str:
    return json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)


def _compact(content: dict[str, Any]) -> str:
    lines = []
    for key, value in content.items():
        items = isinstance(value, list) and value
        lines.append(f"{_dump(key)}: " + ("[\n " + ",\n ".join(map(_dump, value)) + "\n]" if items else _dump(value)))
    return "{\n" + ",\n".join(lines) + "\n}"
