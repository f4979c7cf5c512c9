"""`number_tracks`: #1, #2, … for the instruments of each class, by one of four rules."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import numpy as np

from surgeval.arrays import Ints
from surgeval.detector.inference.tracking import Tracking
from surgeval.errors import BadInput
from surgeval.studio.identity.instances import UNNUMBERED, Instances
from surgeval.studio.identity.peers import bytetrack_identities, centre_identities
from surgeval.studio.identity.sector import SectorRule, sector_identities

__all__ = ["NumberingRule", "number_tracks"]

NumberingRule: TypeAlias = Literal["sector", "bytetrack", "centres", "upstream"]


def number_tracks(
    instances: Instances,
    rule: NumberingRule | SectorRule | Tracking = "sector",
    *,
    gap: float = 3.0,
    within: tuple[int, int] | None = None,
    current: Ints | None = None,
) -> Ints:
    """The number of each instance within its class; −1 where a rule gives none.

    `sector` (or a `SectorRule` with other settings), `bytetrack` (or a `Tracking`) and `centres` count from 1 in the
    order of appearance and keep a number for absences up to `gap` seconds (settings have their own); `upstream` takes
    ids as they came.
    Hand-set ids stay as they are under every rule. With `within` (first and last frame) only those frames are numbered
    anew; the others keep their `current` numbers, and tracks that reach into the range go on in it.

    Two graspers, one from the left and one from the right; for a moment only one is seen:

    >>> left, right = [0, 40, 45, 55], [55, 42, 100, 60]
    >>> boxes = Instances.of(
    ...     frame=[0, 0, 1, 2, 2], time=[0, 0, 1, 2, 2], kind=[3] * 5, size=(100, 100),
    ...     xyxy=[left, right, left, right, left],
    ... )
    >>> number_tracks(boxes).tolist()
    [2, 1, 2, 1, 2]
    """
    if within is not None:
        return _within(instances, rule, gap, within, current)
    if rule == "upstream":
        return np.where(instances.fixed >= 0, instances.fixed, instances.upstream)
    if isinstance(rule, SectorRule) or rule == "sector":
        settings = rule if isinstance(rule, SectorRule) else SectorRule(gap=gap)
        return _numbered(instances, *sector_identities(instances, settings))
    if rule == "centres":
        return _numbered(instances, *centre_identities(instances, gap))
    if isinstance(rule, Tracking) or rule == "bytetrack":
        tracking = rule if isinstance(rule, Tracking) else Tracking(lost=gap)
        return _numbered(instances, *bytetrack_identities(instances, tracking))
    raise BadInput(f"rule: found {rule!r}, expected {', '.join(get_args(NumberingRule))}")


def _within(
    instances: Instances,
    rule: NumberingRule | SectorRule | Tracking,
    gap: float,
    within: tuple[int, int],
    current: Ints | None,
) -> Ints:
    first, last = within
    if first > last:
        raise BadInput(f"within: found frames {first} to {last}, expected the first one first")
    if current is None or len(current) != len(instances):
        found = "no current numbers" if current is None else f"{len(current)} current numbers"
        raise BadInput(f"within: found {found}, expected one for each of the {len(instances)} instances")
    inside = (instances.frame >= first) & (instances.frame <= last)
    numbers = current.astype(np.int64).copy()
    # What lies outside stands as if set by hand; what has no number there takes no part.
    rows = np.flatnonzero(inside | (current >= 1))
    fixed = np.where(inside, instances.fixed, current)[rows].astype(np.int64)
    numbered = number_tracks(instances.take(rows).with_fixed(fixed), rule, gap=gap)
    numbers[inside] = numbered[inside[rows]]
    return numbers


def _numbered(instances: Instances, identity: Ints, hand_set: Ints) -> Ints:
    """Numbers for identities: hand-set ids, else the lowest free ones of the class in the order of appearance."""
    numbers = np.append(hand_set, UNNUMBERED)
    rows = np.flatnonzero(identity >= 0)
    rows = rows[np.lexsort((identity[rows], instances.frame[rows]))]
    ids, first = np.unique(identity[rows], return_index=True)
    by_appearance = ids[np.argsort(first, kind="stable")]
    kinds = np.zeros(len(hand_set), np.int64)
    kinds[identity[rows]] = instances.kind[rows]
    for kind in np.unique(kinds[ids]).tolist():
        mine = by_appearance[kinds[by_appearance] == kind]
        free = mine[hand_set[mine] < 0]
        fixed = np.unique(instances.fixed[(instances.kind == kind) & (instances.fixed >= 1)])
        numbers[free] = np.setdiff1d(np.arange(1, len(free) + len(fixed) + 1), fixed)[: len(free)]
    return np.where(identity >= 0, numbers[identity], UNNUMBERED)
