"""What a model is shown of an item: its pictures, small enough to send, with the gaze drawn where it is to be seen.

The circle is drawn on the frame as it is, then the frame is made smaller.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from surgeval.arrays import Image
from surgeval.asking import FrameOptions, ItemFiles, ModelFrame, SelectedFrame, encode_frame, select_frames
from surgeval.datasets import Dataset, read_image
from surgeval.errors import BadInput
from surgeval.protocols.intent.asking.gaze import (
    GAZE_MODES,
    GazeMode,
    GazePoint,
    GazeStyle,
    draw_circle,
    draw_path,
    spot_at,
)
from surgeval.protocols.intent.asking.scene import InstrumentTips, WrongSpot, wrong_spots
from surgeval.protocols.intent.cases import split_id
from surgeval.records import IntentQuestion

__all__ = ["Eyes", "GazePicture", "Seeing"]


@dataclass(frozen=True, slots=True)
class Seeing:
    """How items are presented: frames, sizes and the form of gaze. All of it is recorded with a run.

    >>> Seeing(gaze="laser")
    Traceback (most recent call last):
    surgeval.errors.BadInput: gaze: found 'laser', expected one of mark, text, both, trail
    """

    shown: FrameOptions = field(default_factory=lambda: FrameOptions(longest_edge=1024, quality=90))
    gaze: GazeMode = "mark"
    style: GazeStyle = field(default_factory=GazeStyle)

    def __post_init__(self) -> None:
        if self.gaze not in GAZE_MODES:
            raise BadInput(f"gaze: found {self.gaze!r}, expected one of {', '.join(GAZE_MODES)}")


@dataclass(frozen=True, slots=True)
class GazePicture(ModelFrame):
    """A picture as it is sent, and where the gaze in it is said to be."""

    spot: GazePoint | None = None


class Eyes:
    """The pictures of posed items: their condition, part of the id, says what is shown."""

    def __init__(self, dataset: Dataset, items: Sequence[IntentQuestion], seeing: Seeing) -> None:
        self.media, self.seeing = ItemFiles(dataset, items), seeing
        self.scene = InstrumentTips(dataset)
        self._image = lru_cache(maxsize=16)(read_image)  # an item is asked several times in a row

    def __call__(self, question: IntentQuestion) -> tuple[GazePicture, ...]:
        """The pictures of a posed item, in order; a picture that cannot be read is a `DataError`."""
        if split_id(question.id)[1] == "text-only" or not question.media:
            return ()
        seen = self._moments(question)
        spots = [None if moved is None else moved.spot for moved in self.gaze(question)]
        return tuple(self._picture(question, moment, spot) for moment, spot in zip(seen, spots, strict=True))

    def gaze(self, question: IntentQuestion) -> list[WrongSpot | None]:
        """Where the gaze is said to be in each picture of a posed item: nowhere, there, or in a wrong place."""
        seen, condition = self._moments(question), split_id(question.id)[1]
        if condition not in ("gaze", "wrong-gaze"):
            return [None] * len(seen)
        spots = [spot_at(question.gaze, moment.time) for moment in seen]
        if condition == "gaze":
            return [None if spot is None else WrongSpot(spot) for spot in spots]
        tips = [self.scene.tips(question.cluster, moment.ref) for moment in seen]
        sizes = [self._image(moment.ref).shape for moment in seen]
        return wrong_spots(spots, tips, [(width, height) for height, width, _ in sizes])

    def _moments(self, question: IntentQuestion) -> tuple[SelectedFrame, ...]:
        return select_frames(self.media, question, self.seeing.shown)

    def _picture(self, question: IntentQuestion, moment: SelectedFrame, spot: GazePoint | None) -> GazePicture:
        image: Image = self._image(moment.ref)
        if spot is not None and self.seeing.gaze in ("mark", "both"):
            image = draw_circle(image, spot, self.seeing.style)
        elif spot is not None and self.seeing.gaze == "trail":
            image = draw_path(image, [*_path(question, moment.time), spot], self.seeing.style)
        plain = encode_frame(image, moment, self.seeing.shown)
        return GazePicture(plain.time, plain.jpeg, plain.frame, plain.width, plain.height, spot)


def _path(question: IntentQuestion, time: float | None) -> list[GazePoint]:
    """The fixations up to a time; of a wrong gaze there is no path."""
    if split_id(question.id)[1] == "wrong-gaze":
        return []
    ordered = sorted(question.gaze, key=lambda fixation: fixation.t)
    return [GazePoint(fixation.x, fixation.y) for fixation in ordered if time is None or fixation.t <= time]
