"""Where each track of a video is, for the timeline; after an edit only the tracks it touched are looked at again."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from sqlalchemy import Connection

from surgeval.studio.store import Track, reading

__all__ = ["Lanes"]

_MANY = 40  # tracks from which looking at all of them is as quick


class Lanes:
    """The runs of frames of every track, remembered by video and version.

    >>> import tempfile
    >>> from surgeval.studio.store import Database, Request, apply
    >>> with tempfile.TemporaryDirectory() as folder, Database(f"{folder}/studio.sqlite") as database:
    ...     _ = apply(database, Request("v", "amy", "video.add", {"id": "V1", "width": 64, "height": 48}))
    ...     _ = apply(database, Request("f", "amy", "frames.add", {"video": "V1", "first": 0, "names": ["a", "b"]}))
    ...     hook = {"video": "V1", "group": "tools", "name": "hook", "box": [1, 2, 3, 4], "track": 1}
    ...     lanes, seen = Lanes(), []
    ...     for frame in (0, 1):
    ...         new = {"instances": [{"id": f"i{frame}", "frame": frame, **hook}]}
    ...         _ = apply(database, Request(f"i{frame}", "amy", "instances.add", new))
    ...         with database.reading() as connection:
    ...             seen.append(list(lanes.of(connection, "V1").values()))
    >>> seen
    [[[[0, 0]]], [[[0, 1]]]]
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[int, dict[Track, list[list[int]]]]] = {}

    def of(self, connection: Connection, video: str) -> Mapping[Track, list[list[int]]]:
        """The lanes of a video as the connection sees it, by class and number."""
        version = reading.version(connection)
        with self._lock:
            before = self._kept.get(video)
        known = None
        if before is not None and before[0] <= version:
            known = dict(before[1])
            changed = reading.changed_tracks(connection, video, before[0]) if before[0] < version else set()
            for track in changed:
                known.pop(track, None)
            if len(changed) > _MANY:
                known = None
            elif changed:
                known |= dict(reading.runs(connection, video, changed))
        if known is None:
            known = dict(reading.runs(connection, video))
        with self._lock:
            if self._kept.get(video, (-1, {}))[0] < version:
                self._kept[video] = version, known
        return dict(sorted(known.items(), key=lambda lane: (lane[0].group, lane[0].name, lane[0].number or -1)))
