"""The sector rule: instruments of a class are told apart by the side they come from, then by direction, then by tip.

The prior: an instrument enters by a trocar, works from a roughly fixed direction and stays in that sector until it is
taken out. Sectors and directions are compared in whole steps of the angle between two boxes, not by the numbers of the
bins they fall in: an instrument on the border of two sectors would change its bin with every tremor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np

from surgeval.arrays import Floats, Ints
from surgeval.errors import BadInput
from surgeval.studio.identity.chain import LINE, POINT, TURN, follow
from surgeval.studio.identity.instances import Instances
from surgeval.studio.identity.looks import box_axes, box_exits, nearest_corners, outline_axes, outline_exits, sector_of

__all__ = ["LEVELS", "SectorRule", "sector_identities", "sectors_of"]

_READINGS = 2  # of a box's exit
# Columns of the looks: exit angle (two readings), direction, key point, centre; all lengths in frame diagonals.
_EXIT, _AXIS, _KEY, _CENTRE = 0, 2, 3, 5
_SMALLEST = 512.0  # mean steps of a window of five, in eight pairs, differ by more than one part in this
LEVELS: Mapping[str, float] = MappingProxyType(
    {"sector": 1.5, "orientation": 2.5}
    | dict.fromkeys(("keypoint", "centre", "left-right", "right-left", "top-bottom", "bottom-top"), 0.3)
)
"""What can be compared, and how far (in sectors, steps of direction or frame diagonals) it is still the same one."""


@dataclass(frozen=True)
class SectorRule:
    """How instruments of one class are told apart.

    `order` names what is compared, the most important first: `sector`, `orientation`, `keypoint`, `centre`, or a
    coordinate (`left-right`, `right-left`, `top-bottom`, `bottom-top`), which also says who is #1 among newcomers.

    >>> SectorRule(order=("left-right",)).sectors
    8
    >>> SectorRule(order=("colour",))
    Traceback (most recent call last):
    surgeval.errors.BadInput: order: found 'colour', expected some of sector, orientation, keypoint, ...
    """

    sectors: int = 8
    order: tuple[str, ...] = ("sector", "orientation", "keypoint")
    k: int = 5  # boxes that an identity remembers
    gap: float = 3.0  # seconds of absence that an identity survives
    reuse: Literal["never", "sector"] = "never"  # who comes after that: a new number, or the last one of its sector
    reach: float | None = None  # how far on the first level a box may be and still be the same; None: see LEVELS

    def __post_init__(self) -> None:
        for name in self.order:
            if name not in LEVELS:
                raise BadInput(f"order: found {name!r}, expected some of {', '.join(LEVELS)}")
        if not self.order or len(set(self.order)) < len(self.order):
            raise BadInput(f"order: found {', '.join(self.order) or 'nothing'}, expected one or more, each once")
        if not 2 <= self.sectors <= 64:
            raise BadInput(f"sectors: found {self.sectors}, expected a number between 2 and 64")
        if not 1 <= self.k <= 100:
            raise BadInput(f"k: found {self.k}, expected a number between 1 and 100")
        if not 0 <= self.gap < np.inf:
            raise BadInput(f"gap: found {self.gap:g}, expected seconds from 0")
        if self.reuse not in ("never", "sector"):
            raise BadInput(f"reuse: found {self.reuse!r}, expected never or sector")
        if self.reach is not None and not 0 <= self.reach < np.inf:
            raise BadInput(f"reach: found {self.reach:g}, expected a number from 0")


def sectors_of(instances: Instances, sectors: int = 8) -> Ints:
    """The sector that each instance comes from: 0 to the right, then clockwise.

    >>> boxes = [[60, 40, 100, 60], [0, 45, 30, 55], [45, 0, 55, 40]]
    >>> sectors_of(Instances.of(frame=[0, 0, 0], time=[0, 0, 0], kind=[1, 1, 1], size=(100, 100), xyxy=boxes)).tolist()
    [0, 4, 6]
    """
    centre = np.array(instances.size) / 2
    return sector_of(_exits(instances)[:, 0], centre, sectors)


def sector_identities(instances: Instances, rule: SectorRule) -> tuple[Ints, Ints]:
    """An identity for each row, in the order of appearance within a class, and its hand-set id (−1: none)."""
    looks = _looks(instances)
    sector = sectors_of(instances, rule.sectors)
    levels, weights = _levels(rule)
    reach = LEVELS[rule.order[0]] if rule.reach is None else rule.reach
    keys = [key for name in reversed(rule.order) for key in reversed(_newcomers(name, looks, sector))]
    order = np.lexsort((*keys, instances.frame, instances.kind))
    identity, hand_set = np.zeros(len(instances), np.int64), []
    known, fixed = _counted(instances.fixed)
    patience = rule.gap + instances.step + 1e-6
    count = 0
    for rows in np.split(order, np.flatnonzero(np.diff(instances.kind[order])) + 1) if len(order) else ():
        start = np.concatenate([[0], np.flatnonzero(np.diff(instances.frame[rows])) + 1, [len(rows)]])
        identities, names = follow(
            start, instances.time[rows[start[:-1]]], looks[rows], sector[rows], fixed[rows],
            levels, weights, reach * weights[0], rule.k, patience, rule.reuse == "sector",
        )  # fmt: skip
        identity[rows] = identities + count
        hand_set.append(np.where(names >= 0, known[names], -1))
        count += len(names)
    return identity, np.concatenate([np.zeros(0, np.int64), *hand_set])


def _counted(fixed: Ints) -> tuple[Ints, Ints]:
    """The hand-set ids that occur, and for each row which of them it has (−1: none)."""
    known = np.unique(fixed[fixed >= 0])
    counted = np.where(fixed >= 0, np.searchsorted(known, fixed), -1)
    return np.append(known, -1), counted.astype(np.int64)


def _exits(instances: Instances) -> Floats:
    exits = box_exits(instances.xyxy, instances.size)
    rows, outlines = _outlined(instances)
    if len(rows):
        exits[rows] = outline_exits(*outline_axes(outlines), instances.size)[:, None]
    return exits


def _outlined(instances: Instances) -> tuple[Ints, list[Floats]]:
    pairs = [(row, outline) for row, outline in enumerate(instances.outlines) if outline is not None]
    return np.array([row for row, _ in pairs], dtype=np.int64), [outline for _, outline in pairs]


def _looks(instances: Instances) -> Floats:
    """Exit angles, direction, key point and centre of each row."""
    centre, boxes = np.array(instances.size) / 2, instances.xyxy
    diagonal = float(np.hypot(*instances.size))
    out = _exits(instances) - centre
    axes = box_axes(boxes, centre)
    rows, outlines = _outlined(instances)
    if len(rows):
        axes[rows] = outline_axes(outlines)[1]
    known = np.isfinite(instances.tip).all(axis=1, keepdims=True)
    key = np.where(known, instances.tip, nearest_corners(boxes, centre))
    middle = (boxes[:, :2] + boxes[:, 2:]) / 2
    points = np.clip(np.hstack([key, middle]), 0, np.tile(instances.size, 2)) / diagonal
    return np.ascontiguousarray(np.hstack([np.arctan2(out[:, :, 1], out[:, :, 0]), axes[:, None], points]))


def _levels(rule: SectorRule) -> tuple[Floats, Floats]:
    """What the kernel compares: (how it measures, column, step, period, readings) of each level, and its weight."""
    n = rule.sectors
    x, y = (LINE, _KEY, 1, 1, 1), (LINE, _KEY + 1, 1, 1, 1)
    known = {
        "sector": (TURN, _EXIT, 2 * np.pi / n, 2 * np.pi, _READINGS),
        "orientation": (TURN, _AXIS, np.pi / n, np.pi, 1),
        "keypoint": (POINT, _KEY, 1, 1, 1),
        "centre": (POINT, _CENTRE, 1, 1, 1),
        "left-right": x, "right-left": x, "top-bottom": y, "bottom-top": y,
    }  # fmt: skip
    levels = np.array([known[name] for name in rule.order], dtype=np.float64)
    # In steps a level is at most n/2, in lengths at most 1; what follows a length decides nothing but equals.
    weights = [1.0]
    for above, below in zip(levels[-2::-1], levels[:0:-1], strict=True):
        largest = n / 2 if below[0] == TURN else 1.0
        weights.insert(0, weights[0] * (_SMALLEST * largest if above[0] == TURN else 1e4))
    return levels, np.array(weights) / max(weights[0] / 1e6, 1.0)


def _newcomers(name: str, looks: Floats, sector: Ints) -> tuple[Floats | Ints, ...]:
    """By what newcomers of one frame are numbered."""
    x, y = looks[:, _KEY], looks[:, _KEY + 1]
    sorted_by: dict[str, tuple[Floats | Ints, ...]] = {
        "sector": (sector,), "orientation": (looks[:, _AXIS],), "keypoint": (x, y), "centre": (x, y),
        "left-right": (x,), "right-left": (-x,), "top-bottom": (y,), "bottom-top": (-y,),
    }  # fmt: skip
    return sorted_by[name]
