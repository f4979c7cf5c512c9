"""Filling in the chat template of a stranger's folder: bounded in steps and in memory.

Jinja's sandbox keeps a template from files and from Python's insides, and bounds each of its loops. It does not bound
loops in loops, nor what a single step makes: `"a" * 10 ** 10` is ten gigabytes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

__all__ = ["few_steps"]

_MOST_STEPS = 200_000  # lines of a compiled template that are run
_MOST_MEMORY = 1 << 30  # bytes more than the process has


@contextmanager
def few_steps() -> Iterator[None]:
    """End a template that runs for too long or takes too much memory, with an error that is no surprise."""
    steps = 0

    def count(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal steps
        if frame.f_code.co_filename != "<template>":
            return None
        steps += 1
        if steps > _MOST_STEPS:
            raise RuntimeError(f"more than {_MOST_STEPS} steps")
        return count

    before = sys.gettrace()
    try:
        with _little_memory():
            sys.settrace(count)
            yield
    except MemoryError:
        raise RuntimeError(f"more than {_MOST_MEMORY >> 20} MB of memory") from None
    finally:
        sys.settrace(before)


@contextmanager
def _little_memory() -> Iterator[None]:
    """Refuse memory beyond what the process has and a margin; where the system does not tell, nothing is refused.

    The limit is the process's: for the milliseconds that a template takes, other threads share the margin.
    """
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    except (ImportError, OSError, ValueError, IndexError):
        yield
        return
    wanted = pages * os.sysconf("SC_PAGE_SIZE") + _MOST_MEMORY
    allowed = [limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_AS, (min([wanted, *allowed]), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
