"""The settings of a stranger's network: walked, and without an address of code.

transformers takes `attn_implementation: someone/kernel` for a compiled program on its hub, fetches and runs it where
the package for that is installed; no option of it forbids that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from surgeval.errors import DataError

__all__ = ["all_settings", "refuse_kernels"]

_SUFFIX = "_implementation"


def all_settings(settings: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Names and values of a configuration and of the ones inside it, each named with what it stands in.

    >>> list(all_settings({"a": 1, "text_config": {"b": 2}}))
    [('a', 1), ('text_config', {'b': 2}), ('text_config.b', 2)]
    """
    for name, value in settings.items():
        yield f"{above}{name}", value
        if isinstance(value, Mapping):
            yield from all_settings(value, f"{above}{name}.")


def refuse_kernels(settings: Mapping[str, Any], file: object) -> None:
    """Raise `DataError` where a setting that names an implementation leads to one of somebody's own."""
    for name, value in all_settings(settings):
        implementation = any(part.endswith(_SUFFIX) for part in name.split("."))
        if implementation and isinstance(value, str) and not value.replace("_", "").isalnum():
            raise DataError(
                file, f"found {repr(value)[:80]}, expected one that transformers has itself", field=name[:80]
            )
