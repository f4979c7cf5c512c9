"""The phantom: a scripted laparoscopic operation whose every label is known.

`make_procedure(seed)` decides what happens, `Footage` films it, `write_phantom` writes a dataset with labels and
questions, `write_edition("phantom-v1", folder)` the fixed one that results are quoted on.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from surgeval.phantom._anatomy import Anatomy, build_anatomy
from surgeval.phantom._corruptions import corrupt
from surgeval.phantom._edition import EDITIONS, Edition, VideoPlan, edition, plan_videos
from surgeval.phantom._focus_questions import make_focus_questions
from surgeval.phantom._footage import Footage
from surgeval.phantom._gaze import make_gaze
from surgeval.phantom._graph import SceneGraph, graph_from_json
from surgeval.phantom._intent_questions import make_intent_questions
from surgeval.phantom._looks import LOOKS
from surgeval.phantom._pins import PHANTOM_V1_FRAMES, PHANTOM_V1_SHA256, PHANTOM_V1_VIDEOS
from surgeval.phantom._procedures import PLAUSIBLE, PROCEDURES
from surgeval.phantom._render import Rendered, Renderer
from surgeval.phantom._script import FPS, Procedure, make_procedure
from surgeval.phantom._sheet import contact_sheet
from surgeval.phantom._state import (
    CameraPose,
    Corruption,
    Look,
    Mark,
    ObjectState,
    Pull,
    SceneState,
    Spot,
    ToolState,
    camera_motion,
)

if TYPE_CHECKING:
    from surgeval.phantom._detectors import simulate_detector
    from surgeval.phantom._film import truth_film, video_mp4
    from surgeval.phantom._write import edition_hash, write_edition, write_phantom

# Tables (polars) and video files (av) load on first use: a machine that only renders and trains needs neither.
_LAZY = {
    "edition_hash": "_write",
    "simulate_detector": "_detectors",
    "truth_film": "_film",
    "video_mp4": "_film",
    "write_edition": "_write",
    "write_phantom": "_write",
}

__all__ = [
    "EDITIONS", "FPS", "LOOKS", "PHANTOM_V1_FRAMES", "PHANTOM_V1_SHA256", "PHANTOM_V1_VIDEOS", "PLAUSIBLE",
    "PROCEDURES", "Anatomy", "CameraPose", "Corruption", "Edition", "Footage", "Look", "Mark", "ObjectState",
    "Procedure", "Pull", "Rendered", "Renderer", "SceneGraph", "SceneState", "Spot", "ToolState", "VideoPlan",
    "build_anatomy", "camera_motion", "contact_sheet", "corrupt", "edition", "edition_hash", "graph_from_json",
    "make_focus_questions", "make_gaze", "make_intent_questions", "make_procedure", "plan_videos",
    "simulate_detector", "truth_film", "video_mp4", "write_edition", "write_phantom",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(f"surgeval.phantom.{_LAZY[name]}"), name)
    raise AttributeError(f"module 'surgeval.phantom' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
