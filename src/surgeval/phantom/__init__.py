"""The phantom: a scripted laparoscopic operation whose every label is known.

`make_procedure(seed)` decides what happens, `Footage` films it, `write_phantom` writes a dataset with labels and
questions, `write_edition("phantom-v1", folder)` the fixed one that results are quoted on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from surgeval._lazy import lazy_exports
from surgeval.phantom.dataset._edition import EDITIONS, Edition, VideoPlan, edition, plan_videos
from surgeval.phantom.dataset._pins import PHANTOM_V1_FRAMES, PHANTOM_V1_SHA256, PHANTOM_V1_VIDEOS
from surgeval.phantom.questions._intent_questions import make_intent_questions
from surgeval.phantom.questions.focus._questions import make_focus_questions
from surgeval.phantom.scene._corruptions import corrupt
from surgeval.phantom.scene._footage import Footage
from surgeval.phantom.scene._looks import LOOKS
from surgeval.phantom.scene._render import Rendered, Renderer
from surgeval.phantom.scene._sheet import caption_sheet
from surgeval.phantom.script._anatomy import Anatomy, build_anatomy
from surgeval.phantom.script._gaze import make_gaze
from surgeval.phantom.script._graph import SceneGraph, graph_from_json
from surgeval.phantom.script._procedure import FPS, Procedure, make_procedure
from surgeval.phantom.script._procedures import PROCEDURES
from surgeval.phantom.script._state import (
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
    from surgeval.phantom.dataset._detectors import simulate_detector
    from surgeval.phantom.dataset._film import truth_film, video_mp4
    from surgeval.phantom.dataset._write import edition_hash, write_edition, write_phantom

# Tables (polars) and video files (av) load on first use: a machine that only renders and trains needs neither.
_HOMES = {
    "dataset._detectors": "simulate_detector",
    "dataset._film": "truth_film video_mp4",
    "dataset._write": "edition_hash write_edition write_phantom",
}

__all__ = [
    "EDITIONS", "FPS", "LOOKS", "PHANTOM_V1_FRAMES", "PHANTOM_V1_SHA256", "PHANTOM_V1_VIDEOS", "PROCEDURES",
    "Anatomy", "CameraPose", "Corruption", "Edition", "Footage", "Look", "Mark", "ObjectState",
    "Procedure", "Pull", "Rendered", "Renderer", "SceneGraph", "SceneState", "Spot", "ToolState", "VideoPlan",
    "build_anatomy", "camera_motion", "caption_sheet", "corrupt", "edition", "edition_hash", "graph_from_json",
    "make_focus_questions", "make_gaze", "make_intent_questions", "make_procedure", "plan_videos",
    "simulate_detector", "truth_film", "video_mp4", "write_edition", "write_phantom",
]  # fmt: skip


__getattr__, __dir__ = lazy_exports(__name__, _HOMES)
