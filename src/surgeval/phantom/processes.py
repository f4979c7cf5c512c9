"""Rendering in worker processes, each on one thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from surgeval.phantom.scene.texture import one_thread

__all__ = ["work_on_one_thread"]

Job = TypeVar("Job")
Made = TypeVar("Made")


def work_on_one_thread(work: Callable[[Job], Made], job: Job) -> Made:
    """Run `work` with OpenCV on one thread: there is one process per core already."""
    with one_thread():
        return work(job)
