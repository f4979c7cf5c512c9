"""The labels of one frame, from the scripted state and the renderer's masks.

What counts is what can be seen: boxes enclose the visible mask of the whole instrument, an instrument with fewer than
30 visible pixels is not labelled, an object is visible where at least 12 of its pixels are. Names stay names here;
`Frame` carries ids of the phantom label space.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from surgeval.arrays import Bools, Image
from surgeval.phantom.script.gaze import fixations_at
from surgeval.phantom.script.graph import Known, SeenThing, SeenTool, Visibility
from surgeval.phantom.script.procedure import FPS, Procedure
from surgeval.phantom.script.state import (
    BASE_WIDTH,
    CameraPose,
    Corruption,
    SceneState,
    ToolState,
    camera_motion,
    displaced,
)
from surgeval.records import Box, Frame, Gaze, Instance, Mask, Point, Triplet
from surgeval.vocab import load_labels

MIN_TOOL, MIN_OBJECT = 30, 12  # visible pixels
NEIGHBOURHOOD = 30.0  # half side of the interaction region, world units
MIN_ORGAN = 0.012  # share of the frame


class SeenInstance(Protocol):
    """What the renderer says is visible."""

    @property
    def masks(self) -> Mapping[int, Bools]: ...
    @property
    def object_masks(self) -> Mapping[int, Bools]: ...
    @property
    def organ_map(self) -> Image: ...


class Mover(Protocol):
    """The exact motion of a rigid instrument in the image."""

    def tool_motion(
        self, before: ToolState, cam0: CameraPose, after: ToolState, cam1: CameraPose
    ) -> tuple[float, ...]: ...


@dataclass(frozen=True, slots=True)
class LabelledFrame:
    """A labelled frame, what is wrong with its image, and its node in the scene graph."""

    frame: Frame
    corruption: Corruption | None
    view: Visibility


def label(
    video: str,
    index: int,
    procedure: Procedure,
    known: Sequence[Known],
    seen: SeenInstance,
    mover: Mover,
    gaze: tuple[Gaze, ...],
    organ_names: Sequence[str],
) -> LabelledFrame:
    """The truth of frame number `index` of the video (25 per second)."""
    time = index / FPS
    state, after = procedure.state(time), procedure.state((index + 1) / FPS)
    height, width = seen.organ_map.shape
    working = procedure.working(time)
    successors = {tool.track: tool for tool in after.tools}
    instances, tools = [], []
    region: Box | None = None
    for tool in sorted(state.tools, key=lambda t: t.track):
        pixels = seen.masks.get(tool.track)
        if pixels is None or int(pixels.sum()) < MIN_TOOL:
            continue
        motion = mover.tool_motion(tool, state.camera, successors.get(tool.track, tool), after.camera)
        instances.append(_instance(tool, pixels, state.camera, motion, width, height))
        tip = state.camera.project(tool.tip, width, height)
        x, y = round(tip[0] / (width - 1), 4), round(tip[1] / (height - 1), 4)
        tools.append(SeenTool(tool.track, tool.instrument, tool.verb, tool.target, x, y))
        if working is not None and tool.track == working.track and tool.contact is not None:
            region = _region(tool.contact, state.camera, seen)
    things = tuple(t for t in (_thing(k, state, seen, organ_names) for k in known) if t is not None)
    name = f"{index:06d}"
    space = load_labels("phantom")
    corruption = procedure.corruption(time)
    frame = Frame(
        video=video,
        name=name,
        index=index,
        time=round(time, 6),
        image=None,
        width=width,
        height=height,
        instances=tuple(instances),
        phase=space.id("phase", state.phase),
        camera=camera_motion(state.camera, after.camera, width, height),
        gaze=fixations_at(gaze, time),
        region=region,
        objects={thing.key: thing.state for thing in things},
    )
    shown = None if working is None or not any(t.track == working.track for t in tools) else working.track
    organs = _organs(seen.organ_map, organ_names)
    return LabelledFrame(
        frame,
        corruption,
        Visibility(round(time, 6), name, state.phase, shown, tuple(tools), things, organs, corruption is not None),
    )


def _instance(
    tool: ToolState,
    pixels: Bools,
    camera: CameraPose,
    motion: tuple[float, ...],
    width: int,
    height: int,
) -> Instance:
    space = load_labels("phantom")
    mask = Mask.from_array(pixels)
    points = {"tip": _rounded(camera.project(tool.tip, width, height))}
    if tool.contact is not None:
        points["contact"] = _rounded(camera.project(tool.contact, width, height))
    return Instance(
        Triplet(space.id("instrument", tool.instrument), space.id("verb", tool.verb), space.id("target", tool.target)),
        box=_tight(pixels),
        mask=mask,
        track=tool.track,
        points=points,
        motion=tuple(round(float(value), 6) for value in motion),
    )


def _tight(pixels: Bools) -> Box:
    rows, columns = np.flatnonzero(pixels.any(axis=1)), np.flatnonzero(pixels.any(axis=0))
    return Box.from_corners(float(columns[0]), float(rows[0]), float(columns[-1] + 1), float(rows[-1] + 1))


def _rounded(point: Point) -> Point:
    return (round(point[0], 2), round(point[1], 2))


def _in_field(x: float, y: float, seen: SeenInstance) -> bool:
    """Whether an image point lies in the round field: there is tissue, or something in front of it."""
    height, width = seen.organ_map.shape
    column, row = round(x), round(y)
    if not (0 <= column < width and 0 <= row < height):
        return False
    return bool(seen.organ_map[row, column]) or _covered(column, row, seen)


def _covered(column: int, row: int, seen: SeenInstance) -> bool:
    return any(mask[row, column] for mask in (*seen.masks.values(), *seen.object_masks.values()))


def _region(contact: Point, camera: CameraPose, seen: SeenInstance) -> Box | None:
    height, width = seen.organ_map.shape
    x, y = camera.project(contact, width, height)
    if not _in_field(x, y, seen):
        return None
    half = NEIGHBOURHOOD * camera.zoom * width / BASE_WIDTH
    box = Box(round(x - half, 2), round(y - half, 2), round(2 * half, 2), round(2 * half, 2)).clipped(width, height)
    return Box(box.x, box.y, round(box.w, 2), round(box.h, 2))


def _organs(organ_map: Image, names: Sequence[str]) -> tuple[str, ...]:
    counts = np.bincount(organ_map.ravel(), minlength=len(names))
    return tuple(name for k, name in enumerate(names) if name and counts[k] >= MIN_ORGAN * organ_map.size)


def _thing(known: Known, state: SceneState, seen: SeenInstance, organ_names: Sequence[str]) -> SeenThing | None:
    """The state of a foreign object in a frame; None while it is not in the abdomen."""
    if known.thing.at(state.time) is None:
        return None
    where = _whereabouts(known, state, seen, organ_names)
    if where is None:
        return None
    world, covered, pixels = where
    height, width = seen.organ_map.shape
    x, y = state.camera.project(world, width, height)
    in_field = _in_field(x, y, seen)
    if pixels is None:  # a clip on the tissue: the renderer draws it but gives no mask
        status = "out_of_view" if not in_field else "hidden" if _covered(round(x), round(y), seen) else "visible"
    elif not covered and int(pixels.sum()) >= MIN_OBJECT:
        status = "visible"
        rows, columns = np.nonzero(pixels)
        x, y = float(columns.mean()), float(rows.mean())
    else:
        status = "hidden" if covered or in_field else "out_of_view"
    return SeenThing(known.thing.key, status, round(x / (width - 1), 4), round(y / (height - 1), 4))


def _whereabouts(
    known: Known, state: SceneState, seen: SeenInstance, organ_names: Sequence[str]
) -> tuple[Point, bool, Bools | None] | None:
    """World position, whether it is covered, and its visible pixels where the renderer tells; None if not there."""
    nothing = np.zeros(seen.organ_map.shape, dtype=bool)
    if known.kind == "object":
        foreign = next((o for o in state.objects if o.number == known.number), None)
        if foreign is None:
            return None
        return (foreign.x, foreign.y), foreign.state == "hidden", seen.object_masks.get(foreign.number, nothing)
    if known.kind == "bag":
        tool = next((t for t in state.tools if t.track == known.number), None)
        return None if tool is None else (tool.tip, False, seen.masks.get(tool.track, nothing))
    if known.kind == "clip":
        if known.number >= len(state.marks):
            return None
        mark = state.marks[known.number]
        return displaced((mark.x, mark.y), state.pulls), False, None
    if state.gallbladder_at is None:
        return None
    return state.gallbladder_at, state.gallbladder == "bagged", seen.organ_map == list(organ_names).index("gallbladder")
