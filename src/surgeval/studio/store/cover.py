"""Which values hold where: of what was said of a row itself and of the spans that cover it, the latest statement.

A span says the same of every frame in its range. Its range is cut at the edges of the other spans, so that within a
piece every row is covered by the same spans, and one statement per resulting label sets them all.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Table, and_, distinct, func, select

from surgeval.studio.store.labels import Own, Values
from surgeval.studio.store.records import Track
from surgeval.studio.store.tables import FRAMES, INSTANCES, SPANS
from surgeval.studio.store.work import Work, chunks

__all__ = [
    "Cover",
    "absent_frames",
    "alive_spans",
    "effective",
    "refresh",
    "rows_of",
    "stale_row",
    "tracks_text",
    "written_key",
]


@dataclass(frozen=True, slots=True)
class Cover:
    """A stored span as far as it decides values; `written` has the values per class that its schema admitted."""

    id: str
    tracks: tuple[Track, ...]
    written: Mapping[str, Mapping[str, str | None]]
    first: int
    last: int
    stamp: int

    def covers(self, first: int, last: int) -> bool:
        """Whether it reaches into the range."""
        return self.first <= last and first <= self.last


def written_key(track: Track) -> str:
    """The class of a track, as spans key their values."""
    return f"{track.group}.{track.name}"


def tracks_text(tracks: Iterable[Track]) -> str:
    """Tracks as the table keeps them."""
    return json.dumps([[t.group, t.name, t.number] for t in tracks], ensure_ascii=False, separators=(",", ":"))


def cover_of(row: Row[Any]) -> Cover:
    """A row of the table of spans."""
    tracks = tuple(Track(*item) for item in json.loads(row.tracks))
    return Cover(row.id, tracks, json.loads(row.written), row.first, row.last, row.stamp)


def alive_spans(connection: Connection, video: str) -> list[Cover]:
    """The spans of a video, the earliest made first."""
    query = select(SPANS).where(SPANS.c.video == video, SPANS.c.alive.is_(True)).order_by(SPANS.c.stamp, SPANS.c.id)
    return [cover_of(row) for row in connection.execute(query)]


def rows_of(video: str, track: Track, first: int, last: int) -> tuple[Table, ColumnElement[bool]]:
    """Where the values of a track, or of the image, are kept over a range of frames."""
    table = FRAMES if track.is_image else INSTANCES
    where = [table.c.video == video, table.c.frame.between(first, last), table.c.alive.is_(True)]
    if not track.is_image:
        number = INSTANCES.c.track.is_(None) if track.number is None else INSTANCES.c.track == track.number
        where += [INSTANCES.c.grp == track.group, INSTANCES.c.name == track.name, number]
    return table, and_(*where)


def effective(own: Own, covering: Iterable[Cover], track: Track) -> Values:
    """What holds for a row of this track under these spans."""
    latest = dict(own)
    for cover in covering:
        for attribute, value in cover.written.get(written_key(track), {}).items():
            if attribute not in latest or latest[attribute][1] < cover.stamp:
                latest[attribute] = (value, cover.stamp)
    return {attribute: value for attribute, (value, _) in latest.items() if value is not None}


def refresh(work: Work, video: str, track: Track, first: int, last: int, spans: list[Cover] | None = None) -> int:
    """Set the labels of a track over a range to what holds now; how many rows that changed."""
    known = alive_spans(work.connection, video) if spans is None else spans
    changed = 0
    for start, end, covering in _pieces(known, track, first, last):
        for table, differ, label in _differing(work, video, track, start, end, covering):
            changed += work.touch(table, differ, {"label": label})
    return changed


def stale_row(work: Work, video: str, track: Track, first: int, last: int, spans: list[Cover]) -> Row[Any] | None:
    """A row of the track whose label is not what holds, if there is one."""
    for start, end, covering in _pieces(spans, track, first, last):
        for table, differ, _ in _differing(work, video, track, start, end, covering):
            row = work.connection.execute(select(table).where(differ).order_by(table.c.frame).limit(1)).first()
            if row is not None:
                return row
    return None


def _pieces(spans: list[Cover], track: Track, first: int, last: int) -> Iterator[tuple[int, int, list[Cover]]]:
    """The range in pieces, each with the spans that cover all of it."""
    near = [span for span in spans if track in span.tracks and span.covers(first, last)]
    inner = {edge for span in near for edge in (span.first, span.last + 1) if first < edge <= last}
    starts = sorted({first, *inner})
    for start, end in zip(starts, [*(edge - 1 for edge in starts[1:]), last], strict=True):
        yield start, end, [span for span in near if span.covers(start, end)]


def _differing(
    work: Work, video: str, track: Track, first: int, last: int, covering: list[Cover]
) -> Iterator[tuple[Table, ColumnElement[bool], int]]:
    """The rows of a piece that do not show what holds, by the label that they should have."""
    table, where = rows_of(video, track, first, last)
    kinds = work.rows(select(table.c.own, table.c.label).where(where).distinct())
    work.labels.load(row.own for row in kinds)
    by_label: dict[int, set[int]] = {}
    for own, label in sorted(tuple(row) for row in kinds):
        holds = work.labels.number(effective(work.labels.own(own), covering, track))
        if holds != label:
            by_label.setdefault(holds, set()).add(own)
    for label, owns in sorted(by_label.items()):
        for part in chunks(sorted(owns)):
            yield table, and_(where, table.c.own.in_(part), table.c.label != label), label


def absent_frames(work: Work, video: str, track: Track, first: int, last: int) -> int:
    """Frames of the range in which the track has no instance."""
    inside = and_(FRAMES.c.video == video, FRAMES.c.frame.between(first, last), FRAMES.c.alive.is_(True))
    table, where = rows_of(video, track, first, last)
    present = work.connection.execute(select(func.count(distinct(table.c.frame))).where(where)).scalar_one()
    return work.count(FRAMES, inside) - int(present)
