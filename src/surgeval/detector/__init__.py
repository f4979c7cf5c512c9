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
    from surgeval.detector.data import TrainingSet
    from surgeval.detector.inference import detect_frames, open_detector
    from surgeval.detector.nms import SELECTING, Found, Selecting
    from surgeval.detector.rtdetr import rtdetr_settings, train_rtdetr
    from surgeval.detector.training import Trained, TrainSettings, train_tdnet

_HOMES = {
    "_checkpoint": ("Loaded", "load_detector", "save_detector"),
    "_classes": ("TASKS", "Classes", "Task"),
    "_head": ("BINS", "STRIDES", "HeadOutput", "decode"),
    "_network": ("SIZES", "TDNet", "build_tdnet", "student_of"),
    "_state": ("load_state", "save_state"),
    "data": ("TrainingSet",),
    "inference": ("detect_frames", "open_detector"),
    "nms": ("SELECTING", "Found", "Selecting"),
    "rtdetr": ("rtdetr_settings", "train_rtdetr"),
    "training": ("TrainSettings", "Trained", "train_tdnet"),
}

__all__ = [
    "BINS",
    "SELECTING",
    "SIZES",
    "STRIDES",
    "TASKS",
    "Classes",
    "Found",
    "HeadOutput",
    "Loaded",
    "Selecting",
    "TDNet",
    "Task",
    "TrainSettings",
    "Trained",
    "TrainingSet",
    "build_tdnet",
    "decode",
    "detect_frames",
    "load_detector",
    "load_state",
    "open_detector",
    "rtdetr_settings",
    "save_detector",
    "save_state",
    "student_of",
    "train_rtdetr",
    "train_tdnet",
]

__getattr__, __dir__ = lazy_exports(__name__, _HOMES)
