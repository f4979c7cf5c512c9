"""Why an edit was not made: someone else was there first, or the disk would not take it."""

from __future__ import annotations

from surgeval.errors import RunError, SurgevalError, visible

__all__ = ["Conflict", "NoRoom", "NotStored"]


class Conflict(SurgevalError):
    """An edit of something that another operation has changed since; names what it was, who changed it and how.

    >>> conflict = Conflict("instance i7, frame 12", "amy", "instances.delete", 41, "look again")
    >>> print(conflict)
    instance i7, frame 12: found changed by amy (instances.delete, version 41), expected as you last saw it: look again
    """

    def __init__(self, subject: str, author: str, kind: str, version: int, advice: str) -> None:
        self.subject, self.author, self.kind, self.version, self.advice = subject, author, kind, version, advice
        change = f"{author} ({kind}, version {version})"
        super().__init__(visible(f"{subject}: found changed by {change}, expected as you last saw it: {advice}"))


class NotStored(RunError):
    """The database could not keep or find something: a damaged file, no connection. Nothing of the edit was stored.

    An edit whose answer got lost on the way may be stored all the same: sent again with its id, it is made once.
    """


class NoRoom(NotStored):
    """An edit for which there is no room; once there is some, it can be made."""
