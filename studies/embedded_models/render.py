"""Rendered frames for training and examination: phantom video, resized to the input of the CLIPs.

Videos come from seeds that no edition uses. Beside each image stands a map of the instrument that covers each pixel, so
that the instruments of one frame can be pasted on the tissue of another. A *plate* is a frame rendered without
instruments.

Frames can be stored between trainings. A stored file may come from anywhere: every array is checked before use, and
compressed archives are refused, so that a file never expands to more than its size.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from zipfile import BadZipFile, ZipFile

import cv2
import numpy as np
import PIL.Image

from surgeval.arrays import Bools, Bytes, Image, Int16s, Int32s, Singles
from surgeval.errors import DataError, RunError
from surgeval.files import atomic_file
from surgeval.phantom.dataset.edition import VideoPlan, plan_videos
from surgeval.phantom.dataset.truth import MIN_TOOL
from surgeval.phantom.processes import work_on_one_thread
from surgeval.phantom.scene.footage import Footage
from surgeval.phantom.scene.instruments import INSTRUMENTS
from surgeval.phantom.scene.render import Rendered
from surgeval.phantom.script.procedure import FPS, make_procedure
from surgeval.phantom.script.state import BASE_HEIGHT, BASE_WIDTH, ToolState
from surgeval.processes import WorkerDied, WorkerPool
from surgeval.vocab import load_labels

Job = TypeVar("Job")
Made = TypeVar("Made")
SIZE = 128
FRAME = (BASE_HEIGHT, BASE_WIDTH)
SLOTS = 6  # instruments in a frame at most
SECONDS = 60.0
OPACITY_LEVELS = 31  # opacity is kept in five bits, the owner in three
TRAINING_SEED, HELD_OUT_SEED = 5_001, 5_002


@dataclass(frozen=True, slots=True)
class Frames:
    """Images with their labels; row k of every array is frame k."""

    images: Bytes  # (frames, SIZE, SIZE, 3) RGB
    tools: Bytes  # (frames, SIZE, SIZE): (slot of the instrument + 1) ≪ 5 | its opacity
    instrument: Int16s  # (frames, SLOTS), −1 for an empty slot
    triplet: Int16s  # (frames, SLOTS), −1 for none
    boxes: Singles  # (frames, SLOTS, 4) corners in pixels of the full frame
    working: Int16s  # slot of the working instrument, −1 where it is not visible
    tint: Int16s  # instrument whose tint the tissue has, −1 for none
    video: Int32s
    plates: Bytes  # (plates, SIZE, SIZE, 3): frames of the same videos without instruments

    def __len__(self) -> int:
        return len(self.images)


@dataclass(frozen=True, slots=True)
class RenderJob:
    """One video to render: every `every`-th frame, and every `plate`-th of those also without instruments (0: none)."""

    plan: VideoPlan
    number: int
    tint: str
    every: int
    plate: int = 0


def plan_training(videos: int, seed: int = TRAINING_SEED) -> list[RenderJob]:
    """Plan the training videos: three of four have a random tint that changes every second, the fourth has none."""
    plans = [plan for plan in plan_videos(seed, min(999, 2 * videos + 12)) if not plan.ood][:videos]
    return [RenderJob(plan, k, "none" if k % 4 == 3 else "random", 10, 3) for k, plan in enumerate(plans)]


def plan_examination(plans: Sequence[VideoPlan], tint: str) -> list[RenderJob]:
    """Plan the labelled frames (one a second) of the given videos."""
    return [RenderJob(plan, k, tint, FPS) for k, plan in enumerate(plans)]


def held_out_plans(videos: int, seed: int = HELD_OUT_SEED) -> list[VideoPlan]:
    """Test videos that no model was trained on; half show a procedure that is absent from training."""
    return [plan for plan in plan_videos(seed, min(999, 3 * videos + 12)) if plan.split == "test"][:videos]


def render_video(shoot: RenderJob) -> Frames:
    """Render all frames of one video."""
    procedure = make_procedure(shoot.plan.seed, SECONDS, shoot.plan.procedure)
    footage = Footage(procedure, shoot.plan.source, tint=shoot.tint)
    space = load_labels("phantom")
    rows = []
    plates = []
    for position, index in enumerate(range(0, round(SECONDS * FPS), shoot.every)):
        state, shot = procedure.state(index / FPS), footage.shoot(index)
        visible = [tool for tool in sorted(state.tools, key=lambda t: t.track) if _visible(tool, shot)][:SLOTS]
        working = procedure.working(index / FPS)
        slots = [tool.track for tool in visible]
        key = footage._tint_key(index)
        rows.append(
            (
                _resize(shot.image),
                _instrument_map([shot.masks[track] for track in slots]),
                _pad_slots([space.id("instrument", tool.instrument) for tool in visible]),
                _pad_slots([_triplet(tool) for tool in visible]),
                _mask_boxes([shot.masks[track] for track in slots]),
                slots.index(working.track) if working is not None and working.track in slots else -1,
                INSTRUMENTS.index(key) if key else -1,
            )
        )
        if shoot.plate and position % shoot.plate == 0:
            bare = replace(state, tools=())
            plates.append(_resize(footage.renderer.render(bare, tint_key=key).image))
    images, tools, instrument, triplet, boxes, at_work, tint = zip(*rows, strict=True)
    return Frames(
        np.stack(images), np.stack(tools), np.stack(instrument), np.stack(triplet), np.stack(boxes),
        np.array(at_work, np.int16), np.array(tint, np.int16), np.full(len(rows), shoot.number, np.int32),
        np.stack(plates) if plates else np.zeros((0, SIZE, SIZE, 3), np.uint8),
    )  # fmt: skip


def render_videos(
    jobs: Iterable[RenderJob], workers: int = 1, progress: Callable[[int, int], None] | None = None
) -> Frames:
    """Render every video, in the order of `jobs`, in worker processes if `workers` is greater than 1."""
    parts = map_in_processes(render_video, list(jobs), workers, progress)
    names = [field.name for field in fields(Frames)]
    return Frames(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def first_videos(frames: Frames, videos: int) -> Frames:
    """Select the frames and plates of the first videos; all videos have the same number of plates."""
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


def _resize(image: Image) -> Image:
    # The same resizing as in the models' preprocessor, so that training and use see the same pixels.
    return np.asarray(PIL.Image.fromarray(image).resize((SIZE, SIZE), PIL.Image.Resampling.BILINEAR))


def _instrument_map(masks: list[Bools]) -> Bytes:
    if not masks:
        return np.zeros((SIZE, SIZE), np.uint8)
    shares = np.stack(
        [cv2.resize(mask.astype(np.float32), (SIZE, SIZE), interpolation=cv2.INTER_AREA) for mask in masks]
    )
    alpha = np.rint(OPACITY_LEVELS * np.clip(shares.sum(0), 0, 1)).astype(np.uint8)
    packed: Bytes = np.where(alpha > 0, ((shares.argmax(0) + 1) << 5) | alpha, 0).astype(np.uint8)
    return packed


def _pad_slots(values: list[int]) -> Int16s:
    return np.array(values + [-1] * (SLOTS - len(values)), np.int16)


def _mask_boxes(masks: list[Bools]) -> Singles:
    boxes = np.zeros((SLOTS, 4), np.float32)
    for slot, mask in enumerate(masks):
        rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
        boxes[slot] = columns[0], rows[0], columns[-1] + 1, rows[-1] + 1
    return boxes


_UNREADABLE = (OSError, ValueError, LookupError, EOFError, RuntimeError, MemoryError, OverflowError, SyntaxError,
               BadZipFile, zlib.error)  # fmt: skip
_ARRAYS: Mapping[str, tuple[type[np.generic], tuple[int, ...]]] = {  # dtype, and shape without the first axis
    "images": (np.uint8, (SIZE, SIZE, 3)),
    "tools": (np.uint8, (SIZE, SIZE)),
    "instrument": (np.int16, (SLOTS,)),
    "triplet": (np.int16, (SLOTS,)),
    "boxes": (np.float32, (SLOTS, 4)),
    "working": (np.int16, ()),
    "tint": (np.int16, ()),
    "video": (np.int32, ()),
    "plates": (np.uint8, (SIZE, SIZE, 3)),
}


def save_frames(path: Path, frames: Frames) -> None:
    """Store rendered frames for another training."""
    with atomic_file(path.resolve()) as stream:  # follows symbolic links
        np.savez(stream, **{field.name: getattr(frames, field.name) for field in fields(Frames)})


def load_frames(path: Path) -> Frames:
    """Load and check frames stored by `save_frames`."""
    if not path.is_file():  # opening a named pipe would block
        raise DataError(path, "not a regular file")
    try:
        with ZipFile(path) as archive:
            if sum(member.file_size for member in archive.infolist()) > path.stat().st_size:
                raise DataError(path, "a compressed archive; stored frames are not compressed")
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in _ARRAYS}
    except _UNREADABLE as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(path, f"not a file of stored frames ({reason})") from error
    _check_shapes(path, arrays)
    _check_values(path, arrays)
    return Frames(**arrays)


def _check_shapes(path: Path, arrays: Mapping[str, Any]) -> None:
    images = arrays["images"]
    frames = len(images) if isinstance(images, np.ndarray) and images.ndim else 0
    for name, (kind, form) in _ARRAYS.items():
        array = arrays[name]
        shape = array.shape if isinstance(array, np.ndarray) else ()  # an archive may hold plain bytes, too
        rows = shape[:1] if name == "plates" else (frames,)
        if shape != (*rows, *form) or array.dtype != kind:
            found = f"{array.dtype} of shape {shape}" if isinstance(array, np.ndarray) else type(array).__name__
            wanted = ("plates" if name == "plates" else str(frames or "frames"), *map(str, form))
            raise DataError(path, f"expected {np.dtype(kind)} of shape ({', '.join(wanted)}), got {found}", field=name)


def _check_values(path: Path, arrays: Mapping[str, Any]) -> None:
    space = load_labels("phantom")
    first = arrays["video"] == 0  # every recipe uses it
    for name in ("instrument", "tint"):
        if not (arrays[name][first] >= 0).any():
            raise DataError(path, "no value in video 0, which every recipe uses", field=name)
    videos = len(np.unique(arrays["video"]))
    for name, array, low, high in (
        ("instrument", arrays["instrument"], -1, len(space.instruments) - 1),
        ("triplet", arrays["triplet"], -1, len(space.triplets) - 1),
        ("working", arrays["working"], -1, SLOTS - 1),
        ("tint", arrays["tint"], -1, len(space.instruments) - 1),
        ("video", arrays["video"], 0, videos - 1),
        ("tools", arrays["tools"].max() >> 5, 0, SLOTS),
    ):
        least, most = int(array.min()), int(array.max())
        if least < low or most > high:
            raise DataError(path, f"expected numbers from {low} to {high}, got {least} to {most}", field=name)
    if not np.isfinite(arrays["boxes"]).all():
        raise DataError(path, "expected finite corners, got NaN or infinity", field="boxes")


# ── worker processes ────────────────────────────────────────────────────────────────────────────────────────────


def map_in_processes(
    work: Callable[[Job], Made], jobs: Sequence[Job], count: int, progress: Callable[[int, int], None] | None = None
) -> list[Made]:
    """Return `work(job)` for each job, in the order of the jobs; with one process, compute it in this one.

    After Ctrl-C or an error the worker processes are killed.
    """
    made: dict[int, Made] = {}

    def keep(number: int, result: Made) -> None:
        made[number] = result
        if progress:
            progress(len(made), len(jobs))

    if min(count, len(jobs)) <= 1:
        for number, job in enumerate(jobs):
            keep(number, work(job))
    else:
        try:
            with WorkerPool(partial(work_on_one_thread, work), jobs, count) as pool:
                for number, result in pool:
                    keep(number, result)
        except WorkerDied as error:
            raise RunError("A rendering process died, perhaps for lack of memory. Use fewer --workers.") from error
    return [made[number] for number in range(len(jobs))]


def log_progress(noun: str, log: Callable[[str], None]) -> Callable[[int, int], None]:
    """Return a progress callback that logs about five lines."""

    def report(done: int, total: int) -> None:
        if done % max(total // 5, 1) == 0 or done == total:
            log(f"{noun} {done} of {total}")

    return report
