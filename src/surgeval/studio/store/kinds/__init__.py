"""The kinds of operations: a name, what it does to the state, and whether a plain undo takes it back.

A handler reads its payload and the present state and nothing else (no clock, no chance), so that the operations alone
give the state again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from surgeval.studio.store.checks import Fields
from surgeval.studio.store.effect import Effect
from surgeval.studio.store.kinds import (
    fill,
    identity,
    importing,
    review,
    spans,
    values,
)
from surgeval.studio.store.kinds import (
    instances as _instances,
)
from surgeval.studio.store.kinds import (
    project as _project,
)
from surgeval.studio.store.kinds import (
    proposals as _proposals,
)
from surgeval.studio.store.kinds import (
    study as _study,
)
from surgeval.studio.store.kinds.importing import check_taken
from surgeval.studio.store.work import Work

__all__ = ["KINDS", "Kind", "check_taken"]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of operation."""

    name: str
    apply: Callable[[Work, Fields], Effect]
    undoable: bool = True  # by a plain undo, which takes back the author's last edit
    blind: bool = False  # an annotator's answer: taken back by an undo that names the study, never by a plain one


KINDS = {
    kind.name: kind
    for kind in (
        Kind("video.add", _project.add_video, undoable=False),
        Kind("video.rate", _project.set_rate),
        Kind("frames.add", _project.add_frames, undoable=False),
        Kind("schema.set", _project.set_schema),
        Kind("setting.set", _project.set_setting, undoable=False),
        Kind("instances.add", _instances.add),
        Kind("instances.move", _instances.move),
        Kind("instances.reshape", _instances.reshape),
        Kind("instances.delete", _instances.delete),
        Kind("instances.duplicate", _instances.duplicate),
        Kind("instances.values", values.set_values),
        Kind("instances.classify", values.classify),
        Kind("instances.mark", review.mark_instances),
        Kind("image.values", values.set_image_values),
        Kind("project.replace", values.replace),
        Kind("project.map", values.replace_several),
        Kind("project.refine", values.refine_labels),
        Kind("project.import", importing.take_in),
        Kind("span.add", spans.add),
        Kind("span.edges", spans.edges),
        Kind("span.values", spans.values),
        Kind("span.cut", spans.cut),
        Kind("span.join", spans.join),
        Kind("span.delete", spans.delete),
        Kind("track.set", identity.set_track),
        Kind("track.range", identity.set_range),
        Kind("track.swap", identity.swap),
        Kind("track.merge", identity.merge),
        Kind("track.split", identity.split),
        Kind("track.renumber", identity.renumber),
        Kind("track.extend", fill.extend),
        Kind("boxes.paste", fill.paste),
        Kind("boxes.interpolate", fill.interpolate),
        Kind("proposals.add", _proposals.add),
        Kind("proposals.accept", review.accept),
        Kind("proposals.reject", review.reject),
        Kind("frames.flag", review.flag),
        Kind("frames.clear", review.clear_flags),
        Kind("frames.mark", review.mark_frames),
        Kind("round.begin", review.begin_round),
        Kind("study.add", _study.add, undoable=False),
        Kind("study.remove", _study.remove),
        Kind("study.answer", _study.answer, blind=True),
        Kind("study.decide", _study.decide),
    )
}
