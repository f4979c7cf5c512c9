"""Processes that the demo starts: forked from one that has imported what all need, and ended with their parent.

Where there is no fork server, or forking is not safe (macOS), each imports for itself.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context, parent_process
from multiprocessing.context import ForkServerContext, SpawnContext
from typing import Any

from surgeval._signals import deaf_children
from surgeval.processes import defer_interrupts

__all__ = ["process_context", "worker_pool"]

# What takes seconds to import and starts no thread by that (polars does); absent ones are passed over.
_HEAVY = (
    "scipy.ndimage", "cv2", "jinja2", "matplotlib.figure", "matplotlib.backends.backend_svg",
    "matplotlib.backends.backend_agg", "torch", "transformers.models.auto", "transformers.models.clip.modeling_clip",
    "transformers.models.llava.modeling_llava",
)  # fmt: skip


def process_context() -> SpawnContext | ForkServerContext:
    """How processes are started here.

    >>> process_context().get_start_method() in ("forkserver", "spawn")
    True
    """
    if not sys.platform.startswith("linux"):
        return get_context("spawn")
    context = get_context("forkserver")
    context.set_forkserver_preload(list(_HEAVY))
    return context


def worker_pool(
    workers: int, initializer: Callable[..., None] | None = None, initargs: tuple[Any, ...] = (), *, light: bool = False
) -> ProcessPoolExecutor:
    """A pool of processes that end when this one does, however it does; `light` ones import for themselves.

    A process of the pool has no share in this one's fork server: its own pools start another.

    >>> with worker_pool(2) as pool:  # none is started before there is work
    ...     list(pool.map(abs, ()))
    []
    """
    context = get_context("spawn") if light else process_context()
    return _DeafPool(workers, mp_context=context, initializer=_begin, initargs=(initializer, initargs))


class _DeafPool(ProcessPoolExecutor):
    """Its processes, which begin when work is handed in, ignore Ctrl-C: the one that a person started answers.

    To have been started so is not enough for what a process starts in turn: polars puts a handler of its own in place.
    """

    def submit(self, *work: Any, **named: Any) -> Future[Any]:
        with deaf_children():
            return super().submit(*work, **named)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Who cannot wait for the work ends the processes first, as the demo does."""
        with defer_interrupts():
            super().shutdown(wait, cancel_futures=cancel_futures)


def _begin(initializer: Callable[..., None] | None, arguments: tuple[Any, ...]) -> None:
    threading.Thread(target=_end_with_parent, name="surgeval-parent", daemon=True).start()
    if initializer is not None:
        initializer(*arguments)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
