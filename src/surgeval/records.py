"""The typed things that flow through surgeval; all frozen, all plain Python, no torch.

One vocabulary everywhere: a *video* is the source recording and the unit of resampling (a *cluster*), a *frame* is
one labelled moment of it, an *instance* is one instrument in it. Class ids count from 0 in the dataset's label
space (`surgeval.vocab.LabelSpace`); −1 means "not known", never "the last class".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from surgeval.arrays import Bools, Bytes

__all__ = [
    "UNKNOWN",
    "Answer",
    "Box",
    "CameraMotion",
    "Case",
    "Frame",
    "Gaze",
    "ImageRef",
    "Instance",
    "IntentQuestion",
    "Mask",
    "OptionLabel",
    "Point",
    "Question",
    "Triplet",
    "Video",
    "VqaQuestion",
]  # fmt: skip

UNKNOWN = -1
Point: TypeAlias = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle in pixels of its frame: top-left corner and size, continuous coordinates (no +1).

    >>> Box(0, 0, 10, 10).iou(Box(5, 0, 10, 10))
    0.3333333333333333
    """

    x: float
    y: float
    w: float
    h: float

    @classmethod
    def from_corners(cls, x1: float, y1: float, x2: float, y2: float) -> Box:
        """A box from two opposite corners, in any order."""
        return cls(min(x1, x2), min(y1, y2), abs(x2 - x1), abs(y2 - y1))

    @property
    def corners(self) -> tuple[float, float, float, float]:
        """`x1, y1, x2, y2`."""
        return self.x, self.y, self.x + self.w, self.y + self.h

    @property
    def area(self) -> float:
        """Width times height; 0 for a degenerate box."""
        return max(self.w, 0.0) * max(self.h, 0.0)

    @property
    def finite(self) -> bool:
        """Whether all four numbers are finite."""
        return all(math.isfinite(value) for value in (self.x, self.y, self.w, self.h))

    def iou(self, other: Box) -> float:
        """Intersection over union; 0 when either box is degenerate."""
        ax1, ay1, ax2, ay2 = self.corners
        bx1, by1, bx2, by2 = other.corners
        width, height = min(ax2, bx2) - max(ax1, bx1), min(ay2, by2) - max(ay1, by1)
        if width <= 0 or height <= 0 or not self.area or not other.area:
            return 0.0
        inter = width * height
        union = self.area + other.area - inter
        return inter / union if union > 0 else 0.0  # sides below the coordinates' precision can leave nothing

    def clipped(self, width: float, height: float) -> Box:
        """The part inside a frame of this size (may be degenerate)."""
        x1, y1, x2, y2 = self.corners
        x1, x2 = min(max(x1, 0.0), width), min(max(x2, 0.0), width)
        y1, y2 = min(max(y1, 0.0), height), min(max(y2, 0.0), height)
        return Box(x1, y1, x2 - x1, y2 - y1)

    def inside(self, width: float, height: float, slack: float = 0.0) -> bool:
        """Whether the box stays in the frame, up to `slack` pixels."""
        x1, y1, x2, y2 = self.corners
        return x1 >= -slack and y1 >= -slack and x2 <= width + slack and y2 <= height + slack


@dataclass(frozen=True, slots=True)
class Mask:
    """A binary mask as COCO's uncompressed run lengths: column-major, starting with the zeros.

    >>> m = Mask.from_array(np.array([[0, 1], [0, 1]], bool)); m.counts
    (2, 2)
    >>> m.to_array().astype(int).tolist()
    [[0, 1], [0, 1]]
    """

    height: int
    width: int
    counts: tuple[int, ...]

    @classmethod
    def from_array(cls, mask: Bools | Bytes) -> Mask:
        """Encode an array of shape (height, width); every non-zero pixel belongs to the mask."""
        height, width = mask.shape
        flat = np.asarray(mask, dtype=bool).ravel(order="F")
        edges = np.flatnonzero(np.diff(flat)) + 1
        bounds = np.concatenate([[0], edges, [flat.size]])
        counts = np.diff(bounds).tolist()
        if flat.size and flat[0]:
            counts = [0, *counts]
        return cls(height, width, tuple(counts) if flat.size else ())

    def to_array(self) -> Bools:
        """Decode to a boolean array of shape (height, width)."""
        values = np.zeros(len(self.counts), dtype=bool)
        values[1::2] = True
        flat = np.repeat(values, np.asarray(self.counts, dtype=np.int64))
        return flat.reshape((self.width, self.height)).T

    @property
    def area(self) -> int:
        """Number of pixels in the mask."""
        return sum(self.counts[1::2])

    def box(self) -> Box | None:
        """The tight box around the mask, or None when it is empty."""
        array = self.to_array()
        rows, columns = np.flatnonzero(array.any(axis=1)), np.flatnonzero(array.any(axis=0))
        if not rows.size:
            return None
        return Box.from_corners(float(columns[0]), float(rows[0]), float(columns[-1] + 1), float(rows[-1] + 1))


