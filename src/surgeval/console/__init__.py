"""How commands look: one console, aligned tables, progress, and the options that commands share.

Protocols bring their own commands, so this lies below them; the tree of commands is `surgeval.cli`.
"""

from surgeval.console._extras import EXTRA_PACKAGES, models_missing, require_models
from surgeval.console._help import CAUSES, JUDGING, MAPS, MOTION, READING, RUNNING, SCORING, flow_help, grouped
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
from surgeval.console._progress import Progress, keep_times, progress, say_times
from surgeval.console._screen import (
    console,
    print_frame,
    print_json,
    print_pieces,
    print_table,
    standard_streams,
)

__all__ = [
    "CAUSES",
    "EXTRA_PACKAGES",
    "JUDGING",
    "MAPS",
    "MOTION",
    "READING",
    "RUNNING",
    "SCORING",
    "BoxesOption",
    "FormatOption",
    "JsonOption",
    "LabelsOption",
    "MappingOption",
    "Progress",
    "ResamplesOption",
    "SeedOption",
    "claim_folder",
    "console",
    "flow_help",
    "grouped",
    "keep_times",
    "models_missing",
    "open_named",
    "print_frame",
    "print_json",
    "print_pieces",
    "print_table",
    "progress",
    "require_models",
    "say_times",
    "standard_streams",
]
