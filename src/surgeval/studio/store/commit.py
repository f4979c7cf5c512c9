"""Applying an operation: once, in one transaction, under the next version number.

A request that comes a second time (the answer got lost) is answered with what it did the first time. A preview is the
same work in a transaction that is rolled back, so it cannot differ from what the edit then does.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from surgeval.errors import BadInput, visible
from surgeval.studio.store.checks import MAX_DEPTH, Fields, too_deep
from surgeval.studio.store.effect import Effect
from surgeval.studio.store.engine import Database
from surgeval.studio.store.errors import Conflict
from surgeval.studio.store.kinds import KINDS
from surgeval.studio.store.labels import canonical
from surgeval.studio.store.records import LoggedOperation, OperationOutcome, Request
from surgeval.studio.store.tables import HEAD, OPERATIONS
from surgeval.studio.store.undo import REDO, UNDO, restore, to_redo, to_undo
from surgeval.studio.store.work import Work

__all__ = ["apply", "apply_all", "check_author", "logged", "preview", "repeat"]

_ID = re.compile(r"[A-Za-z0-9_.:#@-]{1,80}")  # shorter than other ids, which are made from it
_MAX_AUTHOR = 100


def apply(database: Database, request: Request) -> OperationOutcome:
    """Make the edit; when this returns it is on disk.

    >>> import tempfile
    >>> request = Request("edit-1", "amy", "video.add", {"id": "VID01", "width": 854, "height": 480})
    >>> with tempfile.TemporaryDirectory() as folder, Database(f"{folder}/studio.sqlite") as database:
    ...     [apply(database, request).repeated, apply(database, request).repeated]
    [False, True]
    """
    payload = _checked(request)
    with database.writing() as connection:
        return _apply(connection, request, payload, time.time())


def apply_all(database: Database, requests: Iterable[Request], *, since: int) -> tuple[OperationOutcome, ...]:
    """Make several edits of one kind, all of them or none; refused where one of that kind came after version `since`.

    >>> import tempfile
    >>> both = [Request(f"e{k}", "amy", "video.add", {"id": f"V{k}", "width": 64, "height": 48}) for k in range(2)]
    >>> with tempfile.TemporaryDirectory() as folder, Database(f"{folder}/studio.sqlite") as database:
    ...     [outcome.version for outcome in apply_all(database, both, since=0)]
    [1, 2]
    """
    outcomes: list[OperationOutcome] = []
    with database.writing() as connection:
        connection.execute(select(HEAD.c.version).with_for_update())
        for request in requests:
            if not outcomes:
                _check_alone(connection, request.kind, since)
            outcomes.append(_apply(connection, request, _checked(request), time.time()))
    return tuple(outcomes)


def _check_alone(connection: Connection, kind: str, since: int) -> None:
    query = select(OPERATIONS.c.author, OPERATIONS.c.seq).where(OPERATIONS.c.kind == kind, OPERATIONS.c.seq > since)
    other = connection.execute(query.limit(1)).first()
    if other is not None:
        raise Conflict("the project", other.author, kind, other.seq, "nothing of this one is stored: do it again")


def preview(database: Database, request: Request) -> OperationOutcome:
    """What the edit would do; nothing is stored.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Database(f"{folder}/studio.sqlite") as database:
    ...     preview(database, Request("edit-1", "amy", "video.add", {"id": "VID01", "width": 854, "height": 480}))
    OperationOutcome(version=0, kind='video.add', changed=1, skipped=0, absent=0, created=(), repeated=False)
    """
    payload = _checked(request)
    with database.trying() as connection:
        return replace(_apply(connection, request, payload, time.time()), version=0)


def repeat(connection: Connection, operation: LoggedOperation) -> None:
    """Apply a logged operation again, in an empty store, under its own number, author and time."""
    request = Request(
        operation.id, operation.author, operation.kind, operation.payload, operation.base, operation.session
    )
    outcome = _apply(connection, request, canonical(dict(operation.payload)), operation.time)
    if outcome != operation.outcome:
        raise BadInput(
            f"operation {operation.version} ({operation.kind}): found {outcome} on replay, expected {operation.outcome}"
        )


def logged(row: Row[Any]) -> LoggedOperation:
    """A row of the operations table."""
    stored = json.loads(row.outcome)
    outcome = OperationOutcome(row.seq, row.kind, stored[0], stored[1], stored[2], tuple(stored[3]))
    return LoggedOperation(
        row.seq, row.id, row.author, row.session, row.time, row.kind, json.loads(row.payload),
        json.loads(row.inverse), row.base, row.target, outcome,
    )  # fmt: skip


def _apply(connection: Connection, request: Request, payload: str, now: float) -> OperationOutcome:
    head = int(connection.execute(select(HEAD.c.version).with_for_update()).scalar_one())
    known = connection.execute(select(OPERATIONS).where(OPERATIONS.c.id == request.id)).first()
    if known is not None:
        return _repeated(known, request, payload)
    base = head if request.base is None else request.base
    if not 0 <= base <= head:
        raise BadInput(f"{request.kind}: base: found version {base}, expected at most the current one, {head}")
    work = Work(connection, head + 1, base, request.id, request.author, request.session, now)
    effect, target = _handle(work, request.kind, json.loads(payload))
    outcome = OperationOutcome(work.seq, request.kind, effect.changed, effect.skipped, effect.absent, effect.created)
    connection.execute(
        insert(OPERATIONS).values(
            seq=work.seq,
            id=request.id,
            author=request.author,
            session=request.session,
            time=now,
            kind=request.kind,
            payload=payload,
            inverse=canonical(work.inverse()),
            base=base,
            target=target,
            outcome=canonical([effect.changed, effect.skipped, effect.absent, list(effect.created)]),
        )
    )
    connection.execute(update(HEAD).values(version=work.seq))
    return outcome


def _handle(work: Work, kind: str, payload: dict[str, Any]) -> tuple[Effect, int | None]:
    fields = Fields(kind, payload)
    if kind in (UNDO, REDO):
        wanted = fields.only("operation", "study").optional_whole("operation")
        study = None if fields.data.get("study") is None else fields.id("study")
        step = to_undo(work, wanted, study) if kind == UNDO else to_redo(work, wanted, study)
        return restore(work, step, kind), step.target
    if kind not in KINDS:
        raise BadInput(f"operation: found {visible(kind[:60])}, expected one of {', '.join(KINDS)}, undo, redo")
    return KINDS[kind].apply(work, fields), None


def _repeated(known: Row[Any], request: Request, payload: str) -> OperationOutcome:
    if (known.author, known.kind, known.payload) != (request.author, request.kind, payload):
        raise BadInput(
            f"operation {request.id}: found the id of another edit (version {known.seq} of {visible(known.author)}), "
            "expected a new id"
        )
    return replace(logged(known).outcome, repeated=True)


def check_author(text: str, name: str = "author", *, blank: bool = False) -> None:
    """Raise `BadInput` where nobody can be called that.

    >>> check_author("Ada")
    >>> check_author(" ")
    Traceback (most recent call last):
    surgeval.errors.BadInput: author: found ' ', expected at most 100 printable letters
    """
    if len(text) > _MAX_AUTHOR or visible(text) != text or not (blank or text.strip()):
        shown = visible(repr(text[:60]))
        raise BadInput(f"{name}: found {shown}, expected at most {_MAX_AUTHOR} printable letters")


def _checked(request: Request) -> str:
    """The payload as the text that is stored and applied, and whether the rest of the request can be used."""
    if not _ID.fullmatch(request.id):
        shown = visible(repr(request.id[:90]))
        raise BadInput(f"operation id: found {shown}, expected 1 to 80 letters, digits and _ . : # @ -")
    check_author(request.author)
    check_author(request.session, "session", blank=True)
    try:
        payload = canonical(dict(request.payload))
        payload.encode()
    except (TypeError, ValueError, RecursionError) as error:
        problem = f"a payload that is no JSON ({str(error)[:60]})"
        raise BadInput(visible(f"{request.kind[:60]}: found {problem}, expected an object")) from None
    if too_deep(payload):
        raise BadInput(visible(f"{request.kind[:60]}: found deep nesting, expected at most {MAX_DEPTH} levels"))
    return payload
