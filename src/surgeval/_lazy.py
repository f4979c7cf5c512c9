"""Names that load on first use (PEP 562): `import surgeval` stays fast and needs no torch.

A package lists its public names by the module that holds them and takes two functions from here:
`__getattr__, __dir__ = lazy_exports(__name__, {"_maps": "Maps Method"})`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["lazy_exports"]


def lazy_exports(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package whose modules (relative to it) hold the given names.

    >>> look_up, names = lazy_exports("surgeval", {"_version": "__version__"})
    >>> names(), isinstance(look_up("__version__"), str)
    (['__version__'], True)
    """
    home = {name: module for module, names in homes.items() for name in names.split()}

    def look_up(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{home[name]}"), name)

    return look_up, lambda: sorted(home)
