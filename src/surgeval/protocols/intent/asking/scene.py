"""Where the gaze could have been instead: the tip of another instrument where the scene is known, else mirrored."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from surgeval.datasets import Dataset
from surgeval.protocols.intent.asking.gaze import APART, GazePoint, mirrored, separation
from surgeval.qa import instrument_mentions
from surgeval.records import Frame, ImageRef, IntentQuestion
from surgeval.vocab import LabelSpace

__all__ = ["InstrumentTips", "Tip", "WrongSpot", "distractor_option", "wrong_spots"]


class Tip(NamedTuple):
    """The tip of an instrument in view."""

    instrument: str
    track: str
    spot: GazePoint


class WrongSpot(NamedTuple):
    """A wrong gaze, and the instrument it is on; none where it is only mirrored."""

    spot: GazePoint
    instrument: str = ""


class InstrumentTips:
    """The tips of the instruments in a dataset's frames, by the frame's image; empty where it labels none."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._videos = {video.name for video in dataset.videos()}
        self._of_video = lru_cache(maxsize=4)(self._read)  # items of one video are asked together

    @property
    def space(self) -> LabelSpace:
        """How instruments are called."""
        return self._dataset.space

    def tips(self, video: str, frame: ImageRef) -> tuple[Tip, ...]:
        """The tips in one frame."""
        return self._of_video(video).get(frame, ()) if video in self._videos else ()

    def _read(self, video: str) -> Mapping[ImageRef, tuple[Tip, ...]]:
        names = self._dataset.space.instruments
        return {frame.image: _tips(frame, names) for frame in self._dataset.frames(video) if frame.image is not None}


def _tips(frame: Frame, names: Sequence[str]) -> tuple[Tip, ...]:
    tips = []
    for instance in frame.instances:
        tip = instance.points.get("tip")
        number = instance.triplet.instrument
        if tip is None or not 0 <= number < len(names):
            continue
        spot = GazePoint(tip[0] / frame.width, tip[1] / frame.height)
        if 0 < spot.x < 1 and 0 < spot.y < 1:
            tips.append(Tip(names[number], str(instance.track or names[number]), spot))
    return tuple(tips)


def wrong_spots(
    spots: Sequence[GazePoint | None], tips: Sequence[Sequence[Tip]], sizes: Sequence[tuple[int, int]]
) -> list[WrongSpot | None]:
    """A wrong place for each of a question's frames, a quarter of the diagonal away at least.

    All frames point at the same instrument where it is in view: the one far from the gaze, in the last frame that has
    such a one, that is nearest to it.

    >>> hook, grasper = Tip("hook", "1", GazePoint(0.2, 0.2)), Tip("grasper", "2", GazePoint(0.8, 0.7))
    >>> wrong_spots([GazePoint(0.2, 0.2)], [[hook, grasper]], [(448, 256)])
    [WrongSpot(spot=GazePoint(x=0.8, y=0.7), instrument='grasper')]
    """
    far = [
        [tip for tip in seen if spot is not None and separation(spot, tip.spot, *size) >= APART]
        for spot, seen, size in zip(spots, tips, sizes, strict=True)
    ]
    nearest = [
        min((separation(spot, tip.spot, *size), tip.track) for tip in others)[1]
        for spot, others, size in zip(spots, far, sizes, strict=True)
        if spot is not None and others
    ]
    track = nearest[-1] if nearest else ""
    wrong: list[WrongSpot | None] = []
    for spot, others, size in zip(spots, far, sizes, strict=True):
        tip = next((tip for tip in others if tip.track == track), None)
        if spot is None:
            wrong.append(None)
        else:
            wrong.append(WrongSpot(mirrored(spot, *size)) if tip is None else WrongSpot(tip.spot, tip.instrument))
    return wrong


_SIDES = (
    (re.compile(r"\b(upper|top|superior)\b", re.IGNORECASE), re.compile(r"\b(lower|bottom|inferior)\b", re.IGNORECASE)),
    (re.compile(r"\bleft\b", re.IGNORECASE), re.compile(r"\bright\b", re.IGNORECASE)),
)


def distractor_option(item: IntentQuestion, moved: WrongSpot, space: LabelSpace) -> int | None:
    """The option that a wrong gaze speaks for: the quadrant it lies in, or the instrument it is on.

    None where no option, or more than one, is about either, or where that option is right anyway.

    >>> item = IntentQuestion("i", "s", "v", (), "spatial", "absolute", "Where?", ("upper left", "lower right"), 0)
    >>> space = LabelSpace("toy", ("hook", "clipper"))
    >>> [distractor_option(item, WrongSpot(spot), space) for spot in (GazePoint(0.8, 0.7), GazePoint(0.2, 0.2))]
    [1, None]
    """
    speaking = _in_quadrant(item.options, moved.spot) or _naming(item.options, moved.instrument, space)
    return speaking[0] if len(speaking) == 1 and speaking[0] != item.answer else None


def _in_quadrant(options: Sequence[str], spot: GazePoint) -> list[int]:
    """The options that are about a point's quadrant; none unless all options are about quadrants."""
    first, second = (sides[share >= 0.5] for sides, share in zip(_SIDES, (spot.y, spot.x), strict=True))
    known = all(any(side.search(text) for side in sides) for text in options for sides in _SIDES)
    return [number for number, text in enumerate(options) if known and first.search(text) and second.search(text)]


def _naming(options: Sequence[str], instrument: str, space: LabelSpace) -> list[int]:
    """The options that name an instrument; none unless several options name instruments, so that it is a choice."""
    if instrument not in space.instruments:
        return []
    named = [instrument_mentions(text, space).classes for text in options]
    wanted = space.instruments.index(instrument)
    return [number for number, classes in enumerate(named) if wanted in classes and sum(map(bool, named)) > 1]
