"""What is true of the phantom scene at one moment: the contract between the script that decides and the renderer that
draws.

World coordinates: one unit is one pixel of a 448×256 frame at zoom 1, origin in the middle of the operating field,
x right, y down. Everything here is a plain number, so a state can be hashed, stored and compared.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from surgeval.records import CameraMotion, Point

BASE_WIDTH, BASE_HEIGHT = 448, 256


@dataclass(frozen=True, slots=True)
class CameraPose:
    """Where the laparoscope looks: world point in the middle of the frame, magnification, roll in radians."""

    x: float = 0.0
    y: float = 0.0
    zoom: float = 1.0
    roll: float = 0.0

    def affine(self, width: int, height: int) -> tuple[float, float, float, float, float, float]:
        """World → image as a 2×3 matrix, row by row. Image points are pixel centres about ((W−1)/2, (H−1)/2)."""
        scale = self.zoom * width / BASE_WIDTH
        a, b = scale * math.cos(self.roll), scale * math.sin(self.roll)
        tx = (width - 1) / 2 - (a * self.x + b * self.y)
        ty = (height - 1) / 2 - (-b * self.x + a * self.y)
        return (a, b, tx, -b, a, ty)

    def project(self, point: Point, width: int, height: int) -> Point:
        """A world point in image pixels."""
        a, b, tx, c, d, ty = self.affine(width, height)
        return (a * point[0] + b * point[1] + tx, c * point[0] + d * point[1] + ty)


def camera_motion(before: CameraPose, after: CameraPose, width: int, height: int) -> CameraMotion:
    """The exact P, T, Z, R of the background between two poses (docs/phantom.md gives the algebra).

    >>> zoomed = camera_motion(CameraPose(), CameraPose(zoom=1.1), 448, 256)
    >>> round(zoomed.Z, 3), abs(zoomed.P), abs(zoomed.T), abs(zoomed.R)
    (-0.1, 0.0, 0.0, 0.0)
    """
    scale = after.zoom / before.zoom
    angle = after.roll - before.roll
    cos, sin = scale * math.cos(angle), scale * math.sin(angle)
    # Flow at the frame's centre: where the old centre's world point goes.
    x, y = after.project((before.x, before.y), width, height)
    u, v = x - (width - 1) / 2, y - (height - 1) / 2
    return CameraMotion(P=-u, T=-v, Z=1.0 - cos, R=sin)


@dataclass(frozen=True, slots=True)
class Pull:
    """Tissue drawn aside: near the rest point (x, y) it is displaced by (dx, dy), fading as a Gaussian of `radius`."""

    x: float
    y: float
    dx: float
    dy: float
    radius: float


def displaced(point: Point, pulls: tuple[Pull, ...]) -> Point:
    """Where a rest point of the tissue is now."""
    x, y = point
    dx = dy = 0.0
    for pull in pulls:
        weight = math.exp(-((x - pull.x) ** 2 + (y - pull.y) ** 2) / (2 * pull.radius**2))
        dx, dy = dx + weight * pull.dx, dy + weight * pull.dy
    return (x + dx, y + dy)


def gallbladder_swing(share: float) -> tuple[float, Point]:
    """How far the gallbladder is turned about its fundus (radians) and shifted when `share` of its bed is dissected."""
    return -0.3 * share, (-4.0 * share, -12.0 * share)


@dataclass(frozen=True, slots=True)
class ToolState:
    """One instrument: it reaches from `entry` (the trocar's side, outside the view) to `tip`."""

    track: int
    instrument: str  # a name of the phantom label space, e.g. "hook"
    entry: Point
    tip: Point
    jaw: float = 0.0  # 0 closed … 1 open
    active: bool = False  # energy on: sparks, smoke, a burn grows
    verb: str = "null_verb"
    target: str = "null_target"
    contact: Point | None = None  # where it touches its target, world
    depth: float = 0.0  # larger is nearer to the lens and drawn later
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class ObjectState:
    """A foreign object of the FOCUS list; `state` is visible, hidden (covered) or absent."""

    number: int
    slug: str
    x: float
    y: float
    angle: float = 0.0
    scale: float = 1.0
    state: str = "visible"
    held_by: int | None = None  # track of the instrument that carries it


@dataclass(frozen=True, slots=True)
class Spot:
    """A round mark on the tissue in rest coordinates: blood, fluid, burn. `amount` in 0…1."""

    x: float
    y: float
    radius: float
    amount: float


@dataclass(frozen=True, slots=True)
class Mark:
    """A thing fixed to the tissue in rest coordinates: an applied clip, a cut. `angle` in radians."""

    kind: str  # "clip" or "cut"
    x: float
    y: float
    angle: float


@dataclass(frozen=True, slots=True)
class SceneState:
    """Everything visible at one time, in seconds of the video."""

    time: float
    phase: str
    camera: CameraPose
    tools: tuple[ToolState, ...] = ()
    objects: tuple[ObjectState, ...] = ()
    pulls: tuple[Pull, ...] = ()
    blood: tuple[Spot, ...] = ()
    fluid: tuple[Spot, ...] = ()
    burns: tuple[Spot, ...] = ()
    marks: tuple[Mark, ...] = ()
    smoke: float = 0.0  # 0 clear … 1 opaque, from energy in the scene itself
    gallbladder: str = "attached"  # attached, detached (free, follows `gallbladder_at`), bagged (inside the bag), gone
    gallbladder_at: Point | None = None
    detached: float = 0.0  # 0 … 1: how much of the liver bed is already dissected
    wobble: float = 0.0  # breathing phase in radians


@dataclass(frozen=True, slots=True)
class Look:
    """One `source`: how a hospital's camera, light and instruments look."""

    name: str
    tissue_seed: int
    hue: int  # OpenCV hue shift, −8…8
    saturation: float
    brightness: float
    vignette: float  # radius of the circular field relative to half the diagonal; ≥ 1.2 = full frame
    shaft: str  # "black", "steel" or "white": finish of the shafts
    warmth: float


@dataclass(frozen=True, slots=True)
class Corruption:
    """An image corruption: kind (blur, smoke, low_light, dirt, blood, vignette, overexposure, noise) and level 0–5."""

    kind: str
    level: int
