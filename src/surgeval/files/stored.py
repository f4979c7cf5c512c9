"""Versioned JSON files of a run folder, each declared once as a pydantic model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from surgeval.errors import DataError
from surgeval.files.atomic import write_atomically
from surgeval.files.reading import read_json_object, spell_surrogates
from surgeval.files.validate import describe_error, error_code, format_field

__all__ = ["EARLIER_VERSION", "StoredFile"]

EARLIER_VERSION = "Written by an earlier version; run again."


class StoredFile(BaseModel):
    """A JSON file with a fixed name and schema. Its first key is `format`, the version of the schema.

    A subclass declares `name`, `format` and, if 16 MiB are too few or too many, `limit` in bytes.

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

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False,
                              ser_json_inf_nan="constants")  # fmt: skip

    file_name: ClassVar[str]
    file_format: ClassVar[int]
    size_limit: ClassVar[int]

    def __init_subclass__(cls, name: str, format: int, limit: int = 1 << 24, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.file_name, cls.file_format, cls.size_limit = name, format, limit

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read the file in this folder.

        Raises `DataError` for a missing, oversized or invalid file, and for a file of another format.
        """
        path = Path(folder) / cls.file_name
        content = read_json_object(path, limit=cls.size_limit)
        if content.pop("format", None) != cls.file_format:
            raise DataError(path, EARLIER_VERSION, code="format-version")
        try:
            return cls.model_validate_json(json.dumps(content))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            field = format_field(first["loc"]) or None
            raise DataError(path, describe_error(first), field=field, code=error_code(first)) from None

    def save(self, folder: str | Path) -> None:
        """Write the file into this folder atomically.

        Half of a surrogate pair, which names of files can hold and UTF-8 cannot, is spelled out.
        """
        content = {"format": self.file_format, **self.model_dump(mode="json")}
        text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
        write_atomically(Path(folder) / self.file_name, f"{spell_surrogates(text)}\n".encode())
