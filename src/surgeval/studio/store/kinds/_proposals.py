"""What a detector suggests for a stretch of a video, in place of what it suggested there before."""

from __future__ import annotations

from sqlalchemy import and_

from surgeval.studio.store._checks import Fields
from surgeval.studio.store._effect import Effect
from surgeval.studio.store._select import check_frames
from surgeval.studio.store._tables import INSTANCES
from surgeval.studio.store._work import Work
from surgeval.studio.store.kinds._instances import insert_instances

__all__ = ["add"]


def add(work: Work, fields: Fields) -> Effect:
    """New proposals of one source; with `replace` the undecided ones of that source in the stretch go."""
    fields.only("video", "first", "last", "source", "replace", "instances")
    video, (first, last), source = fields.id("video"), fields.frames(), fields.text("source")
    check_frames(work, fields.path, video, [first, last])
    gone = 0
    if fields.flag("replace", False):
        earlier = and_(
            INSTANCES.c.video == video, INSTANCES.c.frame.between(first, last), INSTANCES.c.source == source,
            INSTANCES.c.state == "proposal", INSTANCES.c.alive.is_(True),
        )  # fmt: skip
        gone = work.touch(INSTANCES, earlier, {"alive": False})
    made = 0
    if fields.data.get("instances"):
        shown = fields.objects("instances")
        for one in shown:
            if not first <= one.whole("frame") <= last or one.id("video") != video:
                raise one.error("frame", one.data.get("frame"), f"frames {first} to {last} of {video}")
            if one.text("source", "") != source or not one.flag("proposal", False):
                raise one.error("source", one.data.get("source"), f"a proposal of {source}")
        made = insert_instances(work, fields, shown)
    return Effect(made, gone)
