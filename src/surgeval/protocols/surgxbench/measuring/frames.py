"""From a video's frames to batches a model can take: decoding, preparing and optical flow in threads, a bounded number
ahead of the model.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice

from surgeval.arrays import Bools, Image, Singles
from surgeval.datasets import Dataset, OnProblem, read_image
from surgeval.errors import BadInput, DataError
from surgeval.explain.flow import FlowMethod
from surgeval.explain.motion import Motion, find_motion
from surgeval.explain.reference_maps import edges
from surgeval.metrics.grounding import box_mask
from surgeval.models.preparation import Preparation, View
from surgeval.protocols.surgxbench.settings import SurgXSettings
from surgeval.records import Frame, ImageRef

__all__ = ["Follower", "PreparedFrame", "Reader", "Unseen", "batches", "by_size", "followed"]


@dataclass(frozen=True, slots=True, eq=False)
class PreparedFrame:
    """One labelled frame, made ready."""

    frame: Frame
    image: Image
    pixels: Singles
    view: View
    motion: Bools | None = None  # where the tissue moves once the camera's own motion is taken away
    motion_flag: str = ""
    motion_note: str = ""  # why there is no motion, where something was wrong
    edges: Singles | None = None  # the reference map that depends on the picture

    @property
    def size(self) -> tuple[int, int]:
        """Height and width."""
        return self.image.shape[0], self.image.shape[1]


@dataclass(frozen=True, slots=True)
class Unseen:
    """A frame that could not be read, and why."""

    frame: Frame
    reason: str


@dataclass(frozen=True, slots=True)
class Follower:
    """The picture that a frame's flow leads to, or the flag that says why there is none."""

    image: ImageRef | None
    flag: str = "no_motion"


@dataclass(frozen=True, slots=True)
class Reader:
    """Makes frames ready; with a flow method it also finds what moves."""

    preparation: Preparation
    settings: SurgXSettings
    flow: FlowMethod | None = None

    def __call__(self, frame: Frame, follower: Follower) -> PreparedFrame | Unseen:
        """Read and prepare one frame; its flow leads to `follower`."""
        if frame.image is None:
            return Unseen(frame, "found no image, expected one")
        try:
            image = read_image(frame.image)
        except DataError as error:
            return Unseen(frame, str(error))
        if image.shape[:2] != (frame.height, frame.width):  # boxes are in the pixels that the labels state
            found, expected = f"{image.shape[1]} × {image.shape[0]}", f"{frame.width} × {frame.height} as labelled"
            return Unseen(frame, f"{frame.image.path}: found {found} pixels, expected {expected}")
        moving, flag, why = self.motion(frame, image, follower)
        view = self.preparation.view(*image.shape[:2])
        mask = None if moving is None else moving.moving.mask
        drawn = edges(image) if "instruments" in self.settings.tasks else None
        return PreparedFrame(frame, image, self.preparation(image), view, mask, flag, why, drawn)

    def motion(self, frame: Frame, image: Image, follower: Follower) -> tuple[Motion | None, str, str]:
        """What moves between the frame and its follower, a flag, and what was wrong.

        A frame may lose its RAS so, never its maps.
        """
        if self.flow is None:
            return None, "", ""
        if follower.image is None:
            return None, follower.flag, ""
        boxes = [instance.box.corners for instance in frame.instances if instance.box is not None]
        try:
            following = read_image(follower.image)
            if following.shape != image.shape:
                return None, "no_motion", f"{follower.image.path}: a picture of another size"
            motion = find_motion(
                image, following, self.flow, self.settings.motion,
                instruments=box_mask(boxes, *image.shape[:2]), key=f"{frame.video}/{frame.name}",
            )  # fmt: skip
        except (BadInput, DataError) as error:  # an unreadable picture or flow, or no pixel left for the camera fit
            return None, "no_flow", str(error)
        return motion, "still" if motion.moving.still else "", ""


def _ignore(_problem: object) -> None:
    """For reading frames again whose problems were reported at the first reading."""


def batches(
    dataset: Dataset,
    video: str,
    reader: Reader,
    settings: SurgXSettings,
    only: frozenset[str] | None = None,
    on_problem: OnProblem = _ignore,
) -> Iterator[list[PreparedFrame | Unseen]]:
    """The labelled frames of a video in batches; at most two batches are read ahead."""
    frames = dataset.frames(video, on_problem=on_problem)
    labelled = (pair for pair in followed(frames, settings.flow_gap) if pair[0].labelled)
    spaced = islice(labelled, 0, None, settings.every)
    pairs = (pair for pair in spaced if only is None or pair[0].name in only)
    with ThreadPoolExecutor(settings.threads) as pool:
        waiting: deque[Future[PreparedFrame | Unseen]] = deque(
            pool.submit(reader, *pair) for pair in islice(pairs, 2 * settings.batch)
        )
        while waiting:
            batch: list[PreparedFrame | Unseen] = []
            while waiting and len(batch) < settings.batch:
                batch.append(waiting.popleft().result())
                following = next(pairs, None)
                if following is not None:
                    waiting.append(pool.submit(reader, *following))
            yield batch


def by_size(seen: Sequence[PreparedFrame]) -> list[list[int]]:
    """Positions of frames of equal size: those can be measured together."""
    groups: dict[tuple[int, int], list[int]] = {}
    for number, prepared in enumerate(seen):
        groups.setdefault(prepared.size, []).append(number)
    return list(groups.values())


def followed(frames: Iterable[Frame], gap: float) -> Iterator[tuple[Frame, Follower]]:
    """Each frame with the picture its flow leads to: the stored successor, else the next frame, `gap` seconds at most
    later; where times are unknown the next frame is taken.
    """
    before: Frame | None = None
    for frame in frames:
        if before is not None:
            yield before, _follower(before, frame, gap)
        before = frame
    if before is not None:
        yield before, Follower(before.successor)


def _follower(frame: Frame, following: Frame, gap: float) -> Follower:
    if frame.successor is not None:
        return Follower(frame.successor)
    if frame.time is not None and following.time is not None and abs(following.time - frame.time) > gap:
        return Follower(None, "gap")
    return Follower(following.image)
