"""Sketched videos: scripts and labels from outlines, without the renderer's pixels."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from surgeval.phantom import FPS, Procedure, SceneGraph, VideoPlan, make_gaze, make_procedure, plan_videos
from surgeval.phantom.dataset.truth import LabelledFrame, label
from surgeval.phantom.script.graph import build_graph, known_things
from surgeval.phantom.script.state import CameraPose, SceneState, ToolState
from surgeval.records import Gaze

WIDTH, HEIGHT = 224, 128
ORGANS = ("", "liver", "gallbladder", "omentum", "gut")


@dataclass(frozen=True)
class Sketch:
    """What an outline drawing shows: shafts as thick lines, objects as discs."""

    masks: dict[int, npt.NDArray[np.bool_]]
    object_masks: dict[int, npt.NDArray[np.bool_]]
    organ_map: npt.NDArray[np.uint8]

    @classmethod
    def of(cls, state: SceneState) -> Sketch:
        cover = np.zeros((HEIGHT, WIDTH), np.uint8)
        for thing in state.objects:
            if thing.state == "visible":
                cv2.circle(cover, _pixel(state.camera, (thing.x, thing.y)), 5, 100 + thing.number, -1)
        for tool in sorted(state.tools, key=lambda t: t.depth):
            ends = _pixel(state.camera, tool.entry), _pixel(state.camera, tool.tip)
            cv2.line(cover, *ends, tool.track, 6)
        organs = np.full((HEIGHT, WIDTH), 1, np.uint8)
        organs[:, WIDTH // 2 :] = 3
        if state.gallbladder_at is not None and state.gallbladder == "detached":
            cv2.circle(organs, _pixel(state.camera, state.gallbladder_at), 12, 2, -1)
        organs[cover > 0] = 0
        return cls(
            {tool.track: cover == tool.track for tool in state.tools},
            {thing.number: cover == 100 + thing.number for thing in state.objects},
            organs,
        )


class Still:
    """Instruments that do not move in the image: stands where the renderer's motion would."""

    def tool_motion(self, before: ToolState, cam0: CameraPose, after: ToolState, cam1: CameraPose) -> tuple[float, ...]:
        return (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)


def _pixel(camera: CameraPose, point: tuple[float, float]) -> tuple[int, int]:
    x, y = camera.project(point, WIDTH, HEIGHT)
    return round(x), round(y)


@dataclass(frozen=True)
class Sketched:
    """One video of the edition with its labels."""

    plan: VideoPlan
    procedure: Procedure
    gaze: tuple[Gaze, ...]
    labelled: tuple[LabelledFrame, ...]
    graph: SceneGraph


def sketch_videos(seed: int, videos: int, seconds: float = 60.0) -> tuple[Sketched, ...]:
    """The videos of a seed, at one label a second."""
    made = []
    for plan in plan_videos(seed, videos):
        procedure = make_procedure(plan.seed, seconds, plan.procedure)
        gaze, known = make_gaze(procedure, WIDTH, HEIGHT), known_things(procedure)
        labelled = tuple(
            label(plan.name, k * FPS, procedure, known, Sketch.of(procedure.state(k)), Still(), gaze, ORGANS)
            for k in range(round(seconds))
        )
        graph = build_graph(plan.name, procedure, known, [item.view for item in labelled])
        made.append(Sketched(plan, procedure, gaze, labelled, graph))
    return tuple(made)
