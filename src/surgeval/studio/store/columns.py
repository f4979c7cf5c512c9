"""The instances of a whole video as columns of numbers: what rules look at, where an object each would be too much."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from sqlalchemy import ColumnElement, Connection, Select, or_, select

from surgeval.arrays import Bools, Floats, Ints
from surgeval.errors import DataError
from surgeval.studio.store.labels import Labels
from surgeval.studio.store.records import Annotation, Track
from surgeval.studio.store.tables import BEFORE, FRAMES, INSTANCES

__all__ = [
    "NO_NUMBER", "Columns", "FrameColumns", "changed_tracks", "columns", "frame_columns", "outlines", "runs",
    "upstream_numbers",
]  # fmt: skip

Runs: TypeAlias = list[list[int]]
NO_NUMBER = -1
_AT_ONCE = 20_000  # rows that are Python objects at one time
_BY = {None: 0, "rule": 1, "upstream": 2, "hand": 3}


@dataclass(frozen=True)
class Columns:
    """One row per instance, class by class: its frame, class, label, number (−1: none) and box.

    >>> from surgeval.records import Box
    >>> seen = [Annotation(f"i{k}", "V1", k, "tools", "hook", Box(1, 2, 3, 4), track=1) for k in (0, 1)]
    >>> rows = Columns.of(seen)
    >>> rows.kinds[rows.kind[1]], rows.frame.tolist(), rows.number.tolist(), rows.name(0)
    (('tools', 'hook'), [0, 1], [1, 1], 'hook #1')
    """

    ids: Sequence[str]
    frame: Ints
    kind: Ints  # index in `kinds`
    label: Ints  # key of `values`
    number: Ints
    by: Ints  # who gave the number: 0 nobody, 1 a rule, 2 it came with it, 3 a person
    xywh: Floats
    score: Floats  # nan where nobody gave one
    kinds: tuple[tuple[str, str], ...]
    values: Mapping[int, Mapping[str, str]]

    @classmethod
    def of(cls, annotations: Sequence[Annotation]) -> Columns:
        """The columns of annotations at hand."""
        written = [json.dumps(dict(annotation.values), sort_keys=True) for annotation in annotations]
        kinds, texts = sorted({(annotation.group, annotation.name) for annotation in annotations}), sorted(set(written))
        kind_index, label_index = {kind: k for k, kind in enumerate(kinds)}, {text: k for k, text in enumerate(texts)}
        rows = [(annotation.frame, kind_index[annotation.group, annotation.name], label_index[text],
                 NO_NUMBER if annotation.track is None else annotation.track, _BY.get(annotation.track_by, 0))
                for annotation, text in zip(annotations, written, strict=True)]  # fmt: skip
        whole = np.array(rows, dtype=np.int64).reshape(-1, 5)
        boxes = [(annotation.box.x, annotation.box.y, annotation.box.w, annotation.box.h,
                  np.nan if annotation.score is None else annotation.score) for annotation in annotations]  # fmt: skip
        real = np.array(boxes, dtype=np.float64).reshape(-1, 5)
        values = {number: json.loads(text) for text, number in label_index.items()}
        ids, (frame, kind, label, number, by) = [annotation.id for annotation in annotations], whole.T
        return cls(ids, frame, kind, label, number, by, real[:, :4], real[:, 4], tuple(kinds), values)

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def by_hand(self) -> Bools:
        """Which numbers a person gave."""
        by_hand: Bools = self.by == _BY["hand"]
        return by_hand

    def name(self, row: int) -> str:
        """The track of a row in words."""
        group, name = self.kinds[self.kind[row]]
        number = int(self.number[row])
        return str(Track(group, name, None if number == NO_NUMBER else number))


@dataclass(frozen=True)
class FrameColumns:
    """The frames of a video: number, time (nan where nobody knows it), and what is said of the whole image."""

    frame: Ints
    time: Floats
    label: Ints
    values: Mapping[int, Mapping[str, str]]

    @classmethod
    def none(cls) -> FrameColumns:
        """No frame at all.

        >>> len(FrameColumns.none().frame)
        0
        """
        return cls(np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64), {})


def columns(connection: Connection, video: str, *, proposals: bool = True) -> Columns:
    """The instances of a video, with its proposals or without."""
    ids: list[str] = []
    whole, real = [np.zeros((0, 5), np.int64)], [np.zeros((0, 5))]
    kinds = _kinds(connection, video)
    table = INSTANCES.c
    for kind, (group, name) in enumerate(kinds):
        wanted = [table.video == video, table.grp == group, table.name == name, table.alive.is_(True)]
        if not proposals:
            wanted.append(table.state != "proposal")
        query = select(
            table.id, table.frame, table.label, table.track, table.track_by, table.x, table.y, table.w, table.h,
            table.score,
        ).where(*wanted).order_by(table.track, table.frame)  # fmt: skip
        for part in _parts(connection, query):
            names, frames, labels, tracks, by, *boxes, scores = zip(*part, strict=True)
            ids += names
            numbers = [NO_NUMBER if track is None else track for track in tracks]
            givers = [_BY.get(giver, 0) for giver in by]
            whole.append(np.array([frames, [kind] * len(part), labels, numbers, givers], dtype=np.int64).T)
            real.append(np.array([*boxes, scores], dtype=np.float64).T)
    numbers_of, real_of = np.concatenate(whole), np.concatenate(real)
    frame, kind_index, label, number, given_by = (np.ascontiguousarray(column) for column in numbers_of.T)
    values = _values(connection, label)
    return Columns(ids, frame, kind_index, label, number, given_by, real_of[:, :4], real_of[:, 4], kinds, values)


def frame_columns(connection: Connection, video: str) -> FrameColumns:
    """The frames of a video."""
    query = select(FRAMES.c.frame, FRAMES.c.time, FRAMES.c.label).where(
        FRAMES.c.video == video, FRAMES.c.alive.is_(True)
    )
    parts = [np.zeros((0, 3))]
    parts += [np.array(part, dtype=np.float64) for part in _parts(connection, query.order_by(FRAMES.c.frame))]
    frame, time, label = np.concatenate(parts).T
    numbers = label.astype(np.int64)
    return FrameColumns(frame.astype(np.int64), time.copy(), numbers, _values(connection, numbers))


def outlines(connection: Connection, video: str) -> dict[str, Floats]:
    """The first outline of the instances that have one, by id."""
    query = select(INSTANCES.c.id, INSTANCES.c.polygons).where(
        INSTANCES.c.video == video, INSTANCES.c.polygons.is_not(None), INSTANCES.c.alive.is_(True)
    )
    rows = (row for part in _parts(connection, query) for row in part)
    return {id: _outline(id, text) for id, text in rows}


def _outline(id: str, text: str) -> Floats:
    try:
        points = np.array(json.loads(text)[0], dtype=np.float64)
    except (ValueError, TypeError, LookupError, RecursionError):
        points = np.zeros(0)
    if points.ndim != 2:
        name = f"row {id}"
        raise DataError("instances", "found something else, expected points", record=name, field="polygons") from None
    return points


def upstream_numbers(connection: Connection, video: str) -> dict[str, int]:
    """The numbers that instances came with, by id: also of those that were numbered otherwise since."""
    before, table = BEFORE["instances"].c, INSTANCES.c
    then = select(before.id, before.track).where(before.video == video, before.track_by == "upstream")
    now = select(table.id, table.track).where(table.video == video, table.track_by == "upstream")
    numbers: dict[str, int] = {}
    for query in (then.order_by(before.seq), now):
        numbers |= {id: track for part in _parts(connection, query) for id, track in part if track is not None}
    return numbers


def runs(connection: Connection, video: str, only: Iterable[Track] | None = None) -> Iterator[tuple[Track, Runs]]:
    """The tracks of a video, or some of them, each as the stretches of frames in which it is there."""
    table = INSTANCES.c
    classes: dict[tuple[str, str], list[ColumnElement[bool]]] = {}
    for track in only or ():
        same = table.track.is_(None) if track.number is None else table.track == track.number
        classes.setdefault((track.group, track.name), []).append(same)
    if only is None:
        classes = {kind: [] for kind in _kinds(connection, video)}
    for (group, name), numbers in classes.items():
        where = [table.video == video, table.grp == group, table.name == name, table.alive.is_(True)]
        query = select(table.track, table.frame).where(*where, *([or_(*numbers)] if numbers else []))
        parts = [np.zeros((0, 2), np.int64)]
        for part in _parts(connection, query.order_by(table.track, table.frame)):
            rows = [(NO_NUMBER if track is None else track, frame) for track, frame in part]
            parts.append(np.array(rows, dtype=np.int64))
        for number, stretches in _stretches(np.concatenate(parts)):
            yield Track(group, name, None if number == NO_NUMBER else number), stretches


def changed_tracks(connection: Connection, video: str, since: int) -> set[Track]:
    """The tracks that have other instances than at a version: as they were named then, and as they are now."""
    before, table = BEFORE["instances"].c, INSTANCES.c
    then = select(before.grp, before.name, before.track).where(before.seq > since, before.video == video)
    # Of all videos: to ask for this one would make SQLite walk all of it. A track of another one does no harm.
    now = select(table.grp, table.name, table.track).where(table.id.in_(select(before.id).where(before.seq > since)))
    results = [connection.execute(query.distinct()) for query in (then, now)]
    return {Track(row.grp, row.name, row.track) for rows in results for row in rows}


def _stretches(both: Ints) -> Iterator[tuple[int, Runs]]:
    """Runs of frames of each number, from rows of number and frame."""
    both = both[np.lexsort((both[:, 1], both[:, 0]))]  # where NULL comes is the database's affair
    number, frame = both.T
    begins = np.flatnonzero(np.append(True, (np.diff(number) != 0) | (np.diff(frame) > 1))[: len(number)])
    ends = np.append(begins[1:], len(number))[: len(begins)] - 1
    spans: dict[int, Runs] = {}
    for of, first, last in zip(number[begins].tolist(), frame[begins].tolist(), frame[ends].tolist(), strict=True):
        spans.setdefault(of, []).append([first, last])
    yield from spans.items()


def _kinds(connection: Connection, video: str) -> tuple[tuple[str, str], ...]:
    query = select(INSTANCES.c.grp, INSTANCES.c.name).where(INSTANCES.c.video == video).distinct()
    return tuple(sorted((row.grp, row.name) for row in connection.execute(query)))


def _values(connection: Connection, numbers: Ints) -> dict[int, Mapping[str, str]]:
    labels, wanted = Labels(connection), np.unique(numbers).tolist()
    labels.load(wanted)
    return {number: labels.values(number) for number in wanted}


def _parts(connection: Connection, query: Select[Any]) -> Iterator[Sequence[Sequence[Any]]]:
    """The rows as the driver gives them, some thousands at a time."""
    with connection.execute(query) as result:
        while rows := result.cursor.fetchmany(_AT_ONCE):
            yield rows
