"""Settings as text: `name=value` from a command line, and nested settings as rows of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar

from surgeval.errors import BadInput
from surgeval.files import BrokenJson, parse_json

__all__ = ["read_settings", "setting_rows", "with_changes", "with_texts"]

Settings = TypeVar("Settings")
_LONGEST = 300


def with_changes(settings: Settings, changes: Mapping[str, Any]) -> Settings:
    """Settings (a dataclass) with some fields changed; an unknown one is refused.

    >>> from dataclasses import make_dataclass
    >>> with_changes(make_dataclass("Plan", ["epochs"])(epochs=3), {"batch": 4})
    Traceback (most recent call last):
    surgeval.errors.BadInput: setting batch: expected one of epochs
    """
    known = [field.name for field in fields(settings)]  # type: ignore[arg-type]
    for name in changes:
        if name not in known:
            raise BadInput(f"setting {name[:60]}: expected one of {', '.join(known)}")
    return replace(settings, **changes)  # type: ignore[type-var]


def with_texts(settings: Settings, texts: Sequence[str]) -> Settings:
    """The same from `name=value`.

    >>> from dataclasses import make_dataclass
    >>> with_texts(make_dataclass("Plan", ["epochs", "preset"])(3, "scratch"), ["epochs=5", "preset=paper"])
    Plan(epochs=5, preset='paper')
    """
    return with_changes(settings, read_settings(texts))


def read_settings(texts: Sequence[str]) -> dict[str, Any]:
    """Values by name from `name=value`; a value is JSON, or a word.

    >>> read_settings(["epochs=5", "preset=paper"])
    {'epochs': 5, 'preset': 'paper'}
    """
    changes: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise BadInput(f"setting {text[:60]!r}: there is no '='. Write NAME=VALUE.")
        try:
            changes[name] = parse_json(value, finite=True)
        except BrokenJson:  # a word
            changes[name] = value
    return changes


def setting_rows(value: Any, where: str = "", *, without: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Nested settings as rows of names and short texts; keys in `without` are left out, wherever they stand.

    >>> setting_rows({"size": "n", "loss": {"box": 7.5, "counts": [1, 2]}}, without=["counts"])
    [('size', 'n'), ('loss.box', '7.5')]
    """
    if isinstance(value, Mapping):
        inner = [(f"{where}.{key}" if where else str(key), item) for key, item in value.items() if key not in without]
        return [row for name, item in inner for row in setting_rows(item, name, without=without)]
    if isinstance(value, list | tuple):
        return [(where[:80], ", ".join(map(str, value))[:_LONGEST])]
    return [(where[:80], f"{value:.6g}" if isinstance(value, float) else str(value)[:_LONGEST])]
