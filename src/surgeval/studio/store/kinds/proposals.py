"""What a detector suggests for a stretch of a video, in place of what it suggested there before."""

from __future__ import annotations

from sqlalchemy import and_

from surgeval.studio.store.checks import Fields
from surgeval.studio.store.effect import Effect
from surgeval.studio.store.kinds.instances import insert_instances
from surgeval.studio.store.select import check_frames
from surgeval.studio.store.tables import INSTANCES
from surgeval.studio.store.work import Work

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
    added = 0
    if fields.data.get("instances"):
        proposals = fields.objects("instances")
        for proposal in proposals:
            if not first <= proposal.whole("frame") <= last or proposal.id("video") != video:
                raise proposal.error("frame", proposal.data.get("frame"), f"frames {first} to {last} of {video}")
            if proposal.text("source", "") != source or not proposal.flag("proposal", False):
                raise proposal.error("source", proposal.data.get("source"), f"a proposal of {source}")
        added = insert_instances(work, fields, proposals)
    return Effect(added, gone)
