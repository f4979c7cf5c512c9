"""`kernel`: compile a function with numba, cached on disk where that is possible.

No fastmath: the conventions are compared to 1e-9 and better. A kernel may call kernels of its own file only, because
numba's cache notices changes in that file alone. A read-only installation without a writable cache folder still works;
it compiles once per process instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

__all__ = ["kernel"]

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile `function` in nopython mode, releasing the GIL."""
    try:
        return cast(F, njit(cache=True, nogil=True)(function))
    except RuntimeError as error:
        if "cannot cache" not in str(error):
            raise
        return cast(F, njit(nogil=True)(function))
