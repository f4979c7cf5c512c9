"""Options that several hand-written commands share; their help is that of `surgeval.console.commands.COMMON`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from surgeval.console.commands import shared_option

__all__ = [
    "BoxesOption",
    "FormatOption",
    "JsonOption",
    "LabelsOption",
    "MappingOption",
    "OverwriteOption",
    "ResamplesOption",
    "SeedOption",
    "SourcesOption",
    "TablesOption",
]

FormatOption = Annotated[str | None, shared_option("format")]
LabelsOption = Annotated[str | None, shared_option("labels")]
MappingOption = Annotated[Path | None, shared_option("mapping")]
BoxesOption = Annotated[Path | None, shared_option("boxes")]
ResamplesOption = Annotated[int, shared_option("resamples")]
SeedOption = Annotated[int, shared_option("seed")]
SourcesOption = Annotated[list[str] | None, shared_option("sources")]
OverwriteOption = Annotated[bool, shared_option("overwrite")]
TablesOption = Annotated[list[str] | None, shared_option("tables")]
JsonOption = Annotated[bool, shared_option("json")]
