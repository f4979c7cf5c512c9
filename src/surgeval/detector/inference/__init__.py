"""Detectors at work: open one, show it frames, folders or video, and keep what it found.

Names load on first use: the network needs torch, tables need polars, video needs PyAV, and a benchmark needs only the
first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from surgeval._lazy import lazy_exports

if TYPE_CHECKING:
    from surgeval.detector.inference._frames import detect_frames
    from surgeval.detector.inference._look import Looker, letterbox_on_device
    from surgeval.detector.inference._open import detector_digest, detector_files, open_detector
    from surgeval.detector.inference._run import Detected, DetectSettings, detect
    from surgeval.detector.inference._tdnet import Precision, TDNetDetector
    from surgeval.detector.inference.export import export_onnx
    from surgeval.detector.inference.film import DrawnBox, draw_boxes, write_film
    from surgeval.detector.inference.sources import Source, open_source
    from surgeval.detector.inference.tables import detection_table
    from surgeval.detector.inference.tracking import Tracker, Tracking

_HOMES = {
    "_frames": "detect_frames",
    "_look": "Looker letterbox_on_device",
    "_open": "detector_digest detector_files open_detector",
    "_run": "DetectSettings Detected detect",
    "_tdnet": "Precision TDNetDetector",
    "export": "export_onnx",
    "film": "DrawnBox draw_boxes write_film",
    "sources": "Source open_source",
    "tables": "detection_table",
    "tracking": "Tracker Tracking",
}

__all__ = [
    "DetectSettings",
    "Detected",
    "DrawnBox",
    "Looker",
    "Precision",
    "Source",
    "TDNetDetector",
    "Tracker",
    "Tracking",
    "detect",
    "detect_frames",
    "detection_table",
    "detector_digest",
    "detector_files",
    "draw_boxes",
    "export_onnx",
    "letterbox_on_device",
    "open_detector",
    "open_source",
    "write_film",
]

__getattr__, __dir__ = lazy_exports(__name__, _HOMES)
