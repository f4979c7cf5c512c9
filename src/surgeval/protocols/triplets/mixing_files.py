"""The two files from which a stored model's videos are exchanged with another's, read as files of strangers.

`ranked.parquet` has a row per ranked box and component (its class, score, and a bit for each IoU threshold at which it
is a hit), or a row per frame (the labelled columns and all scores). `counts.parquet` has what is counted per video:
labels, association, cost, and which classes are rare or which column belongs to which class.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from surgeval.arrays import AnyArray, Floats, Ints
from surgeval.errors import DataError
from surgeval.files import read_parquet_file, write_parquet_file
from surgeval.metrics import ASSOCIATION_COUNTS, Ranked
from surgeval.metrics.ordinal import PARTS
from surgeval.protocols.triplets.metrics import Key
from surgeval.protocols.triplets.scoring.detection import CostSums
from surgeval.protocols.triplets.scoring.mixing import MOST_CELLS, RankedBoxes, RankedGroup, ScoredFrames
from surgeval.protocols.triplets.scoring.recognition import FrameScores
from surgeval.protocols.triplets.stored import MOST_CLASSES, Confusions, expect

__all__ = ["MIXING_FILES", "Layout", "read_mixable", "write_mixable"]

RANKED, COUNTS = MIXING_FILES = ("ranked.parquet", "counts.parquet")
_THRESHOLDS: Floats = np.linspace(0.5, 0.95, 10)
_BOXES = pl.Schema(
    [("group", pl.Int64), ("component", pl.String), ("class", pl.Int64), ("video", pl.Int64), ("score", pl.Float64),
     ("hits", pl.Int64)]
)  # fmt: skip
_FRAMES = [("video", pl.Int64()), ("answered", pl.Boolean()), ("labels", pl.List(pl.Int64))]
_COUNTS = pl.Schema({"group": pl.Int64, "kind": pl.String, "component": pl.String, "video": pl.Int64,
                     "class": pl.Int64, "value": pl.Float64})  # fmt: skip


@dataclass(frozen=True)
class Layout:
    """What the other files of the folder say: groups by their videos' numbers, classes by component, the numbers."""

    task: str
    convention: str
    ties: str
    n_videos: int
    groups: Sequence[Ints]
    n_classes: Mapping[str, int]
    keys: Sequence[Key]

    @classmethod
    def of(cls, path: Path, data: Mapping[str, Any], confusions: Confusions, keys: Sequence[Key]) -> Layout:
        """What checked scores say; `path` names them."""
        settings = data["settings"]
        number_of = {video: number for number, video in enumerate(settings["videos"])}
        named = settings["scheme"].get("groups")
        lists = list(named.values()) if isinstance(named, dict) else []
        fits = bool(lists) and all(
            isinstance(names, list) and names and set(map(str, names)) <= set(number_of) for names in lists
        )
        expect(fits, path, "settings: scheme: groups", named, "some of the videos in each")
        return cls(
            data["task"], settings.get("convention", ""), settings.get("ties", ""), len(number_of),
            [np.array([number_of[str(video)] for video in names], dtype=np.int64) for names in lists],
            {component: len(confusions[component][1]) if component in confusions else 0
             for component in settings["components"]}, keys,
        )  # fmt: skip

    @property
    def main(self) -> str:
        """The component whose rare classes are counted, or whose columns the frames have."""
        scope = "rare, global" if self.task == "detection" else "recall among the highest scores"
        return next((key.component for key in self.keys if key.scope == scope), "ivt")


def write_mixable(folder: Path, mixable: RankedBoxes | ScoredFrames | None) -> tuple[str, ...]:
    """Store what is kept, or take away what was; the names of the files that are there now."""
    for name in MIXING_FILES:
        (folder / name).unlink(missing_ok=True)
    if mixable is None:
        return ()
    tables = _box_tables(mixable) if isinstance(mixable, RankedBoxes) else _frame_tables(mixable)
    for name, table in zip(MIXING_FILES, tables, strict=True):
        write_parquet_file(table, folder / name)
    return MIXING_FILES


def read_mixable(folder: Path, layout: Layout) -> RankedBoxes | ScoredFrames | None:
    """What was kept, checked cell by cell; None where nothing was."""
    if not any((folder / name).exists() for name in MIXING_FILES):
        return None
    cells = layout.n_videos * sum(layout.n_classes.values())
    if cells > MOST_CELLS:
        raise DataError(folder / COUNTS, f"found {cells} videos × classes, expected at most {MOST_CELLS}")
    counts = _StoredCounts(folder / COUNTS, layout)
    return _read_boxes(folder / RANKED, layout, counts) if layout.task == "detection" else _read_frames(
        folder / RANKED, layout, counts)  # fmt: skip


