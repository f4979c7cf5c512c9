"""Videos, their frames, the schema in force and settings."""

from __future__ import annotations

import json

from sqlalchemy import and_, func, select

from surgeval.studio.schema import parse_schema
from surgeval.studio.store.checks import Fields
from surgeval.studio.store.effect import Effect
from surgeval.studio.store.labels import canonical
from surgeval.studio.store.select import check_video
from surgeval.studio.store.tables import FRAMES, SETTINGS, VIDEOS
from surgeval.studio.store.work import SCHEMA, Work

__all__ = ["add_frames", "add_video", "set_rate", "set_schema", "set_setting"]

_MAX_SETTING = 1_000_000  # characters
_MAX_RATE = 1000.0  # frames a second


def add_video(work: Work, fields: Fields) -> Effect:
    """A video, without frames yet."""
    fields.only("id", "name", "fps", "width", "height", "extra")
    id = fields.id("id")
    if work.count(VIDEOS, VIDEOS.c.id == id):
        raise fields.error("id", id, "an id that no video had before")
    row = {
        "id": id,
        "name": fields.text("name", id),
        "fps": fields.optional_real("fps"),
        "width": fields.whole("width", least=1),
        "height": fields.whole("height", least=1),
        "extra": fields.extra(),
    }
    return Effect(work.insert(VIDEOS, [row]))


def add_frames(work: Work, fields: Fields) -> Effect:
    """Frames of a video, numbered from `first` on: their names and, where known, their times in seconds."""
    fields.only("video", "first", "names", "times")
    video, first = fields.id("video"), fields.whole("first")
    check_video(work, fields.path, video)
    names = fields.items("names")
    times = fields.data.get("times") or [None] * len(names)
    if not isinstance(times, list) or len(times) != len(names):
        raise fields.error("times", "another number of times", f"{len(names)}, one per name")
    inside = and_(FRAMES.c.video == video, FRAMES.c.frame.between(first, first + len(names) - 1))
    taken = work.connection.execute(select(func.min(FRAMES.c.frame)).where(inside)).scalar()
    if taken is not None:
        raise fields.error("first", first, f"frames that are not there yet (there is {taken})")
    empty = work.labels.number({})
    rows = [
        {
            "video": video,
            "frame": first + number,
            "name": Fields(f"{fields.path}: names[{number}]", {"name": name}).text("name", longest=1000),
            "time": Fields(f"{fields.path}: times[{number}]", {"time": time}).optional_real("time"),
            "own": empty,
            "label": empty,
        }
        for number, (name, time) in enumerate(zip(names, times, strict=True))
    ]
    return Effect(work.insert(FRAMES, rows))


def set_rate(work: Work, fields: Fields) -> Effect:
    """How many frames of a video are a second, where its frames have no times of their own."""
    fields.only("video", "fps")
    video, fps = fields.id("video"), fields.optional_real("fps")
    check_video(work, fields.path, video)
    if fps is None or not 0 < fps <= _MAX_RATE:
        raise fields.error("fps", fps, f"frames a second, more than 0 and at most {_MAX_RATE:g}")
    if work.count(FRAMES, and_(FRAMES.c.video == video, FRAMES.c.time.is_not(None))):
        raise fields.error("video", video, "a folder of images: the frames of a film have their own times")
    return Effect(work.touch(VIDEOS, VIDEOS.c.id == video, {"fps": fps}))


def set_schema(work: Work, fields: Fields) -> Effect:
    """Another schema from here on. Stored values stay as they are, also those that the new schema lacks."""
    fields.only("name", "source")
    schema = parse_schema(fields.text("source", longest=1 << 20), fields.text("name"))
    value = canonical({"name": schema.name, "source": schema.source})
    return Effect(_set(work, "", SCHEMA, value))


def set_setting(work: Work, fields: Fields) -> Effect:
    """A setting of the project (owner "") or of one person: any JSON."""
    fields.only("owner", "key", "value")
    owner, key = fields.text("owner", "", empty=True), fields.text("key")
    if (owner, key) == ("", SCHEMA):
        raise fields.error("key", key, "another key: the schema is set by schema.set")
    value = json.dumps(fields.data.get("value"), ensure_ascii=False, sort_keys=True)
    if len(value) > _MAX_SETTING:
        raise fields.error("value", f"{len(value)} characters", f"at most {_MAX_SETTING}")
    return Effect(_set(work, owner, key, value))


def _set(work: Work, owner: str, key: str, value: str) -> int:
    where = and_(SETTINGS.c.owner == owner, SETTINGS.c.key == key)
    if work.count(SETTINGS, where):
        return work.touch(SETTINGS, where, {"value": value, "alive": True})
    return work.insert(SETTINGS, [{"owner": owner, "key": key, "value": value}])
