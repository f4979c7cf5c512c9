"""Surgical triplet detectors: TDnet and its parts; names load on first use, as most need torch.

`build_tdnet` makes a network for the `Classes` of a label space, `save_detector` and `load_detector` keep it in one
file, `student_of` makes the copy that self-distillation trains; `train_tdnet` does all of it in a folder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from surgeval._lazy import lazy_exports

if TYPE_CHECKING:
    from surgeval.detector._checkpoint import Loaded, load_detector, save_detector
    from surgeval.detector._classes import TASKS, Classes, Task
    from surgeval.detector._head import BINS, STRIDES, HeadOutput, decode
    from surgeval.detector._interface import Network, Raw
    from surgeval.detector._network import SIZES, TDNet, build_tdnet, student_of
    from surgeval.detector._state import load_state, save_state
    from surgeval.detector.assign import ASSIGNMENT_RULES, Assignment, AssignmentRule, BatchTruth, assign_output
    from surgeval.detector.data import TrainingSet
    from surgeval.detector.geometry import Fit, ciou, iou
    from surgeval.detector.inference import detect_frames, open_detector
    from surgeval.detector.losses import Losses, LossSettings, student_loss, teacher_loss
    from surgeval.detector.nms import SELECTING, Found, Selecting, select
    from surgeval.detector.rtdetr import rtdetr_settings, train_rtdetr
    from surgeval.detector.training import Trained, TrainSettings, train_tdnet

# The functions assign and nms are not here: their modules would shadow them.
_HOMES = {
    "_checkpoint": "Loaded load_detector save_detector",
    "_classes": "TASKS Classes Task",
    "_head": "BINS STRIDES HeadOutput decode",
    "_interface": "Network Raw",
    "_network": "SIZES TDNet build_tdnet student_of",
    "_state": "load_state save_state",
    "assign": "ASSIGNMENT_RULES Assignment AssignmentRule BatchTruth assign_output",
    "data": "TrainingSet",
    "geometry": "Fit ciou iou",
    "inference": "detect_frames open_detector",
    "losses": "LossSettings Losses student_loss teacher_loss",
    "nms": "SELECTING Found Selecting select",
    "rtdetr": "rtdetr_settings train_rtdetr",
    "training": "TrainSettings Trained train_tdnet",
}

__all__ = [
    "ASSIGNMENT_RULES",
    "BINS",
    "SELECTING",
    "SIZES",
    "STRIDES",
    "TASKS",
    "Assignment",
    "AssignmentRule",
    "BatchTruth",
    "Classes",
    "Fit",
    "Found",
    "HeadOutput",
    "Loaded",
    "LossSettings",
    "Losses",
    "Network",
    "Raw",
    "Selecting",
    "TDNet",
    "Task",
    "TrainSettings",
    "Trained",
    "TrainingSet",
    "assign_output",
    "build_tdnet",
    "ciou",
    "decode",
    "detect_frames",
    "iou",
    "load_detector",
    "load_state",
    "open_detector",
    "rtdetr_settings",
    "save_detector",
    "save_state",
    "select",
    "student_loss",
    "student_of",
    "teacher_loss",
    "train_rtdetr",
    "train_tdnet",
]

__getattr__, __dir__ = lazy_exports(__name__, _HOMES)
