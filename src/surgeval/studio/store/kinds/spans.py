"""Spans: values over a range of frames as one stored object, which can be stretched, cut, joined and taken away."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Row, select

from surgeval.studio.store.checks import Fields
from surgeval.studio.store.cover import absent_frames, refresh, rows_of, tracks_text, written_key
from surgeval.studio.store.effect import Effect
from surgeval.studio.store.kinds.values import admitted
from surgeval.studio.store.labels import canonical
from surgeval.studio.store.records import Track
from surgeval.studio.store.select import check_frames, span_row
from surgeval.studio.store.tables import SPANS
from surgeval.studio.store.work import Work

__all__ = ["add", "cut", "delete", "edges", "join", "values"]

_MAX_TRACKS = 200


def add(work: Work, fields: Fields) -> Effect:
    """A new span over tracks, or over the image where no track is named."""
    fields.only("id", "video", "tracks", "values", "first", "last", "source")
    id, video, (first, last) = fields.id("id"), fields.id("video"), fields.frames()
    check_frames(work, fields.path, video, [first, last])
    if work.connection.execute(select(SPANS.c.id).where(SPANS.c.id == id)).first() is not None:
        raise fields.error("id", id, "an id that no span had before")
    tracks = _tracks(fields)
    requested = fields.values(required=True)
    written = _written(work, fields, tracks, requested)
    row = {
        "id": id,
        "video": video,
        "tracks": tracks_text(tracks),
        "vals": canonical(requested),
        "written": canonical(written),
        "first": first,
        "last": last,
        "stamp": work.seq,
        "author": work.author,
        "time": work.time,
        "source": fields.text("source", "hand"),
    }
    work.insert(SPANS, [row])
    changed = sum(refresh(work, video, track, first, last) for track in tracks)
    return _counted(work, video, tracks, (first, last), changed, requested, written)


def edges(work: Work, fields: Fields) -> Effect:
    """Another first or last frame; frames that the span leaves fall back to what else was said of them."""
    fields.only("id", "first", "last")
    row, (first, last) = span_row(work, fields.path, fields.id("id")), fields.frames()
    check_frames(work, fields.path, row.video, [first, last])
    work.touch(SPANS, SPANS.c.id == row.id, {"first": first, "last": last})
    return _again(work, row, min(first, row.first), max(last, row.last))


def values(work: Work, fields: Fields) -> Effect:
    """Other values for the whole span; what was said inside it later stays."""
    fields.only("id", "values")
    row = span_row(work, fields.path, fields.id("id"))
    requested = fields.values(required=True)
    written = _written(work, fields, _stored_tracks(row), requested)
    work.touch(SPANS, SPANS.c.id == row.id, {"vals": canonical(requested), "written": canonical(written)})
    effect = _again(work, row, row.first, row.last)
    frames = (row.first, row.last)
    return _counted(work, row.video, _stored_tracks(row), frames, effect.changed, requested, written)


def cut(work: Work, fields: Fields) -> Effect:
    """Two spans out of one: the second begins at the frame `at`. No value changes."""
    fields.only("id", "at", "new")
    row, at, new = span_row(work, fields.path, fields.id("id")), fields.whole("at"), fields.id("new")
    if not row.first < at <= row.last:
        raise fields.error("at", at, f"a frame after {row.first} and not after {row.last}")
    if work.connection.execute(select(SPANS.c.id).where(SPANS.c.id == new)).first() is not None:
        raise fields.error("new", new, "an id that no span had before")
    work.touch(SPANS, SPANS.c.id == row.id, {"last": at - 1})
    work.insert(SPANS, [{**_plain(row), "id": new, "first": at}])
    return Effect(2, created=(new,))


def join(work: Work, fields: Fields) -> Effect:
    """One span out of two of the same tracks and values; frames between them belong to it too."""
    fields.only("ids")
    ids = fields.ids("ids")
    if len(ids) != 2:
        raise fields.error("ids", f"{len(ids)} spans", "two")
    earlier, later = sorted((span_row(work, fields.path, id) for id in ids), key=lambda row: (row.first, row.id))
    for column, name in (("video", "video"), ("tracks", "tracks"), ("written", "values")):
        if getattr(earlier, column) != getattr(later, column):
            raise fields.error("ids", f"spans of different {name}", f"two spans of the same {name}")
    last, stamp = max(earlier.last, later.last), max(earlier.stamp, later.stamp)
    work.touch(SPANS, SPANS.c.id == later.id, {"alive": False})
    work.touch(SPANS, SPANS.c.id == earlier.id, {"last": last, "stamp": stamp})
    effect = _again(work, earlier, earlier.first, last)
    return Effect(effect.changed, created=(earlier.id,))


def delete(work: Work, fields: Fields) -> Effect:
    """Take a span away; its frames fall back to what else was said of them."""
    fields.only("id")
    row = span_row(work, fields.path, fields.id("id"))
    work.touch(SPANS, SPANS.c.id == row.id, {"alive": False})
    return _again(work, row, row.first, row.last)


def _again(work: Work, row: Row[Any], first: int, last: int) -> Effect:
    return Effect(sum(refresh(work, row.video, track, first, last) for track in _stored_tracks(row)))


def _tracks(fields: Fields) -> list[Track]:
    if not fields.data.get("tracks"):
        return [Track.image()]
    tracks = list(dict.fromkeys(item.only("group", "name", "number").track() for item in fields.objects("tracks")))
    if len(tracks) > _MAX_TRACKS:
        raise fields.error("tracks", f"{len(tracks)} tracks", f"at most {_MAX_TRACKS}")
    if any(track.is_image for track in tracks):
        raise fields.error("tracks", "the image", "tracks; a span over the image names none")
    return tracks


def _written(
    work: Work, fields: Fields, tracks: Iterable[Track], requested: Mapping[str, str | None]
) -> dict[str, dict[str, str | None]]:
    written = {written_key(track): admitted(work, track.group, track.name, requested) for track in tracks}
    if not any(written.values()):
        listed = ", ".join(f"{key} {value}" for key, value in requested.items())
        raise fields.error("values", listed, f"values that the schema admits for {' or '.join(sorted(written))}")
    return written


def _counted(
    work: Work,
    video: str,
    tracks: Iterable[Track],
    frames: tuple[int, int],
    changed: int,
    requested: Mapping[str, str | None],
    written: Mapping[str, Mapping[str, str | None]],
) -> Effect:
    skipped = absent = 0
    for track in tracks:
        absent += absent_frames(work, video, track, *frames)
        if len(written[written_key(track)]) < len(requested):
            skipped += work.count(*rows_of(video, track, *frames))
    return Effect(changed, skipped, absent)


def _stored_tracks(row: Row[Any]) -> list[Track]:
    return [Track(*item) for item in json.loads(row.tracks)]


def _plain(row: Row[Any]) -> dict[str, Any]:
    return {key: value for key, value in row._mapping.items() if key not in ("alive", "version", "made_by")}
