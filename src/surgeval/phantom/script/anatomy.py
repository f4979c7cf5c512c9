"""Where things are: organs as smooth closed outlines in world coordinates, one anatomy per video seed.

The layout is a laparoscopic view of the gallbladder region: liver above, right and lower left, the gallbladder in
front of it, the cystic duct and artery at its neck, fat and omentum below, gut at the lower right. Organs are listed
from far to near; `sites` are rest points on the organ where it is seen, so an instrument sent there touches it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from surgeval.errors import BadInput
from surgeval.records import Point

REACH = (168.0, 94.0)  # how far from the middle of the field instruments get
PROCEDURES = ("cholecystectomy", "adhesiolysis")


@dataclass(frozen=True, slots=True)
class Organ:
    """A drawn thing: its vocabulary target name and outline; later in the list is nearer to the lens."""

    name: str
    outline: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Anatomy:
    """Organs to draw, and for every target of the vocabulary the rest points where instruments may act on it."""

    seed: int
    organs: tuple[Organ, ...]
    sites: dict[str, tuple[Point, ...]] = field(default_factory=dict)
    duct: tuple[Point, ...] = ()  # centre line, gallbladder neck → common duct
    artery: tuple[Point, ...] = ()


def smooth_outline(
    centre: Point, rx: float, ry: float, tilt: float, wobble: tuple[float, ...], n: int = 48
) -> tuple[Point, ...]:
    """An ellipse whose radius is modulated by low harmonics: `wobble` holds (amplitude, phase) pairs from order 2."""
    points = []
    for k in range(n):
        angle = 2 * math.pi * k / n
        radius = 1.0
        for order in range(len(wobble) // 2):
            radius += wobble[2 * order] * math.cos((order + 2) * angle + wobble[2 * order + 1])
        x, y = rx * radius * math.cos(angle), ry * radius * math.sin(angle)
        points.append(
            (
                round(centre[0] + x * math.cos(tilt) - y * math.sin(tilt), 3),
                round(centre[1] + x * math.sin(tilt) + y * math.cos(tilt), 3),
            )
        )
    return tuple(points)


def curve(points: Sequence[Point], n: int = 24) -> tuple[Point, ...]:
    """A smooth line through the points (Catmull–Rom), `n` samples from first to last."""
    padded = [points[0], *points, points[-1]]
    spans = len(points) - 1
    line = []
    for k in range(n):
        position = k * spans / (n - 1)
        i = min(int(position), spans - 1)
        t = position - i
        p0, p1, p2, p3 = padded[i : i + 4]
        line.append(
            (
                round(_spline(p0[0], p1[0], p2[0], p3[0], t), 3),
                round(_spline(p0[1], p1[1], p2[1], p3[1], t), 3),
            )
        )
    return tuple(line)


def _spline(a: float, b: float, c: float, d: float, t: float) -> float:
    return 0.5 * (2 * b + (c - a) * t + (2 * a - 5 * b + 4 * c - d) * t**2 + (3 * b - a - 3 * c + d) * t**3)


def ribbon(line: Sequence[Point], width: Callable[[float], float]) -> tuple[Point, ...]:
    """The outline of a tube around a line; `width` gives its half width at 0 (start) … 1 (end)."""
    left, right = [], []
    for k, (x, y) in enumerate(line):
        (x0, y0), (x1, y1) = line[max(k - 1, 0)], line[min(k + 1, len(line) - 1)]
        length = math.hypot(x1 - x0, y1 - y0) or 1.0
        half = width(k / (len(line) - 1))
        nx, ny = -(y1 - y0) / length * half, (x1 - x0) / length * half
        left.append((round(x + nx, 3), round(y + ny, 3)))
        right.append((round(x - nx, 3), round(y - ny, 3)))
    return tuple(left + right[::-1])


def build_anatomy(seed: int, procedure: str = "cholecystectomy") -> Anatomy:
    """The organs of one patient; every CholecT50 target that is tissue gets at least two sites.

    >>> anatomy = build_anatomy(7)
    >>> len(anatomy.sites["gallbladder"]) >= 2 and anatomy.organs[0].name
    'abdominal_wall_cavity'
    """
    if procedure not in PROCEDURES:
        raise BadInput(f"procedure: found {procedure!r}, expected one of {', '.join(PROCEDURES)}")
    patient = _Patient(random.Random(f"anatomy {seed} {procedure}"))
    return _gallbladder_view(seed, patient) if procedure == "cholecystectomy" else _adhesion_view(seed, patient)


class _Patient:
    """Individual variation: a jittered number, an irregular outline."""

    def __init__(self, source: random.Random) -> None:
        self._random = source

    def near(self, value: float, spread: float) -> float:
        return round(value + spread * (2 * self._random.random() - 1), 3)

    def at(self, x: float, y: float, spread: float = 5.0) -> Point:
        return (self.near(x, spread), self.near(y, spread))

    def blob(self, centre: Point, rx: float, ry: float, tilt: float = 0.0, rough: float = 0.05) -> tuple[Point, ...]:
        wobble = tuple(self._random.random() * (rough / (1 + k / 4) if k % 2 == 0 else 2 * math.pi) for k in range(8))
        return smooth_outline(centre, rx, ry, tilt, wobble, n=72)


def _between(a: Point, b: Point, t: float, dx: float = 0.0, dy: float = 0.0) -> Point:
    return (round(a[0] + t * (b[0] - a[0]) + dx, 3), round(a[1] + t * (b[1] - a[1]) + dy, 3))


def _band(patient: _Patient, start: Point, end: Point, half: float) -> tuple[tuple[Point, ...], Point, Point]:
    """An adhesion: a web that spreads at both ends; also returns two points on it."""
    middle = _between(start, end, 0.5, dx=patient.near(0, 5), dy=patient.near(4, 4))
    line = curve((start, middle, end), 16)
    outline = ribbon(line, lambda t: half * (0.35 + 2.6 * (t - 0.5) ** 2))
    return outline, line[6], line[10]


def _gallbladder_view(seed: int, patient: _Patient) -> Anatomy:
    body = patient.at(-24, -52, 13)
    neck = (patient.near(body[0] + 44, 9), patient.near(body[1] + 64, 7))
    tilt = math.atan2(neck[1] - body[1], neck[0] - body[0])
    gallbladder = _bag(body, neck, patient)
    common = (patient.near(neck[0] + 62, 4), patient.near(neck[1] + 62, 4))
    duct = curve((_between(body, neck, 0.9), neck, _between(neck, common, 0.45, dx=-6, dy=7), common))
    artery_end = (patient.near(common[0] + 28, 4), patient.near(common[1] - 34, 4))
    artery = curve((_between(body, neck, 0.86, dx=9, dy=-6), _between(neck, artery_end, 0.4, dx=2, dy=-9), artery_end))
    plate = smooth_outline(_between(body, neck, -0.1, dx=6, dy=-6), 108, 62, tilt, (0.03, 1.0, 0.03, 2.0), n=72)
    pedicle = patient.blob(_between(neck, common, 0.38, dx=5, dy=-4), 52, 30, tilt=math.pi / 4, rough=0.12)
    liver_right = patient.blob(patient.at(178, -112, 14), 248, 142, patient.near(0.3, 0.12))
    liver_left = patient.blob(patient.at(-176, 106, 12), 200, 104, patient.near(-0.22, 0.14))
    gut = patient.blob(patient.at(236, 108, 5), 172, 78, -0.2, 0.03)
    omentum = patient.blob(patient.at(24, 190, 6), 300, 116, patient.near(-0.03, 0.05), 0.05)
    peritoneum = patient.blob(patient.at(-150, -6, 5), 96, 46, 0.5, 0.12)
    vessel = curve((patient.at(-66, 118, 3), patient.at(-14, 90, 2), patient.at(36, 94, 2), patient.at(84, 122, 3)))
    band_a, a1, a2 = _band(patient, _between(body, neck, 0.5, dx=-36, dy=16), patient.at(-34, 94, 3), 15)
    band_b, b1, b2 = _band(patient, patient.at(96, 22, 3), patient.at(110, 88, 3), 12)
    organs = (
        *_backdrop(peritoneum),
        Organ("liver", liver_right),
        Organ("liver", liver_left),
        Organ("cystic_plate", plate),
        Organ("cystic_pedicle", pedicle),
        Organ("gut", gut),
        Organ("omentum", omentum),
        Organ("blood_vessel", ribbon(vessel, lambda t: 3.1 - 1.2 * t)),
        Organ("adhesion", band_b),
        Organ("cystic_artery", ribbon(artery, lambda t: 2.7)),
        Organ("cystic_duct", ribbon(duct, lambda t: 7.5 - 3.2 * math.sin(math.pi * min(t * 1.25, 1.0)))),
        Organ("cystic_pedicle", patient.blob(_between(neck, common, 1.0, dx=4, dy=4), 24, 15, 0.5, 0.12)),
        Organ("gallbladder", gallbladder),
        Organ("adhesion", band_a),
    )
    across = (-math.sin(tilt), math.cos(tilt))  # to the lower left of the bag
    sites = {
        "gallbladder": (
            _between(body, neck, 0.62),
            _between(body, neck, 0.25, dx=-8, dy=6),
            _between(body, neck, -0.2),
            _between(body, neck, 0.4, dx=12, dy=-8),
        ),
        "cystic_plate": tuple(
            (round(body[0] + along * math.cos(tilt) - off * across[0], 3),
             round(body[1] + along * math.sin(tilt) - off * across[1], 3))
            for along, off in ((34, 50), (14, 54), (50, 44))
        ),
        "cystic_duct": (duct[10], duct[13], duct[16]),
        "cystic_artery": (artery[9], artery[12], artery[15]),
        "cystic_pedicle": (
            _between(neck, common, 0.42, dx=14, dy=-9),
            _between(neck, common, 0.3, dx=-17, dy=13),
            _between(neck, common, 0.62, dx=12, dy=-10),
        ),
        "blood_vessel": (vessel[8], vessel[12], vessel[16]),
        "abdominal_wall_cavity": (patient.at(-146, -80, 3), patient.at(-118, -88, 3)),
        "liver": (patient.at(112, -48, 5), patient.at(84, -72, 5), patient.at(-88, 52, 5), patient.at(-112, 70, 5)),
        "adhesion": (a1, a2, b1, b2),
        "omentum": (patient.at(-8, 84, 2), patient.at(36, 84, 2), patient.at(70, 92, 2)),
        "peritoneum": (patient.at(-124, -24, 4), patient.at(-100, 0, 4)),
        "gut": (patient.at(128, 84, 3), patient.at(146, 78, 3)),
    }  # fmt: skip
    return Anatomy(seed, organs, _on_organs(organs, sites), duct, artery)


def _bag(body: Point, neck: Point, patient: _Patient) -> tuple[Point, ...]:
    """The gallbladder: a pear from the fundus beyond `body` to the infundibulum at `neck`."""
    dx, dy = neck[0] - body[0], neck[1] - body[1]
    fundus = (body[0] - 1.15 * dx, body[1] - 1.15 * dy)
    bend = patient.near(4, 7)
    line = curve((fundus, (body[0] - bend, body[1] + bend), _between(body, neck, 0.6), neck), 30)
    width = patient.near(46, 7)

    def half(t: float) -> float:
        round_end = math.sqrt(max(1 - (1 - min(t / 0.27, 1.0)) ** 2, 0.0))
        if t < 0.5:
            taper = 1.0 - 0.06 * t
        elif t < 0.88:  # the infundibulum: narrower, with a slight pouch
            taper = 0.97 - 0.50 * ((t - 0.5) / 0.38) ** 1.4 + 0.05 * math.sin(math.pi * (t - 0.5) / 0.38)
        else:
            taper = 0.47 - 0.31 * (t - 0.88) / 0.12
        return width * round_end * taper + 0.5

    return ribbon(line, half)


def _adhesion_view(seed: int, patient: _Patient) -> Anatomy:
    body, neck = patient.at(128, -84, 3), patient.at(96, -52, 3)
    gallbladder = smooth_outline(_between(body, neck, 0.3), 34, 21, 2.36, (0.04, 0.5), n=48)
    duct = curve((neck, _between(neck, (70, -22), 0.5, dx=4), patient.at(70, -22, 2)), 24)
    artery = curve((_between(neck, body, 0.2, dx=-9, dy=-6), patient.at(70, -56, 2), patient.at(46, -46, 2)), 24)
    plate = smooth_outline(_between(body, neck, 0.3), 48, 33, 2.36, (0.03, 1.0), n=48)
    pedicle = patient.blob(patient.at(74, -36, 2), 34, 22, 2.4, 0.1)
    liver = patient.blob(patient.at(190, -118, 5), 190, 116, 0.4)
    gut = patient.blob(patient.at(-130, 104, 5), 150, 54, 0.12, 0.04)
    gut_loop = patient.blob(patient.at(150, 104, 5), 140, 56, -0.18, 0.04)
    omentum = patient.blob(patient.at(6, 112, 5), 132, 84, 0.05, 0.08)
    peritoneum = patient.blob(patient.at(-176, -6, 8), 130, 66, -0.25, 0.12)
    vessel = curve((patient.at(-40, 116, 3), patient.at(-6, 86, 3), patient.at(28, 74, 3), patient.at(58, 92, 3)))
    wall, floor = ((-96, -92), (-40, -104), (16, -96)), ((-50, 56), (-12, 48), (44, 54))
    bands = [
        _band(patient, patient.at(*top, 6), patient.at(*bottom, 6), half)
        for top, bottom, half in zip(wall, floor, (24.0, 19.0, 27.0), strict=True)
    ]
    organs = (
        *_backdrop(peritoneum),
        Organ("liver", liver),
        Organ("cystic_plate", plate),
        Organ("cystic_pedicle", pedicle),
        Organ("cystic_artery", ribbon(artery, lambda t: 2.2)),
        Organ("cystic_duct", ribbon(duct, lambda t: 4.5)),
        Organ("gallbladder", gallbladder),
        Organ("gut", gut),
        Organ("gut", gut_loop),
        Organ("omentum", omentum),
        Organ("blood_vessel", ribbon(vessel, lambda t: 3.1 - 1.2 * t)),
        *(Organ("adhesion", band[0]) for band in bands),
    )
    sites = {
        "gallbladder": (_between(body, neck, 0.3), _between(body, neck, 0.6), _between(body, neck, 0.05)),
        "cystic_plate": (_between(body, neck, 0.3, dx=21, dy=21), _between(body, neck, 0.75, dx=20, dy=17)),
        "cystic_duct": (duct[8], duct[14]),
        "cystic_artery": (artery[10], artery[15]),
        "cystic_pedicle": (patient.at(58, -34, 1), patient.at(66, -42, 1), patient.at(84, -24, 1)),
        "blood_vessel": (vessel[8], vessel[12], vessel[16]),
        "abdominal_wall_cavity": (patient.at(-110, -84, 4), patient.at(-24, -70, 4), patient.at(-66, -70, 4)),
        "liver": (patient.at(150, -48, 3), patient.at(76, -86, 3), patient.at(140, -28, 2)),
        "adhesion": tuple(point for band in bands for point in band[1:]),
        "omentum": (patient.at(-14, 76, 4), patient.at(40, 70, 4), patient.at(8, 90, 3)),
        "peritoneum": (patient.at(-128, -18, 5), patient.at(-108, 0, 5)),
        "gut": (patient.at(-118, 84, 4), patient.at(-136, 78, 4), patient.at(126, 84, 4), patient.at(146, 80, 4)),
    }
    return Anatomy(seed, organs, _on_organs(organs, sites), duct, artery)


def _backdrop(peritoneum: tuple[Point, ...]) -> tuple[Organ, Organ]:
    """What lies behind all other organs: the wall of the cavity, everywhere, and the peritoneum on it."""
    everywhere = ((-400.0, -300.0), (400.0, -300.0), (400.0, 300.0), (-400.0, 300.0))
    return Organ("abdominal_wall_cavity", everywhere), Organ("peritoneum", peritoneum)


def _on_organs(organs: tuple[Organ, ...], sites: dict[str, tuple[Point, ...]]) -> dict[str, tuple[Point, ...]]:
    """Each site moved to the nearest point within reach where its organ is what the lens sees."""
    return {name: tuple(_nearest_visible(organs, name, point) for point in points) for name, points in sites.items()}


def _nearest_visible(organs: tuple[Organ, ...], name: str, point: Point) -> Point:
    margin = 1.5 if name in ("cystic_artery", "blood_vessel") else 3.0
    for ring in range(24):
        for turn in range(max(8 * ring, 1)):
            angle = 2 * math.pi * turn / max(8 * ring, 1)
            x, y = point[0] + 2.5 * ring * math.cos(angle), point[1] + 2.5 * ring * math.sin(angle)
            if abs(x) > REACH[0] or abs(y) > REACH[1]:
                continue
            around = ((x - margin, y), (x + margin, y), (x, y - margin), (x, y + margin))
            if all(visible_organ(organs, spot) == name for spot in around):
                return (round(x, 3), round(y, 3))
    raise AssertionError(f"no place to touch the {name} near {point}")  # a layout mistake, never a user's


def visible_organ(organs: tuple[Organ, ...], point: Point) -> str:
    """The nearest organ over a rest point, with the gallbladder in place."""
    return next((organ.name for organ in reversed(organs) if _inside(organ.outline, point)), "")


def _inside(outline: tuple[Point, ...], point: Point) -> bool:
    x, y = point
    inside = False
    x0, y0 = outline[-1]
    for x1, y1 in outline:
        if (y0 > y) != (y1 > y) and x < x0 + (y - y0) * (x1 - x0) / (y1 - y0):
            inside = not inside
        x0, y0 = x1, y1
    return inside
