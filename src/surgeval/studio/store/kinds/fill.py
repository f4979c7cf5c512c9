"""Boxes for many frames from a few: paste to a range, interpolate between key frames, extend a track backwards.

Each source box becomes one statement over the frames of the range; ids of the new instances follow from the
operation's id, so that a replay makes the same ones.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Double, Row, Table, Text, and_, cast, exists, literal, null, select
from sqlalchemy.types import TypeEngine

from surgeval.errors import BadInput
from surgeval.studio.store.checks import Fields
from surgeval.studio.store.cover import refresh
from surgeval.studio.store.effect import Effect
from surgeval.studio.store.records import Track
from surgeval.studio.store.select import check_frames, track_frames
from surgeval.studio.store.tables import FRAMES, INSTANCES
from surgeval.studio.store.work import Work

__all__ = ["extend", "interpolate", "paste"]

_MAX_NEW = 500_000


def paste(work: Work, fields: Fields) -> Effect:
    """The boxes of one frame in every frame of a range, where their track is not there already."""
    fields.only("video", "source", "first", "last", "ids", "values")
    video, source, (first, last) = fields.id("video"), fields.whole("source"), fields.frames()
    check_frames(work, fields.path, video, [source, first, last])
    wanted = set(fields.ids("ids")) if fields.data.get("ids") else None
    with_values = fields.flag("values", True)
    here = and_(INSTANCES.c.video == video, INSTANCES.c.frame == source, INSTANCES.c.alive.is_(True))
    rows = [row for row in work.rows(select(INSTANCES).where(here).order_by(INSTANCES.c.id))
            if wanted is None or row.id in wanted]  # fmt: skip
    if not rows:
        raise fields.error("source", source, "a frame with instances")
    if len(rows) * (last - first + 1) > _MAX_NEW:
        raise fields.error("last", last, f"at most {_MAX_NEW} new instances")
    pasted = skipped = 0
    for number, row in enumerate(rows):
        values = work.labels.values(row.label) if with_values else {}
        own = work.labels.own_number({key: (value, work.seq) for key, value in values.items()})
        labels = {"own": literal(own), "label": literal(work.labels.number(values))}
        frames = and_(_inside(video, first, last), FRAMES.c.frame != source)
        free = frames if row.track is None else and_(frames, ~_taken(video, _track(row)))
        count = work.insert_select(INSTANCES, {**_copy(work, row, number, "pasted"), **labels}, free)
        pasted += count
        skipped += work.count(FRAMES, frames) - count
        refresh(work, video, _track(row), first, last)
    return Effect(pasted, skipped)


def interpolate(work: Work, fields: Fields) -> Effect:
    """Boxes of a track between two frames where it was drawn; boxes drawn by hand in between stay."""
    fields.only("video", "group", "name", "number", "first", "last")
    video, track, (first, last) = fields.id("video"), fields.track(), fields.frames()
    check_frames(work, fields.path, video, [first, last])
    if last - first < 2:
        raise fields.error("last", last, f"a frame after {first + 1}: there is nothing between")
    start, end = (_box_of(work, fields, video, track, frame) for frame in (first, last))
    inner = _inside(video, first + 1, last - 1)
    share = cast(FRAMES.c.frame - first, Double) / float(last - first)
    between = {
        side: literal(getattr(start, side), Double) + literal(getattr(end, side) - getattr(start, side), Double) * share
        for side in ("x", "y", "w", "h")
    }
    made_before = and_(_track_rows(video, track, first + 1, last - 1), INSTANCES.c.source == "interpolated")
    work.keep(INSTANCES, made_before)
    skipped = work.count(INSTANCES, _track_rows(video, track, first + 1, last - 1)) - work.count(INSTANCES, made_before)
    inside = cast(INSTANCES.c.frame - first, Double) / float(last - first)
    again = {
        side: literal(getattr(start, side), Double)
        + literal(getattr(end, side) - getattr(start, side), Double) * inside
        for side in ("x", "y", "w", "h")
    }
    changed = work.touch(INSTANCES, made_before, again)
    empty = literal(work.labels.number({}))
    columns = {**_copy(work, start, 0, "interpolated"), **between, "own": empty, "label": empty}
    changed += work.insert_select(INSTANCES, columns, and_(inner, ~_taken(video, track)))
    refresh(work, video, track, first + 1, last - 1)
    return Effect(changed, skipped)


def extend(work: Work, fields: Fields) -> Effect:
    """A track begins earlier: its first box in every frame from `first` on; values come from spans only."""
    fields.only("video", "group", "name", "number", "first")
    video, track, first = fields.id("video"), fields.track(), fields.whole("first")
    check_frames(work, fields.path, video, [first])
    known = track_frames(work, video, track) if track.number is not None else None
    if known is None or first >= known[0]:
        expected = f"a track of video {video}" if known is None else f"a frame before its first, {known[0]}"
        raise fields.error("first", first, expected)
    row = _box_of(work, fields, video, track, known[0], polygons=True)
    empty = literal(work.labels.number({}))
    columns = {**_copy(work, row, 0, "extended"), "own": empty, "label": empty}
    added = work.insert_select(INSTANCES, columns, _inside(video, first, known[0] - 1))
    refresh(work, video, track, first, known[0] - 1)
    return Effect(added)


def _copy(work: Work, row: Row[Any], number: int, source: str) -> dict[str, ColumnElement[Any]]:
    """The columns of a copy of this instance in another frame, all but own and label."""
    texts = {name: literal(getattr(row, name)) for name in ("video", "grp", "name")}
    sides = {name: literal(getattr(row, name), Double) for name in ("x", "y", "w", "h")}
    return {
        "id": literal(f"{work.id}.{number}.") + cast(FRAMES.c.frame, Text),
        **texts,
        **sides,
        "frame": FRAMES.c.frame,
        "track": _maybe(INSTANCES, "track", row.track),
        "track_by": _maybe(INSTANCES, "track_by", row.track_by),
        "polygons": _maybe(INSTANCES, "polygons", row.polygons),
        "source": literal(source),
        "score": _maybe(INSTANCES, "score", None),
        "state": literal("accepted"),
        "review": literal("", Text),
        "extra": _maybe(INSTANCES, "extra", None),
    }


def _maybe(table: Table, column: str, value: object) -> ColumnElement[Any]:
    kind: TypeEngine[Any] = table.c[column].type
    kind = Text() if isinstance(kind, Text) else kind  # a cast takes no collation
    return cast(null(), kind) if value is None else literal(value, kind)


def _inside(video: str, first: int, last: int) -> ColumnElement[bool]:
    return and_(FRAMES.c.video == video, FRAMES.c.frame.between(first, last), FRAMES.c.alive.is_(True))


def _taken(video: str, track: Track) -> ColumnElement[bool]:
    """Whether the track has an instance in the frame at hand."""
    other = INSTANCES.alias("present")
    return exists().where(
        other.c.video == video,
        other.c.grp == track.group,
        other.c.name == track.name,
        other.c.track == track.number,
        other.c.frame == FRAMES.c.frame,
        other.c.alive.is_(True),
    )


def _track_rows(video: str, track: Track, first: int, last: int) -> ColumnElement[bool]:
    return and_(
        INSTANCES.c.video == video,
        INSTANCES.c.grp == track.group,
        INSTANCES.c.name == track.name,
        INSTANCES.c.track == track.number,
        INSTANCES.c.frame.between(first, last),
        INSTANCES.c.alive.is_(True),
    )


def _box_of(work: Work, fields: Fields, video: str, track: Track, frame: int, *, polygons: bool = False) -> Row[Any]:
    rows = work.rows(select(INSTANCES).where(_track_rows(video, track, frame, frame)).order_by(INSTANCES.c.id))
    if len(rows) != 1:
        raise BadInput(f"{fields.path}: found {len(rows)} instances of {track} in frame {frame}, expected one")
    if rows[0].polygons is not None and not polygons:
        raise BadInput(f"{fields.path}: found polygons in frame {frame}, expected a box: only boxes are interpolated")
    return rows[0]


def _track(row: Row[Any]) -> Track:
    return Track(row.grp, row.name, row.track)
