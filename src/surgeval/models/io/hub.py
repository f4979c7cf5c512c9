"""The local copy of a model or dataset on the Hugging Face hub: only data files are fetched, never code."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from surgeval.errors import BadInput, MissingExtra, did_you_mean, printable

__all__ = ["hub_folder"]

_HUB_NAME = re.compile(r"[\w-][\w.-]{0,95}/[\w-][\w.-]{0,95}")
_LONGEST = 160  # characters of the client's own sentence


def hub_folder(
    name: str,
    files: Sequence[str],
    *,
    repo_type: Literal["model", "dataset"] = "model",
    text: str = "",
    others: Sequence[str] = (),
) -> Path:
    """The folder that holds `files` (patterns) of the hub's model or dataset OWNER/NAME, in the hub client's own cache.

    `text` is what the user wrote, `others` the names that would have been understood as well.

    >>> hub_folder("no-such-folder", ["*.safetensors"])
    Traceback (most recent call last):
    surgeval.errors.BadInput: model 'no-such-folder': found no such file or folder, expected one or a hub name ...
    """
    what = f"{repo_type} {text or name!r}"
    if not _HUB_NAME.fullmatch(name):
        known = f", a hub name OWNER/NAME or one of {', '.join(others)}" if others else " or a hub name OWNER/NAME"
        meant = did_you_mean(text or name, others)
        raise BadInput(f"{what}: found no such file or folder, expected one{known}{meant}")
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError
    except ImportError as error:
        raise MissingExtra(what, error.name or "huggingface_hub") from None
    failures: tuple[type[Exception], ...] = (OSError, ValueError, *HfHubHTTPError.__bases__)  # its HTTP client's own
    try:
        return Path(snapshot_download(name, repo_type=repo_type, allow_patterns=list(files)))
    except failures as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise BadInput(f"{what}: found no {repo_type} of that name on the hub ({printable(reason)[:_LONGEST]}), "
                       "expected a folder or a reachable hub name") from error  # fmt: skip
