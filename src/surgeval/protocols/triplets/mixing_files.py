"""The two files from which a stored model's videos are exchanged with another's.

`ranked.parquet` has a row per ranked box and component (its class, score, and a bit for each IoU threshold at which it
is a hit), or a row per frame (the labelled columns and all scores). `counts.parquet` has what is counted per video:
labels, association, cost, and which classes are rare or which column belongs to which class.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import numpy as np
import polars as pl
from pydantic import Field

from surgeval.arrays import AnyArray, Floats, Ints
from surgeval.errors import DataError
from surgeval.files import StoredTable, write_parquet_file
from surgeval.metrics import ASSOCIATION_COUNTS, Ranked
from surgeval.metrics.ordinal import PARTS
from surgeval.protocols.triplets.metrics import Key
from surgeval.protocols.triplets.scoring.detection import CostSums
from surgeval.protocols.triplets.scoring.mixing import MOST_CELLS, RankedBoxes, RankedGroup, ScoredFrames
from surgeval.protocols.triplets.scoring.recognition import FrameScores
from surgeval.protocols.triplets.stored import MOST_CLASSES, Confusions

__all__ = ["MIXING_FILES", "Layout", "read_mixable", "write_mixable"]

_THRESHOLDS: Floats = np.linspace(0.5, 0.95, 10)
_Index: TypeAlias = Annotated[int, Field(ge=0)]


class RankedRow(StoredTable, name="ranked.parquet", most=MOST_CELLS):
    """A ranked box of a component: bit k of `hits` says whether it is a hit at the k-th IoU threshold."""

    group: _Index
    component: str
    class_id: Annotated[int, Field(alias="class", ge=0)]
    video: _Index
    score: float
    hits: Annotated[int, Field(ge=0, lt=1 << 10)]


class FrameRow(StoredTable, name="ranked.parquet", most=MOST_CELLS):
    """The labelled columns and all scores of a frame."""

    video: _Index
    answered: bool
    labels: list[_Index]
    scores: Annotated[list[float], Field(min_length=1)]


class CountRow(StoredTable, name="counts.parquet"):
    """What was counted in a video, by class, or 1 for a class that is rare, or the class of a column plus 1."""

    group: _Index
    kind: str
    component: str
    video: _Index
    class_id: Annotated[int, Field(alias="class", ge=0)]
    value: Annotated[float, Field(ge=0, le=1 << 53)]


RANKED, COUNTS = MIXING_FILES = (RankedRow.file_name, CountRow.file_name)


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
    def of(cls, settings: Mapping[str, Any], confusions: Confusions, keys: Sequence[Key]) -> Layout:
        """The layout of scores with these settings."""
        number_of = {video: number for number, video in enumerate(settings["videos"])}
        return cls(
            settings["task"], settings.get("convention", ""), settings.get("ties", ""), len(number_of),
            [np.array([number_of[video] for video in names], dtype=np.int64)
             for names in settings["scheme"]["groups"].values()],
            {component: len(confusions[component][1]) if component in confusions else 0
             for component in settings["components"]}, keys,
        )  # fmt: skip

    @property
    def main(self) -> str:
        """The component whose rare classes are counted, or whose columns the frames have."""
        scope = "rare, global" if self.task == "detection" else "recall among the highest scores"
        return next((key.component for key in self.keys if key.scope == scope), "ivt")


def write_mixable(folder: Path, mixable: RankedBoxes | ScoredFrames | None) -> None:
    """Store what is kept, or delete what was."""
    for name in MIXING_FILES:
        (folder / name).unlink(missing_ok=True)
    if mixable is None:
        return
    tables = _box_tables(mixable) if isinstance(mixable, RankedBoxes) else _frame_tables(mixable)
    for name, table in zip(MIXING_FILES, tables, strict=True):
        write_parquet_file(table, folder / name)


def read_mixable(folder: Path, layout: Layout) -> RankedBoxes | ScoredFrames | None:
    """What was kept; None where nothing was."""
    if not any((folder / name).exists() for name in MIXING_FILES):
        return None
    cells = layout.n_videos * sum(layout.n_classes.values())
    if cells > MOST_CELLS:
        raise DataError(folder / COUNTS, f"{cells} videos × classes; the limit is {MOST_CELLS}", code="file-too-large")
    counts = _StoredCounts(folder)
    read = _read_boxes if layout.task == "detection" else _read_frames
    return read(folder, layout, counts)


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
    return pl.concat(ranked).cast(RankedRow.dtypes()), pl.concat(counted)


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
        schema=FrameRow.dtypes() | {"scores": pl.List(kind)},
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
    return table.select(*named, pl.all()).cast(CountRow.dtypes())


class _StoredCounts:
    """The table of counts, one array at a time."""

    def __init__(self, folder: Path) -> None:
        self._path, self._table = folder / COUNTS, CountRow.load(folder)
        self._kinds = {key: part for key, part in self._table.group_by("group", "kind", "component")}  # noqa: C416

    def array(self, group: int, kind: str, component: str, shape: tuple[int, int]) -> Floats:
        """Values by video and class."""
        values = np.zeros(shape)
        part = self._kinds.get((group, kind, component))
        if part is not None:
            for column, most in zip(("video", "class"), shape, strict=True):
                _require_below(self._path, part[column], most)
            values[part["video"].to_numpy(), part["class"].to_numpy()] = part["value"].to_numpy()
        return values

    def whole(self, group: int, kind: str, component: str, shape: tuple[int, int]) -> Ints:
        """The same as whole numbers."""
        return self.array(group, kind, component, shape).astype(np.int64)


def _require_below(path: Path, values: pl.Series, most: int) -> None:
    """Refuse the number of a group, video or class that the other files do not have."""
    if values.len() and (highest := int(values.to_numpy().max())) >= most:
        sentence = f"expected a value below {most}, got {highest}; score the predictions again"
        raise DataError(path, sentence, field=values.name, code="wrong-value")


def _read_boxes(folder: Path, layout: Layout, counts: _StoredCounts) -> RankedBoxes:
    path, table = folder / RANKED, RankedRow.load(folder)
    _require_below(path, table["group"], len(layout.groups))
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
    _require_below(path, table["class"], truths.shape[1])
    _require_below(path, table["video"], len(truths))
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


def _read_frames(folder: Path, layout: Layout, counts: _StoredCounts) -> ScoredFrames:
    path, table = folder / RANKED, FrameRow.load(folder)
    _require_below(path, table["video"], layout.n_videos)
    columns = len(table["scores"][0]) if len(table) else 0
    if not columns or columns * len(table) > MOST_CELLS or not (table["scores"].list.len() == columns).all():
        raise DataError(path, "expected as many scores for every frame", field="scores", code="wrong-shape")
    flat = table["scores"].explode(empty_as_null=False)
    labelled = table["labels"].explode(empty_as_null=False)
    _require_below(path, labelled, columns)
    targets = np.zeros((len(table), columns), dtype=bool)
    targets[np.repeat(np.arange(len(table)), table["labels"].list.len().to_numpy()), labelled.to_numpy()] = True
    classes = {}
    for component in layout.n_classes:
        if component != layout.main:
            classes[component] = counts.whole(0, "column", component, (1, columns))[0] - 1
            if not 0 <= classes[component].min() <= classes[component].max() < MOST_CLASSES:
                sentence = f"expected a class of {component} for each column"
                raise DataError(folder / COUNTS, sentence, field="value", code="wrong-value")
    frames = FrameScores(
        targets, flat.to_numpy().reshape(len(table), columns), table["video"].to_numpy(), table["answered"].to_numpy(),
        None, layout.main, classes,
    )  # fmt: skip
    groups = tuple(
        (videos, np.flatnonzero(counts.whole(number, "rare", layout.main, (1, columns))[0]))
        for number, videos in enumerate(layout.groups)
    )
    return ScoredFrames(layout.n_videos, frames, tuple(layout.n_classes), groups)
