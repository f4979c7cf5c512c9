"""Class ids in columns: the classes of every component from triplet, instrument, verb and target ids.

−1 is "not known" and stays −1. The triplet decides; components beside it must agree (ivtdmetrics' mapper gives an
unknown triplet instrument, verb and target 0 without a word).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surgeval.arrays import Bools, Ints
from surgeval.vocab import LabelSpace

__all__ = ["COMPONENTS", "ClassAgreement", "agree", "class_columns"]


PARTS = ("instrument", "verb", "target")
COMPONENTS = ("ivt", "i", "v", "t", "iv", "it", "vt")  # in the order in which they are reported


def class_columns(space: LabelSpace, triplet: Ints, instrument: Ints, verb: Ints, target: Ints) -> dict[str, Ints]:
    """The classes of every component that the label space has, from ids that already agree.

    >>> from surgeval.vocab import load_labels
    >>> space, unknown = load_labels("cholect50"), np.array([-1])
    >>> {c: ids.tolist() for c, ids in class_columns(space, unknown, np.array([0]), np.array([2]), unknown).items()}
    {'ivt': [-1], 'i': [0], 'v': [2], 't': [-1], 'iv': [2], 'it': [-1], 'vt': [-1]}
    """
    own = {"i": instrument, "v": verb, "t": target}
    columns: dict[str, Ints] = {}
    for component in COMPONENTS:
        if space.num_classes(component) == 0:
            continue
        if component == "ivt":
            columns[component] = triplet.copy()
        elif component in own:
            columns[component] = own[component].copy()
        else:
            columns[component] = _pairs(space, component, own[component[0]], own[component[1]])
    return columns


def _pairs(space: LabelSpace, component: str, first: Ints, second: Ints) -> Ints:
    table = np.asarray(space.triplets, dtype=np.int64)
    a, b = (table[:, "ivt".index(letter)] for letter in component)
    width = int(b.max()) + 1
    present, where = np.unique(a * width + b, return_index=True)
    ids = space.component_ids(component)[where]
    key = np.where((first >= 0) & (second >= 0) & (second < width), first * width + second, -1)
    return _looked_up(key, present, ids)


def _looked_up(key: Ints, present: Ints, ids: Ints) -> Ints:
    at = np.minimum(np.searchsorted(present, key), len(present) - 1)
    return np.where(present[at] == key, ids[at], -1)


@dataclass(frozen=True)
class ClassAgreement:
    """Ids completed from one another, and the rows where that is impossible."""

    triplet: Ints
    parts: tuple[Ints, Ints, Ints]
    clash: tuple[Bools, Bools, Bools]  # part beside another triplet
    no_class: Bools  # all three parts known, and their combination is no triplet
    nothing: Bools  # no id at all


def agree(
    space: LabelSpace, triplet: Ints, instrument: Ints, verb: Ints, target: Ints, own: Bools | None = None
) -> ClassAgreement:
    """Complete triplet from parts and parts from triplet; ids are in range or −1.

    Where `own`, the parts were chosen apart from the triplet: they stay as given and clash with nothing.
    """
    own = np.zeros(len(triplet), dtype=bool) if own is None else own
    parts = [instrument, verb, target]
    clash = [np.zeros(len(triplet), dtype=bool)] * 3
    no_class = np.zeros(len(triplet), dtype=bool)
    if space.triplets:
        table = np.asarray(space.triplets, dtype=np.int64)
        known = triplet >= 0
        derived = table[np.maximum(triplet, 0)]
        clash = [known & ~own & (part >= 0) & (part != derived[:, k]) for k, part in enumerate(parts)]
        parts = [np.where(known & ~(own & (part >= 0)), derived[:, k], part) for k, part in enumerate(parts)]
        whole = ~known & (parts[0] >= 0) & (parts[1] >= 0) & (parts[2] >= 0)
        sizes = (len(space.verbs), len(space.targets))
        keys = (table[:, 0] * sizes[0] + table[:, 1]) * sizes[1] + table[:, 2]
        order = np.argsort(keys)
        key = np.where(whole, (parts[0] * sizes[0] + parts[1]) * sizes[1] + parts[2], -1)
        matches = _looked_up(key, keys[order], order)
        no_class = whole & ~own & (matches < 0)
        triplet = np.where(known, triplet, matches)
    nothing = (triplet < 0) & (parts[0] < 0) & (parts[1] < 0) & (parts[2] < 0)
    return ClassAgreement(triplet, (parts[0], parts[1], parts[2]), (clash[0], clash[1], clash[2]), no_class, nothing)
