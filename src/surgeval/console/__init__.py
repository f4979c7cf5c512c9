"""How commands look: one console, aligned tables, progress; `options` that commands share, `panels` of their help.

Protocols bring their own commands, so this lies below them; the tree of commands is `surgeval.cli`.
"""

from surgeval.console.extras import models_missing, require_models
from surgeval.console.given import claim_file, claim_folder, open_named, release_folders
from surgeval.console.progress_bars import Progress, keep_times, progress_bar, say_times
from surgeval.console.screen import print_frame, print_json, print_pieces, print_table, rich_console, standard_streams

__all__ = [
    "Progress",
    "claim_file",
    "claim_folder",
    "keep_times",
    "models_missing",
    "open_named",
    "print_frame",
    "print_json",
    "print_pieces",
    "print_table",
    "progress_bar",
    "release_folders",
    "require_models",
    "rich_console",
    "say_times",
    "standard_streams",
]
