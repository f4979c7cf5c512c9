"""The local copy of a model on the Hugging Face hub: only data files are fetched, never code."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from surgeval.errors import BadInput, did_you_mean

__all__ = ["hub_folder"]

_HUB_NAME = re.compile(r"[\w-][\w.-]{0,95}/[\w-][\w.-]{0,95}")


def hub_folder(name: str, files: Sequence[str], *, text: str = "", others: Sequence[str] = ()) -> Path:
    """The folder that holds `files` (patterns) of the hub's model OWNER/NAME.

    `text` is what the user wrote, `others` the names that would have been understood as well.

    >>> hub_folder("no-such-folder", ["*.safetensors"])
    Traceback (most recent call last):
    surgeval.errors.BadInput: model 'no-such-folder': found no such file or folder, expected one or a hub name ...
    """
    text = text or name
    if not _HUB_NAME.fullmatch(name):
        known = f", a hub name OWNER/NAME or one of {', '.join(others)}" if others else " or a hub name OWNER/NAME"
        raise BadInput(f"model {text!r}: found no such file or folder, expected one{known}{did_you_mean(text, others)}")
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, allow_patterns=list(files)))
    except (OSError, ValueError) as error:
        raise BadInput(f"model {text!r}: found no such folder, and the hub gave no model of that name "
                       f"({type(error).__name__}), expected a folder or a reachable hub name") from error  # fmt: skip