def _box_tables(mixable: RankedBoxes) -> tuple[pl.DataFrame, pl.DataFrame]:
    bits = 2 ** np.arange(len(_THRESHOLDS))
    ranked, counted = [], []
    for number, group in enumerate(mixable.groups):
        for component, boxes in group.ranked.items():
            columns = [boxes.class_of, boxes.videos, boxes.score, boxes.hits @ bits]
            table = pl.DataFrame(dict(zip(("class", "video", "score", "hits"), columns, strict=True)))
            ranked.append(table.select(pl.lit(number).cast(pl.Int64).alias("group"),
                                       pl.lit(component).alias("component"), pl.all()))  # fmt: skip
            counted.append(_sparse(number, "truths", component, boxes.truths))
        counted.append(_sparse(number, "rare", mixable.rare_of, _flags(group.rare)))
        if group.association is not None:
            counted.append(_sparse(number, "association", "ivt", group.association))
        if group.cost is not None:
            counted += [_sparse(number, kind, part, values) for kind, part, values in _cost_arrays(group.cost)]
    return pl.concat(ranked).cast(_BOXES), pl.concat(counted)


def _cost_arrays(cost: CostSums) -> Iterator[tuple[str, str, AnyArray]]:
    yield "predictions", "ivt", cost.predictions
    yield "instances", "ivt", cost.instances
    for part in PARTS:
        yield "said", part, cost.said[part]
        yield "earned", part, cost.earned[part]


def _frame_tables(mixable: ScoredFrames) -> tuple[pl.DataFrame, pl.DataFrame]:
    frames = mixable.frames
    labels = [np.flatnonzero(row).tolist() for row in frames.targets]
    kind = pl.Float32 if frames.scores.dtype == np.float32 else pl.Float64
    table = pl.DataFrame(
        {"video": frames.video, "answered": frames.answered, "labels": labels, "scores": list(frames.scores)},
        schema=pl.Schema([*_FRAMES, ("scores", pl.List(kind))]),
    )
    counted = [_sparse(number, "rare", frames.main, _flags(rare)) for number, (_, rare) in enumerate(mixable.groups)]
    counted += [_sparse(0, "column", component, 1 + ids[None]) for component, ids in frames.classes.items()]
    return table, pl.concat(counted)


def _flags(ids: Ints) -> Ints:
    return np.bincount(ids)[None] if len(ids) else np.zeros((1, 1), np.int64)


def _sparse(group: int, kind: str, component: str, values: AnyArray) -> pl.DataFrame:
    """The cells (video, class) that hold something."""
    video, label = np.nonzero(values)
    table = pl.DataFrame({"video": video, "class": label, "value": values[video, label].astype(np.float64)})
    named = (pl.lit(group).alias("group"), pl.lit(kind).alias("kind"), pl.lit(component).alias("component"))
    return table.select(*named, pl.all()).cast(_COUNTS)


class _StoredCounts:
    """The table of counts, one array at a time."""

    def __init__(self, path: Path, layout: Layout) -> None:
        self._path, self._layout = path, layout
        self._table = read_parquet_file(path)
        if self._table.schema != _COUNTS or any(self._table.null_count().row(0)):
            raise DataError(path, "found another table, expected what was counted per video")
        _require_range(path, self._table, "value", 0, 2**53)
        self._kinds = {key: part for key, part in self._table.group_by("group", "kind", "component")}  # noqa: C416

    def array(self, group: int, kind: str, component: str, shape: tuple[int, int]) -> Floats:
        """Values by video and class."""
        values = np.zeros(shape)
        part = self._kinds.get((group, kind, component))
        if part is not None:
            for column, most in zip(("video", "class"), shape, strict=True):
                _require_range(self._path, part, column, 0, most - 1)
            values[part["video"].to_numpy(), part["class"].to_numpy()] = part["value"].to_numpy()
        return values

    def whole(self, group: int, kind: str, component: str, shape: tuple[int, int]) -> Ints:
        """The same as whole numbers."""
        return self.array(group, kind, component, shape).astype(np.int64)


def _require_range(path: Path, table: pl.DataFrame, column: str, least: float, most: float) -> None:
    inside = table[column].is_between(least, most)
    if not inside.all():
        raise DataError(path, f"found {table[column].filter(~inside)[0]!r}, expected {least} to {most}", field=column)


