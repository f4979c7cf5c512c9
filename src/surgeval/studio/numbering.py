"""Numbers for the instances of a video by a rule: what would change, and the change as one edit.

Numbers set by hand stay. A box that a rule finds too doubtful for a number has none afterwards.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sqlalchemy import Connection

from surgeval.arrays import Bools, Floats, Ints
from surgeval.errors import BadInput
from surgeval.studio.identity import (
    UNNUMBERED,
    Instances,
    NumberingRule,
    SectorRule,
    Tracking,
    TrackStatistics,
    number_tracks,
    track_statistics,
)
from surgeval.studio.store import (
    Columns,
    Database,
    FrameColumns,
    OperationOutcome,
    Request,
    Track,
    VideoState,
    apply,
    reading,
)

__all__ = ["Numbering", "number_video", "plan_numbers"]


@dataclass(frozen=True)
class Numbering:
    """What a rule would make of the numbers of a video."""

    rows: Columns
    numbers: Ints  # after the rule, for each row
    instances: Instances

    @property
    def changed(self) -> Bools:
        """The rows that would have another number."""
        differ: Bools = self.numbers != self.rows.number
        return differ

    @property
    def by_hand(self) -> int:
        """How many numbers a person has given."""
        return int((self.rows.by_hand & (self.rows.number != UNNUMBERED)).sum())

    def statistics(self, *, after: bool) -> tuple[tuple[Track, TrackStatistics], ...]:
        """Every track in numbers, as it is or as it would be."""
        numbers = self.numbers if after else self.rows.number
        return tuple((Track(*self.rows.kinds[track.kind], track.number), track)
                     for track in track_statistics(self.instances, numbers))  # fmt: skip


def plan_numbers(
    connection: Connection,
    video: VideoState,
    rule: NumberingRule | SectorRule | Tracking = "sector",
    *,
    gap: float = 3.0,
    within: tuple[int, int] | None = None,
) -> Numbering | None:
    """The numbers that a rule gives to a video, or to a range of its frames; None where nothing is in it."""
    rows = reading.columns(connection, video.id)
    if not len(rows):
        return None
    outlines = reading.outlines(connection, video.id)
    shapes = [outlines.get(id) for id in rows.ids]
    instances = _instances(video, reading.frame_columns(connection, video.id), rows, shapes)
    if rule == "upstream":
        upstream = reading.upstream_numbers(connection, video.id)
        return Numbering(rows, _as_they_came(rows, upstream, within), instances)
    # A number below 1 set by hand is no rule's to judge: it stays, and its box takes no part.
    part = np.flatnonzero(~(rows.by_hand & (rows.number == 0)))
    numbers = rows.number.copy()
    numbers[part] = number_tracks(instances.take(part), rule, gap=gap, within=within, current=rows.number[part])
    return Numbering(rows, numbers, instances)


def number_video(
    database: Database,
    video: str,
    rule: NumberingRule | SectorRule | Tracking = "sector",
    *,
    author: str,
    gap: float = 3.0,
    within: tuple[int, int] | None = None,
    make: Callable[[str, dict[str, object]], Request] | None = None,
) -> OperationOutcome | None:
    """Number the tracks of a video, or of a range of its frames, as one edit; None where nothing would change.

    `make` makes the request of an edit from its kind and payload, where it is somebody's who has seen a version.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     database = Database(f"{folder}/studio.sqlite")
    ...     _ = apply(database, Request("v", "amy", "video.add", {"id": "V1", "width": 100, "height": 100}))
    ...     _ = apply(database, Request("f", "amy", "frames.add", {"video": "V1", "first": 0, "names": ["a", "b"]}))
    ...     left = {"video": "V1", "group": "tools", "name": "grasper", "box": [0, 40, 45, 15]}
    ...     both = [{"id": f"i{k}", "frame": k, **left} for k in (0, 1)]
    ...     _ = apply(database, Request("i", "amy", "instances.add", {"instances": both}))
    ...     outcome = number_video(database, "V1", author="amy")
    ...     with database.reading() as connection:
    ...         outcome.changed, [instance.track for instance in reading.instances(connection, "V1", 0, 1)]
    ...     database.close()
    (2, [1, 1])
    """
    with database.reading() as connection:
        state = next((known for known in reading.videos(connection) if known.id == video), None)
        if state is None:
            raise BadInput(f"video: found {video[:60]!r}, expected one of the project")
        plan = plan_numbers(connection, state, rule, gap=gap, within=within)
    if plan is None or not plan.changed.any():
        return None
    changed = np.flatnonzero(plan.changed)
    numbers = [None if number == UNNUMBERED else number for number in plan.numbers[changed].tolist()]
    payload: dict[str, object] = {
        "ids": [plan.rows.ids[row] for row in changed.tolist()],
        "numbers": numbers,
        "by": "upstream" if rule == "upstream" else "rule",
    }
    kind = "track.renumber"
    request = Request(f"number.{uuid.uuid4().hex}", author, kind, payload) if make is None else make(kind, payload)
    return apply(database, request)


def _instances(video: VideoState, frames: FrameColumns, rows: Columns, outlines: list[Floats | None]) -> Instances:
    rate = video.fps or 1.0
    position = np.minimum(np.searchsorted(frames.frame, rows.frame), max(len(frames.frame) - 1, 0))
    time = frames.time[position]
    corner = rows.xywh[:, :2]
    fixed = np.where(rows.by_hand & (rows.number >= 1), rows.number, UNNUMBERED)
    return Instances.of(
        frame=rows.frame,
        time=np.where(np.isnan(time), rows.frame / rate, time),
        kind=rows.kind,
        size=(video.width, video.height),
        xyxy=np.hstack([corner, corner + rows.xywh[:, 2:]]),
        outlines=outlines,
        fixed=fixed,
        score=np.where(np.isnan(rows.score), 1.0, rows.score),
        step=None if np.isfinite(frames.time).any() else 1.0 / rate,
    )


def _as_they_came(rows: Columns, upstream: dict[str, int], within: tuple[int, int] | None) -> Ints:
    """The numbers that instances came with; all others as they are."""
    numbers = rows.number.copy()
    first, last = within if within is not None else (0, 2**53)
    for row in np.flatnonzero(~rows.by_hand & (rows.frame >= first) & (rows.frame <= last)).tolist():
        numbers[row] = upstream.get(rows.ids[row], numbers[row])
    return numbers
