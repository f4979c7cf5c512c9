"""Answers that were paid for: one SQLite file in the run's folder, a row per question, on disk before it counts.

The run's part is written per block of questions; this file keeps what came in between, so that a killed run asks again
only what was in flight and a retry only what failed. The folder's run.json vouches for model and data.
"""

from __future__ import annotations

import sqlite3
import threading
from dataclasses import astuple
from pathlib import Path

from surgeval.asking._answerers import Answered
from surgeval.errors import DataError, RunError

__all__ = ["AnswerStore"]

_SCHEMA = 1
_TABLE = """
CREATE TABLE IF NOT EXISTS answers (
    question TEXT PRIMARY KEY, content TEXT NOT NULL, latency REAL,
    requests INTEGER NOT NULL, prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL
) WITHOUT ROWID
"""


class AnswerStore:
    """The stored answers of one run; threads may share it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = AnswerStore(Path(folder) / "answers.sqlite")
    ...     store.put("q1", Answered("yes", 0.5))
    ...     found, absent = store.find("q1"), store.find("q2")
    ...     store.close()
    >>> found.content, absent
    ('yes', None)
    """

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, threading.Lock()
        try:
            self._base = sqlite3.connect(path, timeout=60, isolation_level=None, check_same_thread=False)
            version = int(self._base.execute("PRAGMA user_version").fetchone()[0])
            if version not in (0, _SCHEMA):
                self._base.close()
                raise DataError(path, found=f"version {version}", expected=f"version {_SCHEMA}")
            self._base.execute("PRAGMA journal_mode = WAL")
            self._base.execute("PRAGMA synchronous = FULL")  # an answer is worth one fsync
            self._base.execute(_TABLE)
            self._base.execute(f"PRAGMA user_version = {_SCHEMA}")
        except sqlite3.Error as error:
            raise DataError(path, found=str(error), expected="the stored answers of a run") from None

    def find(self, question: str) -> Answered | None:
        """The stored answer to a question."""
        columns = "content, latency, requests, prompt_tokens, completion_tokens"
        try:
            with self._lock:
                query = f"SELECT {columns} FROM answers WHERE question = ?"  # noqa: S608 - constants
                row = self._base.execute(query, (question,)).fetchone()
        except sqlite3.Error as error:
            raise RunError(f"{self._path}: a stored answer could not be read: {error}") from None
        return None if row is None else Answered(*row)

    def put(self, question: str, answered: Answered) -> None:
        """Keep an answer; on disk when this returns."""
        try:
            with self._lock:
                self._base.execute(
                    "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?)", (question, *astuple(answered))
                )
        except sqlite3.Error as error:
            raise RunError(f"{self._path}: an answer could not be stored: {error}") from None

    def close(self) -> None:
        """Close the file; what was stored stays."""
        with self._lock:
            self._base.close()
