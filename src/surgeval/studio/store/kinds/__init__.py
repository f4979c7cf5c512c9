"""The kinds of operations: a name, what it does to the state, and whether a plain undo takes it back.

A handler reads its payload and the present state and nothing else (no clock, no chance), so that the operations alone
give the state again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from surgeval.studio.store._checks import Fields
from surgeval.studio.store._effect import Effect
from surgeval.studio.store._work import Work
from surgeval.studio.store.kinds import (
    _fill,
    _identity,
    _import,
    _instances,
    _project,
    _proposals,
    _review,
    _spans,
    _study,
    _values,
)
from surgeval.studio.store.kinds._import import check_taken

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
        Kind("instances.values", _values.set_values),
        Kind("instances.classify", _values.classify),
        Kind("instances.mark", _review.mark_instances),
        Kind("image.values", _values.set_image_values),
        Kind("project.replace", _values.replace),
        Kind("project.map", _values.replace_several),
        Kind("project.refine", _values.refine_labels),
        Kind("project.import", _import.take_in),
        Kind("span.add", _spans.add),
        Kind("span.edges", _spans.edges),
        Kind("span.values", _spans.values),
        Kind("span.cut", _spans.cut),
        Kind("span.join", _spans.join),
        Kind("span.delete", _spans.delete),
        Kind("track.set", _identity.set_track),
        Kind("track.range", _identity.set_range),
        Kind("track.swap", _identity.swap),
        Kind("track.merge", _identity.merge),
        Kind("track.split", _identity.split),
        Kind("track.renumber", _identity.renumber),
        Kind("track.extend", _fill.extend),
        Kind("boxes.paste", _fill.paste),
        Kind("boxes.interpolate", _fill.interpolate),
        Kind("proposals.add", _proposals.add),
        Kind("proposals.accept", _review.accept),
        Kind("proposals.reject", _review.reject),
        Kind("frames.flag", _review.flag),
        Kind("frames.clear", _review.clear_flags),
        Kind("frames.mark", _review.mark_frames),
        Kind("round.begin", _review.begin_round),
        Kind("study.add", _study.add, undoable=False),
        Kind("study.remove", _study.remove),
        Kind("study.answer", _study.answer, blind=True),
        Kind("study.decide", _study.decide),
    )
}
