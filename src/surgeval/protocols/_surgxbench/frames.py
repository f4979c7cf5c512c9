"""From a video's frames to batches a model can take: decoding, preparing and optical flow in threads, a bounded number
ahead of the model.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt

from surgeval.datasets import Dataset, read_image
from surgeval.errors import DataError
from surgeval.explain.baselines import edges
from surgeval.explain.flow import FlowMethod
from surgeval.explain.motion import FLOOR, CameraChoice, Motion, MotionSettings, find_motion
from surgeval.metrics.grounding import box_mask
from surgeval.models.preparation import Preparation, View
from surgeval.protocols._surgxbench.settings import Settings
from surgeval.records import Frame, ImageRef

__all__ = ["Reader", "Seen", "Unseen", "batches", "by_size", "followed"]

Bools = npt.NDArray[np.bool_]
Image = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """One labelled frame, made ready."""

    frame: Frame
    image: Image
    pixels: npt.NDArray[np.float32]
    view: View
    motion: Bools | None = None  # where the tissue moves once the camera's own motion is taken away
    motion_flag: str = ""
    edges: npt.NDArray[np.float32] | None = None  # the reference map that depends on the picture

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
class Reader:
    """Makes frames ready; with a flow method it also finds what moves."""

    preparation: Preparation
    settings: Settings
    flow: FlowMethod | None = None

    def __call__(self, frame: Frame, follower: ImageRef | None) -> Seen | Unseen:
        """Read and prepare one frame; `follower` is the picture its flow leads to."""
        if frame.image is None:
            return Unseen(frame, "found no image, expected one")
        try:
            image = read_image(frame.image)
            found = self.motion(frame, image, follower)
        except DataError as error:
            return Unseen(frame, str(error))
        view = self.preparation.view(*image.shape[:2])
        mask = None if found is None else found.moving.mask
        flag = "" if self.flow is None else "no_motion" if found is None else "still" if found.moving.still else ""
        drawn = edges(image) if "instruments" in self.settings.tasks else None
        return Seen(frame, image, self.preparation(image), view, mask, flag, drawn)

    def _following(self, image: Image, follower: ImageRef | None) -> Image | None:
        """The next picture, if there is one that can be read and has the same size."""
        if follower is None or self.flow is None:
            return None
        try:
            found = read_image(follower)
        except DataError:
            return None  # its own case says why; this frame loses its motion, not its maps
        return found if found.shape == image.shape else None

    def motion(self, frame: Frame, image: Image, follower: ImageRef | None) -> Motion | None:
        """What moves between the frame and its follower; None where there is no such picture."""
        following = self._following(image, follower)
        if following is None:
            return None
        settings = self.settings
        boxes = [instance.box.corners for instance in frame.instances if instance.box is not None]
        # Without boxes there is nothing to leave out of a masked fit.
        camera: CameraChoice = settings.fit if boxes or settings.fit != "masked" else "robust"
        floor = FLOOR if settings.motion_floor is None else settings.motion_floor
        return find_motion(
            image, following, self.flow,
            MotionSettings(camera=camera, keep_top=settings.motion_top, floor=floor),
            instruments=box_mask(boxes, *image.shape[:2]) if boxes else None, key=f"{frame.video}/{frame.name}",
        )  # fmt: skip


def batches(
    dataset: Dataset, video: str, reader: Reader, settings: Settings, only: frozenset[str] | None = None
) -> Iterator[list[Seen | Unseen]]:
    """The labelled frames of a video in batches; at most two batches are read ahead."""
    labelled = (pair for pair in followed(dataset.frames(video, on_problem=_ignore)) if pair[0].labelled)
    spaced = islice(labelled, 0, None, settings.every)
    pairs = (pair for pair in spaced if only is None or pair[0].name in only)
    with ThreadPoolExecutor(settings.threads) as pool:
        waiting: deque[Future[Seen | Unseen]] = deque(
            pool.submit(reader, *pair) for pair in islice(pairs, 2 * settings.batch)
        )
        while waiting:
            batch: list[Seen | Unseen] = []
            while waiting and len(batch) < settings.batch:
                batch.append(waiting.popleft().result())
                following = next(pairs, None)
                if following is not None:
                    waiting.append(pool.submit(reader, *following))
            yield batch


def by_size(seen: Sequence[Seen]) -> list[list[int]]:
    """Positions of frames of equal size: those can be measured together."""
    groups: dict[tuple[int, int], list[int]] = {}
    for number, one in enumerate(seen):
        groups.setdefault(one.size, []).append(number)
    return list(groups.values())


def followed(frames: Iterable[Frame]) -> Iterator[tuple[Frame, ImageRef | None]]:
    """Each frame with the picture its flow leads to: the stored successor, else the next frame of the video."""
    before: Frame | None = None
    for frame in frames:
        if before is not None:
            yield before, before.successor or frame.image
        before = frame
    if before is not None:
        yield before, before.successor


def _ignore(_problem: object) -> None:
    """`surgeval data check` lists problems; a run uses what can be used."""
