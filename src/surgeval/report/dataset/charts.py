"""The figures of a dataset report, made from `DatasetStatistics`, by file name.

A figure with nothing to show is left out. The long tables of classes are cut to the most frequent; what was cut is
in the table and in the caption.
"""

from __future__ import annotations

from collections.abc import Sequence

from surgeval.figures import Figure, Series, TimelineSpan, bars, heatmap, histogram, timeline
from surgeval.report.dataset import margins
from surgeval.report.dataset.bins import BOX_EDGES, PER_FRAME, RUN_EDGES
from surgeval.report.dataset.statistics import DatasetStatistics

MOST_CLASSES = 25  # bars in one figure
MOST_VIDEOS = 40  # rows of the timeline
MOST_SOURCES = 12  # colours in one figure
_MINUTE = 60.0


def statistics_figures(s: DatasetStatistics) -> dict[str, Figure]:
    """Every figure that has something to show."""
    counts = margins.triplet_counts(s)[:-1]
    figures: dict[str, Figure | None] = {
        "instruments": _classes(
            s, "Instruments", margins.names_of(s, "instruments"), margins.component_counts(s, "instruments")
        ),
        "verbs": _classes(s, "Verbs", margins.names_of(s, "verbs"), margins.component_counts(s, "verbs")),
        "targets": _classes(s, "Targets", margins.names_of(s, "targets"), margins.component_counts(s, "targets")),
        "triplets": _classes(s, "Most frequent triplets", s.space.triplet_names, counts),
        "triplets_tail": _tail(s, counts),
        "instances_per_frame": _per_frame(s),
        "instrument_verb": _pairs(s, "verbs", "Instrument and verb of one instance"),
        "instrument_target": _pairs(s, "targets", "Instrument and target of one instance"),
        "instrument_instrument": _together(s),
        "phases": _timeline(s),
        "action_lengths": _action_lengths(s),
        "box_sizes": _box_sizes(s),
    }
    return {name: figure for name, figure in figures.items() if figure is not None}


def _series(s: DatasetStatistics, rows: Sequence[Sequence[int]]) -> tuple[Series, ...]:
    """One series per source; with more sources than colours, one for all."""
    if not 1 < len(s.sources) <= MOST_SOURCES:
        return (Series("all", tuple(float(sum(row)) for row in rows)),)
    return tuple(Series(name, tuple(float(row[k]) for row in rows)) for k, name in enumerate(margins.source_names(s)))


def _classes(s: DatasetStatistics, title: str, names: Sequence[str], rows: Sequence[Sequence[int]]) -> Figure | None:
    ranked = sorted((k for k in range(len(rows)) if any(rows[k])), key=lambda k: (-sum(rows[k]), k))[:MOST_CLASSES]
    if not ranked or all(names[k] == margins.NOT_KNOWN for k in ranked):
        return None
    return bars(title, tuple(names[k] for k in ranked), _series(s, [rows[k] for k in ranked]), "instances")


def _tail(s: DatasetStatistics, rows: Sequence[Sequence[int]]) -> Figure | None:
    ranked = sorted((k for k in range(len(rows)) if any(rows[k])), key=lambda k: (-sum(rows[k]), k))
    if len(ranked) <= MOST_CLASSES // 2:
        return None
    return bars(
        "The long tail: all triplets that occur, by rank",
        tuple(s.space.triplet_name(k) for k in ranked),
        (Series("all", tuple(float(sum(rows[k])) for k in ranked)),),
        "instances",
        horizontal=False,
        log=True,
        named=False,
        axis=f"{len(ranked)} triplets, most frequent first",
    )


def _per_frame(s: DatasetStatistics) -> Figure | None:
    if not s.labelled:
        return None
    several = 1 < len(s.sources) <= MOST_SOURCES
    everything = [sum(column) for column in zip(*s.per_frame, strict=True)]
    rows = list(zip(margins.source_names(s), s.per_frame, strict=True)) if several else [("this dataset", everything)]
    series = [Series(name, margins.per_frame_percent(counts)) for name, counts in rows if sum(counts)]
    if s.space.name in margins.PUBLISHED_PER_FRAME:
        series.append(Series(f"{s.space.name} as published", margins.PUBLISHED_PER_FRAME[s.space.name]))
    return bars(
        f"{crowd(s).capitalize()} per labelled frame",
        PER_FRAME,
        tuple(series),
        "% of frames",
        grouped=True,
        horizontal=False,
        axis=f"{crowd(s)} in a frame",
    )


def crowd(s: DatasetStatistics) -> str:
    """What is counted per frame."""
    return "triplet instances" if s.space.triplets else "instances"


def _pairs(s: DatasetStatistics, component: str, title: str) -> Figure | None:
    values, columns = margins.pair_counts(s, component), margins.names_of(s, component)
    if not any(any(row[:-1]) for row in values):
        return None
    return _matrix(title, margins.names_of(s, "instruments"), columns, values, "instances")


def _together(s: DatasetStatistics) -> Figure | None:
    names = s.space.instruments
    return (
        _matrix("Two instruments in one frame", names, names, margins.together_counts(s), "frames")
        if s.together
        else None
    )


def _matrix(
    title: str, rows: Sequence[str], columns: Sequence[str], values: Sequence[Sequence[int]], unit: str
) -> Figure:
    """Only rows and columns that occur: a blank half would hide the rest."""
    down = [r for r in range(len(rows)) if any(values[r])]
    across = [c for c in range(len(columns)) if any(row[c] for row in values)]
    return heatmap(
        title,
        tuple(rows[r] for r in down),
        tuple(columns[c] for c in across),
        tuple(tuple(float(values[r][c]) for c in across) for r in down),
        unit,
    )


def _timeline(s: DatasetStatistics) -> Figure | None:
    shown = [row for row in s.videos if row.stretches][:MOST_VIDEOS]
    if not shown:
        return None
    kinds = sorted({run.key for row in shown for run in row.stretches}, key=lambda phase: (phase < 0, phase))
    spans = tuple(
        TimelineSpan(k, kinds.index(run.key), run.start / _MINUTE, run.end / _MINUTE)
        for k, row in enumerate(shown)
        for run in row.stretches
    )
    names = tuple(margins.phase_name(s, phase) for phase in kinds)
    return timeline("Phases of each video", tuple(row.video.name for row in shown), names, spans, "minutes")


def _action_lengths(s: DatasetStatistics) -> Figure | None:
    return _histogram("How long an action lasts", RUN_EDGES, s.run_lengths, "seconds", "actions")


def _box_sizes(s: DatasetStatistics) -> Figure | None:
    counts = tuple(sum(column) for column in zip(*s.box_sizes.values(), strict=True))
    return _histogram("Size of the boxes", BOX_EDGES, counts, "% of the frame's area", "boxes")


def _histogram(title: str, edges: Sequence[float], counts: Sequence[int], axis: str, unit: str) -> Figure | None:
    """Without the empty bins at both ends."""
    filled = [k for k, count in enumerate(counts) if count]
    if not filled:
        return None
    first, last = filled[0], filled[-1]
    return histogram(title, tuple(edges[first : last + 2]), tuple(counts[first : last + 1]), axis, unit)
