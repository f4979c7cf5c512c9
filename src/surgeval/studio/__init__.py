"""The annotation studio: what lies under the web application (`surgeval studio`).

`Project` opens a project in a folder or on a PostgreSQL server; `project.edit(author)` makes edits, each one operation
that is on disk when the call returns and can be undone. Names load on first use: whoever asks which dataset formats
there are meets the studio's, and needs no database for that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from surgeval._lazy import lazy_exports

if TYPE_CHECKING:
    from surgeval.studio._editor import Editor
    from surgeval.studio._project import Project
    from surgeval.studio.store import (
        Annotation,
        Conflict,
        Flag,
        FrameState,
        LoggedOperation,
        NotStored,
        Outcome,
        Request,
        Review,
        Span,
        Track,
        TrackSummary,
        VideoState,
    )

_HOMES = {
    "_editor": "Editor",
    "_project": "Project",
    "store": "Annotation Conflict Flag FrameState LoggedOperation NotStored Outcome Request Review Span Track "
    "TrackSummary VideoState",
}
__getattr__, __dir__ = lazy_exports(__name__, _HOMES)

__all__ = [
    "Annotation",
    "Conflict",
    "Editor",
    "Flag",
    "FrameState",
    "LoggedOperation",
    "NotStored",
    "Outcome",
    "Project",
    "Request",
    "Review",
    "Span",
    "Track",
    "TrackSummary",
    "VideoState",
]
