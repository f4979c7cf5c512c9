"""Frames for training and examination: phantom video, filmed at full size and squashed to the models' input.

Videos come from seeds that no edition uses. Beside each picture stands a map of who covers each pixel, so that the
tools of one frame can be laid over the clean tissue (a *plate*) of another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace

import cv2
import numpy as np
import PIL.Image

from surgeval.arrays import Bools, Bytes, Image, Int16s, Int32s, Singles
from surgeval.phantom.dataset.edition import VideoPlan, plan_videos
from surgeval.phantom.dataset.truth import MIN_TOOL
from surgeval.phantom.processes import map_in_processes
from surgeval.phantom.scene.footage import Footage
from surgeval.phantom.scene.instruments import INSTRUMENTS
from surgeval.phantom.scene.render import Rendered
from surgeval.phantom.script.procedure import FPS, make_procedure
from surgeval.phantom.script.state import BASE_HEIGHT, BASE_WIDTH, ToolState
from surgeval.vocab import load_labels

SIZE = 128
FRAME = (BASE_HEIGHT, BASE_WIDTH)
SLOTS = 6  # instruments in a frame at most
SECONDS = 60.0
STEPS_ALPHA = 31  # opacity is kept in five bits, the owner in three
TRAINING_SEED, HELD_OUT_SEED = 5_001, 5_002


@dataclass(frozen=True, slots=True)
class Frames:
    """Pictures with their labels; row k of every array is frame k."""

    images: Bytes  # (frames, SIZE, SIZE, 3) RGB
    tools: Bytes  # (frames, SIZE, SIZE): slot + 1 of the tool there ≪ 5 | its opacity
    instrument: Int16s  # (frames, SLOTS), −1 for an empty slot
    triplet: Int16s  # (frames, SLOTS), −1 for none
    boxes: Singles  # (frames, SLOTS, 4) corners in pixels of the full frame
    working: Int16s  # slot of the working instrument, −1 where it is not to be seen
    tint: Int16s  # instrument that coloured the tissue, −1 for none
    video: Int32s
    plates: Bytes  # (plates, SIZE, SIZE, 3): the same operations with every tool taken out

    def __len__(self) -> int:
        return len(self.images)


@dataclass(frozen=True, slots=True)
class Shoot:
    """One video to film: `every` is the step between frames, every `plate`-th of them also without tools."""

    plan: VideoPlan
    number: int
    tint: str
    every: int
    plate: int = 0


def training_shoots(videos: int, seed: int = TRAINING_SEED) -> list[Shoot]:
    """Videos of the training procedures, three of four with a tint drawn anew every second, the fourth without."""
    plans = [plan for plan in plan_videos(seed, min(999, 2 * videos + 12)) if not plan.ood][:videos]
    return [Shoot(plan, k, "none" if k % 4 == 3 else "random", 10, 3) for k, plan in enumerate(plans)]


def examination_shoots(plans: Sequence[VideoPlan], tint: str) -> list[Shoot]:
    """The labelled frames (one a second) of given videos."""
    return [Shoot(plan, k, tint, FPS) for k, plan in enumerate(plans)]


def held_out_plans(videos: int, seed: int = HELD_OUT_SEED) -> list[VideoPlan]:
    """Test videos of a dataset that was never trained on; half show a procedure that training never shows."""
    return [plan for plan in plan_videos(seed, min(999, 3 * videos + 12)) if plan.split == "test"][:videos]


def film(shoot: Shoot) -> Frames:
    """All frames of one video."""
    procedure = make_procedure(shoot.plan.seed, SECONDS, shoot.plan.procedure)
    footage = Footage(procedure, shoot.plan.source, tint=shoot.tint)
    space = load_labels("phantom")
    rows = []
    plates = []
    for position, index in enumerate(range(0, round(SECONDS * FPS), shoot.every)):
        state, shot = procedure.state(index / FPS), footage.shoot(index)
        seen = [tool for tool in sorted(state.tools, key=lambda t: t.track) if _visible(tool, shot)][:SLOTS]
        working = procedure.working(index / FPS)
        slots = [tool.track for tool in seen]
        key = footage._tint_key(index)
        rows.append(
            (
                _squash(shot.image),
                _owners([shot.masks[track] for track in slots]),
                _padded([space.id("instrument", tool.instrument) for tool in seen]),
                _padded([_triplet(tool) for tool in seen]),
                _boxes([shot.masks[track] for track in slots]),
                slots.index(working.track) if working is not None and working.track in slots else -1,
                INSTRUMENTS.index(key) if key else -1,
            )
        )
        if shoot.plate and position % shoot.plate == 0:
            bare = replace(state, tools=())
            plates.append(_squash(footage.renderer.render(bare, tint_key=key).image))
    images, tools, instrument, triplet, boxes, at_work, tint = zip(*rows, strict=True)
    return Frames(
        np.stack(images), np.stack(tools), np.stack(instrument), np.stack(triplet), np.stack(boxes),
        np.array(at_work, np.int16), np.array(tint, np.int16), np.full(len(rows), shoot.number, np.int32),
        np.stack(plates) if plates else np.zeros((0, SIZE, SIZE, 3), np.uint8),
    )  # fmt: skip


def film_all(shoots: Iterable[Shoot], workers: int = 1, progress: Callable[[int, int], None] | None = None) -> Frames:
    """Every video, in worker processes where more than one is asked for; the order is that of `shoots`."""
    parts = map_in_processes(film, list(shoots), workers, progress)
    names = [field.name for field in fields(Frames)]
    return Frames(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def first_videos(frames: Frames, videos: int) -> Frames:
    """The frames and plates of the first videos; each video has as many plates as any other."""
    total = int(frames.video.max(initial=-1)) + 1
    rows = frames.video < videos
    plates = frames.plates[: len(frames.plates) * min(videos, total) // max(total, 1)]
    columns = {field.name: getattr(frames, field.name)[rows] for field in fields(Frames) if field.name != "plates"}
    return Frames(**columns, plates=plates)


def _visible(tool: ToolState, shot: Rendered) -> bool:
    pixels = shot.masks.get(tool.track)
    return pixels is not None and int(pixels.sum()) >= MIN_TOOL


def _triplet(tool: ToolState) -> int:
    space = load_labels("phantom")
    return space.find(space.id("instrument", tool.instrument), space.id("verb", tool.verb),
                      space.id("target", tool.target))  # fmt: skip


def _squash(image: Image) -> Image:
    # Exactly what the models' preprocessor does, so that training and use see the same pixels.
    return np.asarray(PIL.Image.fromarray(image).resize((SIZE, SIZE), PIL.Image.Resampling.BILINEAR))


def _owners(masks: list[Bools]) -> Bytes:
    if not masks:
        return np.zeros((SIZE, SIZE), np.uint8)
    shares = np.stack(
        [cv2.resize(mask.astype(np.float32), (SIZE, SIZE), interpolation=cv2.INTER_AREA) for mask in masks]
    )
    alpha = np.rint(STEPS_ALPHA * np.clip(shares.sum(0), 0, 1)).astype(np.uint8)
    packed: Bytes = np.where(alpha > 0, ((shares.argmax(0) + 1) << 5) | alpha, 0).astype(np.uint8)
    return packed


def _padded(values: list[int]) -> Int16s:
    return np.array(values + [-1] * (SLOTS - len(values)), np.int16)


def _boxes(masks: list[Bools]) -> Singles:
    boxes = np.zeros((SLOTS, 4), np.float32)
    for slot, mask in enumerate(masks):
        rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
        boxes[slot] = columns[0], rows[0], columns[-1] + 1, rows[-1] + 1
    return boxes
