"""Drawing: add, move, reshape, delete and duplicate instances, one or several at once."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from sqlalchemy import case, select

from surgeval.errors import BadInput
from surgeval.studio.schema import IMAGE
from surgeval.studio.store.checks import Fields
from surgeval.studio.store.cover import alive_spans, refresh
from surgeval.studio.store.effect import Effect
from surgeval.studio.store.records import Track
from surgeval.studio.store.select import CORRECTED, by_id, check_frames, instance_rows
from surgeval.studio.store.tables import INSTANCES
from surgeval.studio.store.work import Work, chunks

__all__ = ["add", "delete", "duplicate", "fill_from_spans", "insert_instances", "instance_fields", "move", "reshape"]

_FIELDS = (
    "id", "video", "frame", "group", "name", "box", "polygons", "values", "track", "track_by", "source", "score",
    "proposal", "review", "extra",
)  # fmt: skip
_TRACK_BY = ("hand", "rule", "upstream")


def add(work: Work, fields: Fields) -> Effect:
    """New instances. Values that the schema lacks are kept: files bring them, and the problem list shows them."""
    fields.only("instances")
    return Effect(insert_instances(work, fields, fields.objects("instances")))


def insert_instances(work: Work, fields: Fields, instances: Iterable[Fields]) -> int:
    """Put new instances into their frames; how many."""
    rows = [_row(work, instance) for instance in instances]
    _new_ids(work, fields, [row["id"] for row in rows])
    by_video: dict[str, set[int]] = {}
    for row in rows:
        by_video.setdefault(row["video"], set()).add(row["frame"])
    for video, frames in by_video.items():
        check_frames(work, fields.path, video, sorted(frames))
    count = work.insert(INSTANCES, rows)
    fill_from_spans(work, ((row["video"], _track(row), row["frame"]) for row in rows))
    return count


def move(work: Work, fields: Fields) -> Effect:
    """Shift instances by some pixels."""
    fields.only("ids", "dx", "dy")
    dx, dy = fields.real("dx"), fields.real("dy")
    rows = instance_rows(work, fields.path, fields.ids("ids"))
    return _shape(work, [(row.id, _shifted(row, dx, dy)) for row in rows])


def reshape(work: Work, fields: Fields) -> Effect:
    """Give instances another box or other polygons."""
    fields.only("shapes")
    shapes = fields.objects("shapes")
    ids = [shape.only("id", "box", "polygons").id("id") for shape in shapes]
    if len(set(ids)) != len(ids):
        raise fields.error("shapes", "an id twice", "each id once")
    instance_rows(work, fields.path, ids)
    changes = []
    for id, shape in zip(ids, shapes, strict=True):
        (x, y, w, h), polygons = shape.geometry()
        changes.append((id, {"x": x, "y": y, "w": w, "h": h, "polygons": polygons}))
    return _shape(work, changes)


def delete(work: Work, fields: Fields) -> Effect:
    """Take instances away."""
    fields.only("ids")
    ids = fields.ids("ids")
    instance_rows(work, fields.path, ids)
    return Effect(sum(work.touch(INSTANCES, by_id(part), {"alive": False}) for part in chunks(ids)))


def duplicate(work: Work, fields: Fields) -> Effect:
    """Copies of instances, in their own frame or another one, shifted, without identity."""
    fields.only("copies", "frame", "dx", "dy")
    copies = fields.objects("copies")
    frame, dx, dy = fields.optional_whole("frame"), fields.real("dx", 0.0), fields.real("dy", 0.0)
    ids = [copy.only("of", "id").id("id") for copy in copies]
    _new_ids(work, fields, ids)
    originals = instance_rows(work, fields.path, [copy.id("of") for copy in copies])
    rows = []
    for id, original in zip(ids, originals, strict=True):
        values = work.labels.values(original.label)
        own = work.labels.own_number({key: (value, work.seq) for key, value in values.items()})
        rows.append(
            {
                **_plain(original),
                **_shifted(original, dx, dy),
                "id": id,
                "frame": original.frame if frame is None else frame,
                "track": None,
                "track_by": None,
                "own": own,
                "label": work.labels.number(values),
                "source": "hand",
                "score": None,
                "state": "accepted",
                "review": "",
            }
        )
    for row in rows:
        check_frames(work, fields.path, row["video"], [row["frame"]])
    count = work.insert(INSTANCES, rows)
    fill_from_spans(work, ((row["video"], _track(row), row["frame"]) for row in rows))
    return Effect(count, created=tuple(ids))


def fill_from_spans(work: Work, places: Iterable[tuple[str, Track, int]]) -> None:
    """Give new or renamed instances the values of the spans that cover them."""
    ranges: dict[str, dict[Track, tuple[int, int]]] = {}
    for video, track, frame in places:
        first, last = ranges.setdefault(video, {}).get(track, (frame, frame))
        ranges[video][track] = (min(first, frame), max(last, frame))
    for video, tracks in sorted(ranges.items()):
        spans = alive_spans(work.connection, video)
        covered = {track for span in spans for track in span.tracks}
        for track in (track for track in tracks if track in covered):
            refresh(work, video, track, *tracks[track], spans)


def instance_fields(fields: Fields) -> dict[str, Any]:
    """What is stored of a new instance, its values as they were given."""
    fields.only(*_FIELDS)
    (x, y, w, h), polygons = fields.geometry()
    track = fields.optional_whole("track")
    by = fields.choice("track_by", _TRACK_BY, "hand") if fields.data.get("track_by") or track is not None else None
    group = fields.text("group")
    if group == IMAGE:
        raise fields.error("group", group, "a group of instances: values of the image belong to its frame")
    return {
        "id": fields.id("id"),
        "video": fields.id("video"),
        "frame": fields.whole("frame"),
        "grp": group,
        "name": fields.text("name"),
        "track": track,
        "track_by": by,
        "x": x,
        "y": y,
        "w": w,
        "h": h,
        "polygons": polygons,
        "values": {key: value for key, value in fields.values().items() if value is not None},
        "source": fields.text("source", "hand"),
        "score": fields.optional_real("score"),
        "state": "proposal" if fields.flag("proposal", False) else "accepted",
        "review": fields.text("review", "", empty=True),
        "extra": fields.extra(),
    }


def _row(work: Work, fields: Fields) -> dict[str, Any]:
    row = instance_fields(fields)
    values = row.pop("values")
    own = work.labels.own_number({key: (value, work.seq) for key, value in values.items()})
    return {**row, "own": own, "label": work.labels.number(values)}


def _new_ids(work: Work, fields: Fields, ids: list[str]) -> None:
    if len(set(ids)) != len(ids):
        raise fields.error("id", "one twice", "each id once")
    for part in chunks(ids):
        taken = work.connection.execute(select(INSTANCES.c.id).where(INSTANCES.c.id.in_(part))).scalar()
        if taken is not None:
            raise fields.error("id", taken, "an id that no instance had before")


def _shape(work: Work, changes: list[tuple[str, dict[str, Any]]]) -> Effect:
    for id, change in changes:
        if not all(abs(change[side]) <= 1e7 for side in ("x", "y")):
            raise BadInput(f"instance {id}: found a shift beyond every image, expected one inside")
        # A box that was corrected by hand is no longer the interpolation's to move.
        source = case((INSTANCES.c.source == "interpolated", "hand"), else_=INSTANCES.c.source)
        work.touch(INSTANCES, by_id([id]), {**change, **CORRECTED, "source": source})
    return Effect(len(changes))


def _shifted(row: Any, dx: float, dy: float) -> dict[str, Any]:
    polygons = row.polygons
    if polygons is not None:
        moved = [[[x + dx, y + dy] for x, y in polygon] for polygon in json.loads(polygons)]
        polygons = json.dumps(moved, separators=(",", ":"))
    return {"x": row.x + dx, "y": row.y + dy, "w": row.w, "h": row.h, "polygons": polygons}


def _plain(row: Any) -> dict[str, Any]:
    return {key: value for key, value in row._mapping.items() if key not in ("alive", "version", "made_by")}


def _track(row: dict[str, Any]) -> Track:
    return Track(row["grp"], row["name"], row["track"])
