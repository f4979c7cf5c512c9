"""The annotation studio: what lies under the web application (`surgeval studio`).

`Project` opens a project in a folder or on a PostgreSQL server; `project.edit(author)` makes edits, each one operation
that is on disk when the call returns and can be undone.
"""

from surgeval.studio._editor import Editor
from surgeval.studio._project import Project
from surgeval.studio.store import (
    Annotation,
    Answer,
    Conflict,
    Decision,
    Flag,
    FrameState,
    LoggedOperation,
    NotStored,
    Outcome,
    Request,
    Review,
    Round,
    Span,
    Study,
    Track,
    TrackSummary,
    VideoState,
)

__all__ = [
    "Annotation",
    "Answer",
    "Conflict",
    "Decision",
    "Editor",
    "Flag",
    "FrameState",
    "LoggedOperation",
    "NotStored",
    "Outcome",
    "Project",
    "Request",
    "Review",
    "Round",
    "Span",
    "Study",
    "Track",
    "TrackSummary",
    "VideoState",
]