def _read_boxes(path: Path, layout: Layout, counts: _StoredCounts) -> RankedBoxes:
    expected = "the ranked boxes of scored triplets"
    table = read_parquet_file(path)
    if table.schema != _BOXES or any(table.null_count().row(0)) or len(table) > MOST_CELLS:
        raise DataError(path, f"found another table, expected {expected}")
    _require_range(path, table, "group", 0, len(layout.groups) - 1)
    _require_range(path, table, "hits", 0, 2 ** len(_THRESHOLDS) - 1)
    _require_range(path, table, "score", -1e300, 1e300)
    parts = {key: part for key, part in table.group_by("group", "component", maintain_order=True)}  # noqa: C416
    empty = table.clear()
    groups = []
    for number, videos in enumerate(layout.groups):
        ranked = {
            component: _ranked(path, layout, component, parts.get((number, component), empty),
                               counts.whole(number, "truths", component, (len(videos), size)))
            for component, size in layout.n_classes.items()
        }  # fmt: skip
        rare = counts.whole(number, "rare", layout.main, (1, layout.n_classes.get(layout.main, 1)))[0]
        groups.append(RankedGroup(videos, ranked, np.flatnonzero(rare), *_extras(layout, counts, number, len(videos))))
    return RankedBoxes(layout.n_videos, layout.main, tuple(groups))


def _ranked(path: Path, layout: Layout, component: str, table: pl.DataFrame, truths: Ints) -> Ranked:
    _require_range(path, table, "class", 0, truths.shape[1] - 1)
    _require_range(path, table, "video", 0, len(truths) - 1)
    label = table["class"].to_numpy()
    order = np.argsort(label, kind="stable")
    hits = (table["hits"].to_numpy()[order, None] >> np.arange(len(_THRESHOLDS)) & 1).astype(bool)
    start = np.r_[0, np.cumsum(np.bincount(label, minlength=truths.shape[1]))]
    return Ranked(
        component=component, convention=layout.convention, ties=layout.ties,  # type: ignore[arg-type]
        iou=0.5, thresholds=_THRESHOLDS, averaged=tuple(range(len(_THRESHOLDS))), start=start, rows=order,
        score=table["score"].to_numpy()[order],
        videos=table["video"].to_numpy()[order], hits=hits, truths=truths, arrival=np.zeros(0, np.int64),
    )  # fmt: skip


def _extras(layout: Layout, counts: _StoredCounts, group: int, videos: int) -> tuple[Ints | None, CostSums | None]:
    """Association and cost, where the folder has numbers of them."""
    scopes, size = {key.scope for key in layout.keys}, layout.n_classes.get("ivt", 1)
    association = counts.whole(group, "association", "ivt", (videos, len(ASSOCIATION_COUNTS)))
    cost = CostSums(
        {part: counts.whole(group, "said", part, (videos, size)) for part in PARTS},
        {part: counts.whole(group, "earned", part, (videos, size)) for part in PARTS},
        counts.whole(group, "predictions", "ivt", (videos, size)),
        counts.whole(group, "instances", "ivt", (videos, size)),
    )
    return association if "association" in scopes else None, cost if "cost-aware" in scopes else None


def _read_frames(path: Path, layout: Layout, counts: _StoredCounts) -> ScoredFrames:
    expected = "labels and scores of frames"
    table = read_parquet_file(path)
    kinds = [pl.Schema([*_FRAMES, ("scores", pl.List(kind))]) for kind in (pl.Float32, pl.Float64)]
    if table.schema not in kinds or any(table.null_count().row(0)) or not len(table):
        raise DataError(path, f"found another table, expected {expected}")
    _require_range(path, table, "video", 0, layout.n_videos - 1)
    flat = table["scores"].explode(empty_as_null=False)
    columns = len(table["scores"][0])
    even = bool((table["scores"].list.len() == columns).all()) and columns
    if not even or len(flat) > MOST_CELLS or flat.null_count() or not flat.is_finite().all():
        raise DataError(path, "found other lists, expected as many finite numbers for every frame", field="scores")
    labelled = table["labels"].explode(empty_as_null=False)
    if labelled.null_count():
        raise DataError(path, "found an empty cell, expected the number of a column", field="labels")
    _require_range(path, labelled.to_frame(), "labels", 0, columns - 1)
    targets = np.zeros((len(table), columns), dtype=bool)
    targets[np.repeat(np.arange(len(table)), table["labels"].list.len().to_numpy()), labelled.to_numpy()] = True
    classes = {}
    for component in layout.n_classes:
        if component != layout.main:
            classes[component] = counts.whole(0, "column", component, (1, columns))[0] - 1
            if not 0 <= classes[component].min() <= classes[component].max() < MOST_CLASSES:
                raise DataError(path.with_name(COUNTS), "found no class, expected one per column", field=component)
    frames = FrameScores(
        targets, flat.to_numpy().reshape(len(table), columns), table["video"].to_numpy(), table["answered"].to_numpy(),
        None, layout.main, classes,
    )  # fmt: skip
    groups = tuple(
        (videos, np.flatnonzero(counts.whole(number, "rare", layout.main, (1, columns))[0]))
        for number, videos in enumerate(layout.groups)
    )
    return ScoredFrames(layout.n_videos, frames, tuple(layout.n_classes), groups)