@dataclass(frozen=True, slots=True, order=True)
class Triplet:
    """⟨instrument, verb, target⟩ as class ids; −1 where a component is not known."""

    instrument: int
    verb: int = UNKNOWN
    target: int = UNKNOWN


@dataclass(frozen=True, slots=True)
class Instance:
    """One instrument in one frame (the frame that holds it says where and when).

    `box` is None where the source gives no box (CholecT50's −1 placeholders). `points` holds named image points
    (`tip`, `contact`), `attributes` what a format carries beyond the triplet, so that it can be written back.
    """

    triplet: Triplet
    box: Box | None = None
    mask: Mask | None = None
    polygon: tuple[Point, ...] = ()
    track: int | None = None
    score: float | None = None
    points: Mapping[str, Point] = field(default_factory=dict)
    motion: tuple[float, ...] | None = None  # 2×3 affine, row by row: this frame's pixels → the successor's
    attributes: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Gaze:
    """A fixation: start in seconds of the video, position in [0, 1] of the frame, duration in seconds."""

    t: float
    x: float
    y: float
    duration: float


@dataclass(frozen=True, slots=True)
class CameraMotion:
    """Camera motion to the successor frame: flow u = −P − Zx + Ry, v = −T − Zy − Rx about the frame's centre."""

    P: float
    T: float
    Z: float
    R: float


@dataclass(frozen=True, slots=True)
class ImageRef:
    """Where a frame's pixels are: an image file, or frame number `frame` of a video file."""

    path: Path
    frame: int | None = None


@dataclass(frozen=True, slots=True)
class Frame:
    """One moment of a video with its labels.

    `name` is the file stem (or zero-padded index): the key by which predictions are joined. A frame that exists but
    was never labelled has `labelled=False`; one that was labelled and shows nothing has `labelled=True` and no
    instances.
    """

    video: str
    name: str
    index: int
    time: float | None
    image: ImageRef | None
    width: int
    height: int
    instances: tuple[Instance, ...] = ()
    labelled: bool = True
    phase: int | None = None
    successor: ImageRef | None = None  # the frame 1/25 s later, where the dataset stores it
    camera: CameraMotion | None = None
    gaze: tuple[Gaze, ...] = ()
    region: Box | None = None  # where instrument and tissue interact
    objects: Mapping[str, str] = field(default_factory=dict)  # foreign object → state (visible, hidden, …)
    attributes: Mapping[str, object] = field(default_factory=dict)  # of the image as a whole
    size_assumed: bool = False  # the source gives no size; boxes are scaled to an assumed one


@dataclass(frozen=True, slots=True)
class Video:
    """A source recording: the cluster of every statistic."""

    name: str
    source: str = ""
    split: str = ""
    procedure: str = ""
    fps: float | None = None
    seconds: float | None = None
    frames: int | None = None  # number of frames the reader will yield, where known without reading them


@dataclass(frozen=True, slots=True)
class VqaQuestion:
    """A question of the `focus` kind: free answer in a declared format (FOCUS requests + references)."""

    id: str
    video: str
    start: float
    end: float
    procedure: str
    text: str
    primary: str
    format: str
    answer: str
    format_options: Mapping[str, object] = field(default_factory=dict)
    secondaries: tuple[str, ...] = ()
    ood: bool = False
    clinical: bool = False


@dataclass(frozen=True, slots=True)
class OptionLabel:
    """What an option of a trap is: `visible` or `absent` (perceptual), `accepts` or `rejects` (cognitive), and why."""

    label: Literal["visible", "absent", "accepts", "rejects"]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class IntentQuestion:
    """A multiple-choice question of the `intent` kind (one line of `items.jsonl`).

    `labels` has one entry per option, or none. `source` is a guideline with its year. `gaze_dependent` says whether the
    answer needs the gaze, `observable` whether looking alone decides it; None where nobody said.
    """

    id: str
    scenario: str
    cluster: str
    media: tuple[str, ...]
    dimension: str
    skill: str
    question: str
    options: tuple[str, ...]
    answer: int
    start: float | None = None
    end: float | None = None
    gaze: tuple[Gaze, ...] = ()
    context: Mapping[str, object] = field(default_factory=dict)
    trap: Literal["perceptual", "cognitive"] | None = None
    untrapped: str | None = None
    twin: str | None = None  # id of the true-premise twin of a false-premise item
    review: Mapping[str, object] | None = None
    labels: tuple[OptionLabel, ...] = ()
    source: str | None = None
    gaze_dependent: bool | None = None
    observable: bool | None = None

    @property
    def video(self) -> str:
        """The cluster: what every question calls the recording it is about."""
        return self.cluster


Question: TypeAlias = VqaQuestion | IntentQuestion


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model said to one question."""

    question: str
    content: str
    latency: float | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One scored thing: the row that statistics and reports are made of.

    `status` is `ok` or the reason class of a failure; a failed case keeps its place, it is never dropped.
    """

    id: str
    cluster: str
    status: str = "ok"
    reason: str = ""
    values: Mapping[str, object] = field(default_factory=dict)
