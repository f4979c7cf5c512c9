"""What the page gets: plain data of the project's records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

import numpy as np

from surgeval.studio.schema import IMAGE, Member, Schema
from surgeval.studio.store import (
    Annotation,
    FrameColumns,
    FrameState,
    News,
    OperationOutcome,
    Span,
    Track,
    TrackSummary,
    VideoState,
)
from surgeval.vocab import LabelSpace

__all__ = [
    "annotation_row", "frame_rows", "history_row", "image_runs", "outcome_row", "presence_row", "schema_row",
    "span_row", "track_row", "video_row",
]  # fmt: skip


def annotation_row(instance: Annotation) -> dict[str, Any]:
    """One instance."""
    return {
        "id": instance.id, "frame": instance.frame, "group": instance.group, "name": instance.name,
        "box": [instance.box.x, instance.box.y, instance.box.w, instance.box.h],
        "polygons": [list(map(list, polygon)) for polygon in instance.polygons],
        "values": dict(instance.values), "track": instance.track, "track_by": instance.track_by,
        "source": instance.source, "score": instance.score, "proposal": instance.proposal, "review": instance.review,
        "version": instance.version,
    }  # fmt: skip


def frame_rows(first: int, frames: Sequence[FrameState]) -> dict[str, Any]:
    """Names and times of a run of frames, and what is said of whole images."""
    return {
        "first": first,
        "names": [frame.name for frame in frames],
        "times": [frame.time for frame in frames],
        "values": {str(frame.frame): dict(frame.values) for frame in frames if frame.values},
    }


def image_runs(frames: FrameColumns) -> list[dict[str, Any]]:
    """The runs of frames whose image has the same values; frames without any are in none.

    >>> import numpy as np
    >>> values = {0: {}, 7: {"phase": "suture"}}
    >>> frames = FrameColumns(np.arange(5), np.zeros(5), np.array([0, 7, 7, 0, 7]), values)
    >>> [(run["first"], run["last"], run["values"]) for run in image_runs(frames)]
    [(1, 2, {'phase': 'suture'}), (4, 4, {'phase': 'suture'})]
    """
    new = np.append(True, (np.diff(frames.label) != 0) | (np.diff(frames.frame) > 1))[: len(frames.frame)]
    begins = np.flatnonzero(new)
    ends = np.append(begins[1:], len(frames.frame))[: len(begins)] - 1
    labels = frames.label[begins].tolist()
    runs = zip(frames.frame[begins].tolist(), frames.frame[ends].tolist(), labels, strict=True)
    return [{"first": first, "last": last, "values": dict(frames.values[label])}
            for first, last, label in runs if frames.values[label]]  # fmt: skip


def video_row(video: VideoState) -> dict[str, Any]:
    """A video; frames without any rate are taken to be a second apart, as the rules take them."""
    return {"id": video.id, "name": video.name, "width": video.width, "height": video.height, "fps": video.fps or 1.0,
            "frames": video.frames}  # fmt: skip


def span_row(span: Span) -> dict[str, Any]:
    """A span."""
    return {
        "id": span.id, "tracks": [_track(track) for track in span.tracks], "values": dict(span.values),
        "first": span.first, "last": span.last, "author": span.author, "time": span.time, "source": span.source,
        "overridden_by": list(span.overridden_by), "version": span.version,
    }  # fmt: skip


def track_row(track: TrackSummary) -> dict[str, Any]:
    """A track in numbers."""
    return {**_track(track.track), "count": track.count, "first": track.first, "last": track.last,
            "missing": track.missing}  # fmt: skip


def outcome_row(outcome: OperationOutcome) -> dict[str, Any]:
    """What an operation did."""
    return {"version": outcome.version, "kind": outcome.kind, "changed": outcome.changed, "skipped": outcome.skipped,
            "absent": outcome.absent, "created": list(outcome.created), "repeated": outcome.repeated}  # fmt: skip


def history_row(news: News, undone: bool) -> dict[str, Any]:
    """An operation of the log."""
    return {"version": news.version, "author": news.author, "kind": news.kind, "time": news.time, "undone": undone}


def schema_row(schema: Schema, space: LabelSpace | None) -> dict[str, Any]:
    """What may be chosen, the guidelines beside it, and which triplets are classes of the label space."""
    told = {f"{member.group}.{member.name}": member.guideline for member in schema.members if member.guideline}
    shown = {f"{member.group}.{member.name}": _picture(member) for member in schema.members if member.picture}
    row: dict[str, Any] = {"name": schema.name, "panel": schema.panel(), "guidelines": told, "pictures": shown}
    if space is not None:
        row["classes"] = [[space.instruments[i], space.verbs[v], space.targets[t]] for i, v, t in space.triplets]
    return row


def presence_row(track: Track, runs: list[list[int]]) -> dict[str, Any]:
    """A track as runs of frames.

    >>> presence_row(Track("tools", "hook", 1), [[3, 4], [7, 7]])
    {'group': 'tools', 'name': 'hook', 'number': 1, 'runs': [[3, 4], [7, 7]]}
    """
    return {**_track(track), "runs": runs}


def _picture(member: Member) -> str:
    """The address of a guideline's picture; the file's name is in it so that a browser asks again for another one."""
    return f"guideline?{urlencode({'group': member.group, 'name': member.name, 'file': member.picture})}"


def _track(track: Track) -> dict[str, Any]:
    return {"group": track.group, "name": track.name, "number": None if track.group == IMAGE else track.number}
