"""The store of a studio project: an append-only log of operations, and the state that they have made.

`Database` opens it, `reading` has what can be asked of it, `apply` makes an edit (once, however often it is asked),
`preview` says what it would do, `replay` rebuilds the state from the log.
"""

from surgeval.studio.store import read as reading
from surgeval.studio.store import read_study as study_reading
from surgeval.studio.store.columns import NO_NUMBER, Columns, FrameColumns
from surgeval.studio.store.commit import apply, apply_all, check_author, preview
from surgeval.studio.store.engine import STORE_FILE, Database
from surgeval.studio.store.errors import Conflict, NoRoom, NotStored
from surgeval.studio.store.kinds import check_taken
from surgeval.studio.store.records import (
    Annotation,
    Flag,
    FrameState,
    LoggedOperation,
    News,
    OperationOutcome,
    Polygon,
    Request,
    Review,
    Span,
    Track,
    TrackSummary,
    VideoState,
)
from surgeval.studio.store.replay import dump, replay
from surgeval.studio.store.study_records import Decision, Round, Study, StudyAnswer
from surgeval.studio.store.work import SCHEMA

__all__ = [
    "NO_NUMBER",
    "SCHEMA",
    "STORE_FILE",
    "Annotation",
    "Columns",
    "Conflict",
    "Database",
    "Decision",
    "Flag",
    "FrameColumns",
    "FrameState",
    "LoggedOperation",
    "News",
    "NoRoom",
    "NotStored",
    "OperationOutcome",
    "Polygon",
    "Request",
    "Review",
    "Round",
    "Span",
    "Study",
    "StudyAnswer",
    "Track",
    "TrackSummary",
    "VideoState",
    "apply",
    "apply_all",
    "check_author",
    "check_taken",
    "dump",
    "preview",
    "reading",
    "replay",
    "study_reading",
]
