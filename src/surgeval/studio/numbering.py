"""Numbers for the instances of a video by a rule, as one edit; numbers set by hand stay."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import numpy as np

from surgeval.arrays import Ints
from surgeval.errors import BadInput
from surgeval.studio.identity import UNNUMBERED, Instances, Rule, SectorRule, number_tracks
from surgeval.studio.store import Annotation, Database, FrameState, Outcome, Request, VideoState, apply, reading

__all__ = ["number_video"]


def number_video(
    database: Database,
    video: str,
    rule: Rule | SectorRule = "sector",
    *,
    author: str,
    within: tuple[int, int] | None = None,
) -> Outcome | None:
    """Number the tracks of a video, or of a range of its frames; None where there is nothing to number.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     database = Database(f"{folder}/studio.sqlite")
    ...     _ = apply(database, Request("v", "amy", "video.add", {"id": "V1", "width": 100, "height": 100}))
    ...     _ = apply(database, Request("f", "amy", "frames.add", {"video": "V1", "first": 0, "names": ["a", "b"]}))
    ...     left = {"video": "V1", "group": "tools", "name": "grasper", "box": [0, 40, 45, 15]}
    ...     both = [{"id": f"i{k}", "frame": k, **left} for k in (0, 1)]
    ...     _ = apply(database, Request("i", "amy", "instances.add", {"instances": both}))
    ...     made = number_video(database, "V1", author="amy")
    ...     with database.reading() as connection:
    ...         made.changed, [one.track for one in reading.instances(connection, "V1", 0, 1)]
    ...     database.close()
    (2, [1, 1])
    """
    with database.reading() as connection:
        state = next((one for one in reading.videos(connection) if one.id == video), None)
        if state is None:
            raise BadInput(f"video: found {video!r}, expected one of the project")
        frames = reading.frames(connection, video)
        found = reading.instances(connection, video, 0, state.frames)
    if not found:
        return None
    numbers = number_tracks(_columns(state, frames, found), rule, within=within, current=_current(found))
    told = [{"id": one.id, "number": int(number)} for one, number in zip(found, numbers, strict=True)
            if number != UNNUMBERED and number != one.track]  # fmt: skip
    if not told:
        return None
    by = "upstream" if rule == "upstream" else "rule"
    return apply(database, Request(f"number.{uuid.uuid4().hex}", author, "track.renumber", {"numbers": told, "by": by}))


def _columns(video: VideoState, frames: Sequence[FrameState], found: Sequence[Annotation]) -> Instances:
    times = {frame.frame: frame.time for frame in frames}
    rate = video.fps or 1.0
    kinds = {kind: number for number, kind in enumerate(sorted({(one.group, one.name) for one in found}))}
    seconds = [time if (time := times.get(one.frame)) is not None else one.frame / rate for one in found]
    return Instances.of(
        frame=[one.frame for one in found],
        time=seconds,
        kind=[kinds[one.group, one.name] for one in found],
        size=(video.width, video.height),
        xyxy=[[one.box.x, one.box.y, one.box.x + one.box.w, one.box.y + one.box.h] for one in found],
        outlines=[np.array(one.polygons[0]) if one.polygons else None for one in found],
        upstream=_current(found),
        fixed=[one.track if one.track is not None and one.track_by == "hand" else UNNUMBERED for one in found],
        score=[one.score if one.score is not None else 1.0 for one in found],
        step=None if any(time is not None for time in times.values()) else 1.0 / rate,
    )


def _current(found: Sequence[Annotation]) -> Ints:
    return np.array([UNNUMBERED if one.track is None else one.track for one in found], dtype=np.int64)
