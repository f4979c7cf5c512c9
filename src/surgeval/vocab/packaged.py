"""Packaged vocabulary files, read once."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def packaged(name: str) -> Any:
    """The parsed content of `vocab/data/NAME.json`."""
    return json.loads((files("surgeval.vocab") / "data" / f"{name}.json").read_text(encoding="utf-8"))
