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
    from surgeval.detector.assign import RULES, Assignment, Rule, Truth, assign_output
    from surgeval.detector.geometry import Fit, ciou, iou
    from surgeval.detector.losses import Losses, LossSettings, student_loss, teacher_loss
    from surgeval.detector.nms import SELECTING, Found, Selecting, select

# The functions assign and nms are not here: their modules would shadow them.
_HOMES = {
    "_checkpoint": ("Loaded", "load_detector", "save_detector"),
    "_classes": ("TASKS", "Classes", "Task"),
    "_head": ("BINS", "STRIDES", "HeadOutput", "decode"),
    "_network": ("SIZES", "TDNet", "build_tdnet", "student_of"),
    "_state": ("load_state", "save_state"),
    "assign": ("RULES", "Assignment", "Rule", "Truth", "assign_output"),
    "geometry": ("Fit", "ciou", "iou"),
    "losses": ("LossSettings", "Losses", "student_loss", "teacher_loss"),
    "nms": ("SELECTING", "Found", "Selecting", "select"),
}

__all__ = [
    "BINS",
    "RULES",
    "SELECTING",
    "SIZES",
    "STRIDES",
    "TASKS",
    "Assignment",
    "Classes",
    "Fit",
    "Found",
    "HeadOutput",
    "Loaded",
    "LossSettings",
    "Losses",
    "Rule",
    "Selecting",
    "TDNet",
    "Task",
    "Truth",
    "assign_output",
    "build_tdnet",
    "ciou",
    "decode",
    "iou",
    "load_detector",
    "load_state",
    "save_detector",
    "save_state",
    "select",
    "student_loss",
    "student_of",
    "teacher_loss",
]

__getattr__, __dir__ = lazy_exports(__name__, _HOMES)
