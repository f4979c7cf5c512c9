"""`kernel`: compile a function with numba, cached on disk where that is possible.

No fastmath: the conventions are compared to 1e-9 and better. A kernel may call kernels of its own file only, because
numba's cache notices changes in that file alone. numba caches beside the source, or in the user's cache folder where
the package folder is read-only. Where neither can be written (a service or container user without a home), a folder
of this user in the temporary folder takes the cache; without one, every process compiles for itself.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import config, njit

__all__ = ["kernel"]

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile `function` in nopython mode, releasing the GIL."""
    cached = _compile_cached(function)
    folder = _temporary_folder() if cached is None else None
    if folder is not None:
        usual = config.CACHE_DIR
        config.CACHE_DIR = str(folder)
        try:
            cached = _compile_cached(function)
        finally:
            config.CACHE_DIR = usual
    return cast(F, njit(nogil=True)(function)) if cached is None else cached


def _compile_cached(function: F) -> F | None:
    """The compiled function; None where numba finds no folder for its cache."""
    try:
        return cast(F, njit(cache=True, nogil=True)(function))
    except RuntimeError as error:
        if "cannot cache" not in str(error):
            raise
        return None


@cache
def _temporary_folder() -> Path | None:
    """A folder that only this user can write to, since cached code is executed."""
    if os.name == "nt":  # a user always has a profile there
        return None
    folder = Path(tempfile.gettempdir()) / f"surgeval-numba-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return None
    private = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o022
    return folder if private else None
