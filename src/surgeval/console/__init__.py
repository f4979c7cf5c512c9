"""How commands look: one console, aligned tables, progress, and the options that commands share.

Protocols bring their own commands, so this lies below them; the tree of commands is `surgeval.cli`.
"""

from surgeval.console._options import (
    BoxesOption,
    FormatOption,
    JsonOption,
    LabelsOption,
    MappingOption,
    ResamplesOption,
    SeedOption,
    claim_folder,
    open_named,
)
from surgeval.console._screen import (
    console,
    print_frame,
    print_json,
    print_pieces,
    print_table,
    progress,
    standard_streams,
)

__all__ = [
    "BoxesOption",
    "FormatOption",
    "JsonOption",
    "LabelsOption",
    "MappingOption",
    "ResamplesOption",
    "SeedOption",
    "claim_folder",
    "console",
    "open_named",
    "print_frame",
    "print_json",
    "print_pieces",
    "print_table",
    "progress",
    "standard_streams",
]
