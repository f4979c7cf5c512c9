"""What goes in and comes out: annotations, tracks, spans, frames, operations and what they did; all frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from surgeval.records import Box, Point
from surgeval.studio.schema import IMAGE

__all__ = [
    "Annotation", "Flag", "FrameState", "LoggedOperation", "News", "OperationOutcome", "Polygon", "Request", "Review",
    "Span", "Track", "TrackSummary", "VideoState",
]  # fmt: skip

Polygon = tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class AtFrame:
    """Whatever is about one frame begins with where that is."""

    video: str
    frame: int


@dataclass(frozen=True, slots=True, order=True)
class Track:
    """An identity within one video: numbers count per class, so `scissors #1` and `forceps #1` are two tracks.

    `number` None means the instances of the class that have no identity yet. `Track.image()` is the frame itself.
    """

    group: str
    name: str
    number: int | None = None

    @staticmethod
    def image() -> Track:
        """What a span over a whole frame (a phase) is about."""
        return Track(IMAGE, IMAGE)

    @property
    def is_image(self) -> bool:
        """Whether this is the frame itself."""
        return self.group == IMAGE

    def __str__(self) -> str:
        return "image" if self.is_image else f"{self.name} #{'-' if self.number is None else self.number}"


@dataclass(frozen=True, slots=True)
class Annotation:
    """One labelled thing in one frame: its outline, class, values and identity.

    `proposal` is what a detector suggested and nobody has accepted yet. `extra` keeps what other formats hold and the
    studio does not use (flags, descriptions), so that it can be written back.
    """

    id: str
    video: str
    frame: int
    group: str
    name: str
    box: Box
    polygons: tuple[Polygon, ...] = ()
    values: Mapping[str, str] = field(default_factory=dict)
    track: int | None = None
    track_by: str | None = None  # hand, rule or upstream
    source: str = "hand"
    score: float | None = None
    proposal: bool = False
    review: str = ""
    extra: Mapping[str, Any] | None = None
    version: int = 0


@dataclass(frozen=True, slots=True)
class VideoState:
    """A video of the project."""

    id: str
    name: str
    width: int
    height: int
    fps: float | None = None
    frames: int = 0
    extra: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class FrameState(AtFrame):
    """A frame and what is said of the whole image."""

    name: str
    time: float | None
    values: Mapping[str, str]
    version: int = 0


@dataclass(frozen=True, slots=True)
class Span:
    """Values over a range of frames, of tracks or of the image; where spans overlap, the later one wins."""

    id: str
    video: str
    tracks: tuple[Track, ...]
    values: Mapping[str, str | None]
    first: int
    last: int
    author: str = ""
    time: float = 0.0
    source: str = "hand"
    stamp: int = 0  # the operation that made it: the later of two overlapping spans has the larger one
    overridden_by: tuple[str, ...] = ()
    version: int = 0


@dataclass(frozen=True, slots=True)
class Flag(AtFrame):
    """A frame with a problem and its reason."""

    reason: str
    note: str
    author: str
    name: str = ""  # of the frame's picture


@dataclass(frozen=True, slots=True)
class Review(AtFrame):
    """What a reviewer said of a frame in a round."""

    reviewer: str
    round: int
    mark: str


@dataclass(frozen=True, slots=True)
class TrackSummary:
    """A track in numbers."""

    track: Track
    count: int
    first: int
    last: int

    @property
    def missing(self) -> int:
        """Frames between its first and last in which it is absent."""
        return self.last - self.first + 1 - self.count


@dataclass(frozen=True, slots=True)
class Request:
    """An operation as a client sends it; `id` is the client's, so that a repeated request is applied once.

    `base` is the version the author was looking at (None: whatever is current); `session` tells tabs apart: an edit
    never conflicts with earlier ones of its own session.
    """

    id: str
    author: str
    kind: str
    payload: Mapping[str, Any]
    base: int | None = None
    session: str = ""


@dataclass(frozen=True, slots=True)
class OperationOutcome:
    """What an operation did, or would do: rows changed, instances skipped, frames without the instance."""

    version: int
    kind: str
    changed: int = 0
    skipped: int = 0
    absent: int = 0
    created: tuple[str, ...] = ()  # ids of new spans, or the number of a new track
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class LoggedOperation:
    """A row of the operations table."""

    version: int
    id: str
    author: str
    session: str
    time: float
    kind: str
    payload: Mapping[str, Any]
    inverse: Mapping[str, int]
    base: int
    target: int | None
    outcome: OperationOutcome


@dataclass(frozen=True, slots=True)
class News:
    """That an operation was made, without the particulars, of which there may be megabytes."""

    version: int
    author: str
    session: str
    time: float
    kind: str
    target: int | None = None  # of an undo or redo
    video: str | None = None  # where the operation is about one
    changed: int = 0
