"""Margins of the one sparse count in `DatasetStatistics`: what tables and figures both show.

The last row or column of a component is "not known", so that the id −1 finds it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from surgeval.records import UNKNOWN

if TYPE_CHECKING:
    from surgeval.report.dataset.statistics import DatasetStatistics

NOT_KNOWN = "(not known)"
# ProstaTD paper, Table 2: percent of frames with 0, 1 … 6 triplet instances.
PUBLISHED_PER_FRAME = {
    "cholect50": (10.97, 35.18, 47.10, 6.75, 0.0, 0.0, 0.0),
    "prostatd": (0.91, 6.19, 34.13, 39.75, 16.62, 2.21, 0.19),
}
COMPONENTS = ("instruments", "verbs", "targets")  # in the order of the keys of `instances`, after the source


def source_names(s: DatasetStatistics) -> tuple[str, ...]:
    """The sources for reading; one that the dataset leaves unnamed has a name here too."""
    return tuple(source or "(no source)" for source in s.sources)


def names_of(s: DatasetStatistics, component: str) -> tuple[str, ...]:
    """The class names of `instruments`, `verbs` or `targets`, and "not known" last, where −1 finds it."""
    names: tuple[str, ...] = getattr(s.space, component)
    return (*names, NOT_KNOWN)


def component_counts(s: DatasetStatistics, component: str) -> list[list[int]]:
    """Instances by class (the last row: not known), then source."""
    column = 1 + COMPONENTS.index(component)
    rows = [[0] * len(s.sources) for _ in names_of(s, component)]
    for key, count in s.instances.items():
        rows[key[column]][key[0]] += count
    return rows


def triplet_counts(s: DatasetStatistics) -> list[list[int]]:
    """Instances by triplet id (the last row: no class), then source."""
    rows = [[0] * len(s.sources) for _ in range(len(s.space.triplets) + 1)]
    for (source, *ids), count in s.instances.items():
        rows[s.space.find(ids[0], ids[1], ids[2])][source] += count
    return rows


def pair_counts(s: DatasetStatistics, component: str) -> list[list[int]]:
    """Instances by instrument and verb or target (the last row and column: not known)."""
    column = 1 + COMPONENTS.index(component)
    rows = [[0] * len(names_of(s, component)) for _ in names_of(s, "instruments")]
    for key, count in s.instances.items():
        rows[key[1]][key[column]] += count
    return rows


def together_counts(s: DatasetStatistics) -> list[list[int]]:
    """Frames by two instruments shown at once, symmetric."""
    count = len(s.space.instruments)
    return [[s.together.get((min(i, j), max(i, j)), 0) for j in range(count)] for i in range(count)]


def per_frame_percent(counts: Sequence[int]) -> tuple[float, ...]:
    """Share of frames in percent, rounded as in the paper; zeros where there is no frame."""
    total = sum(counts)
    return tuple(round(100 * count / total, 2) if total else 0.0 for count in counts)


def phase_name(s: DatasetStatistics, phase: int) -> str:
    """A phase for reading."""
    return NOT_KNOWN if phase == UNKNOWN else s.space.phases[phase]
