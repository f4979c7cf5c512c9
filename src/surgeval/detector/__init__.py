"""Surgical triplet detectors: TDnet and its parts; names load on first use, as most need torch.

`build_tdnet` makes a network for the `Classes` of a label space, `save_detector` and `load_detector` keep it in one
file, `student_of` makes the copy that self-distillation trains.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from surgeval._lazy import lazy_exports

if TYPE_CHECKING:
    from surgeval.detector._checkpoint import Loaded, load_detector, save_detector
    from surgeval.detector._classes import TASKS, Classes, Task
    from surgeval.detector._head import BINS, STRIDES, HeadOutput, decode
    from surgeval.detector._network import SIZES, TDNet, build_tdnet, student_of
    from surgeval.detector._state import load_state, save_state

_HOMES = {
    "_checkpoint": ("Loaded", "load_detector", "save_detector"),
    "_classes": ("TASKS", "Classes", "Task"),
    "_head": ("BINS", "STRIDES", "HeadOutput", "decode"),
    "_network": ("SIZES", "TDNet", "build_tdnet", "student_of"),
    "_state": ("load_state", "save_state"),
}

__all__ = [
    "BINS",
    "SIZES",
    "STRIDES",
    "TASKS",
    "Classes",
    "HeadOutput",
    "Loaded",
    "TDNet",
    "Task",
    "build_tdnet",
    "decode",
    "load_detector",
    "load_state",
    "save_detector",
    "save_state",
    "student_of",
]

__getattr__, __dir__ = lazy_exports(__name__, _HOMES)
