"""Verdicts that survive: one SQLite file, keyed by everything that determines a vote.

A vote is on disk before it is counted, so a killed run asks again only what was in flight. Failures are not stored: the
next run asks them again. Threads and processes may share the file (write-ahead log, one short transaction per vote).
"""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

from surgeval.errors import DataError, RunError
from surgeval.qa.judging._vote import Vote

__all__ = ["VerdictCache"]

_SCHEMA = 1
_TABLE = """
CREATE TABLE IF NOT EXISTS votes (
    key TEXT PRIMARY KEY, judge TEXT NOT NULL, qid TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('correct', 'incorrect')),
    text TEXT, reason TEXT NOT NULL, prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL,
    stored TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))
) WITHOUT ROWID
"""


class VerdictCache:
    """The stored votes of one file, made when absent.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, VerdictCache(Path(folder) / "verdicts.sqlite") as cache:
    ...     cache.store("k", "q1", Vote("judge", "correct", text="CORRECT"))
    ...     cache.find("k").state, len(cache)
    ('correct', 1)
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._base = sqlite3.connect(self.path, timeout=60, isolation_level=None, check_same_thread=False)
            self._open()
        except sqlite3.DatabaseError as error:
            raise DataError(self.path, found=str(error), expected="a verdict cache or a place to make one") from None
        except OSError as error:
            found = error.strerror or type(error).__name__
            raise DataError(self.path, found=found, expected="a place to make a verdict cache") from None

    def _open(self) -> None:
        version = int(self._base.execute("PRAGMA user_version").fetchone()[0])
        tables = self._base.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if version not in (0, _SCHEMA) or (version == 0 and tables):
            self._base.close()
            raise DataError(self.path, found=f"a database of version {version}", expected=f"version {_SCHEMA}")
        self._base.execute("PRAGMA journal_mode = WAL")
        self._base.execute("PRAGMA synchronous = FULL")  # a paid verdict is worth one fsync
        self._base.execute("BEGIN IMMEDIATE")
        self._base.execute(_TABLE)
        self._base.execute(f"PRAGMA user_version = {_SCHEMA}")
        self._base.execute("COMMIT")

    def __reduce__(self) -> tuple[type[VerdictCache], tuple[Path]]:
        return VerdictCache, (self.path,)  # another process opens its own connection

    def find(self, key: str) -> Vote | None:
        """The stored vote, marked as cached and costing nothing."""
        columns = "judge, state, text, reason, prompt_tokens, completion_tokens"
        try:
            with self._lock:
                row = self._base.execute(f"SELECT {columns} FROM votes WHERE key = ?", (key,)).fetchone()  # noqa: S608
        except sqlite3.Error as error:
            raise RunError(f"{self.path}: a stored verdict could not be read: {error}") from None
        if row is None:
            return None
        judge, state, text, reason, prompt, completion = row
        return Vote(judge, state, text, reason, 0, prompt, completion, cached=True)

    def store(self, key: str, qid: str, vote: Vote) -> None:
        """Keep a valid vote; on disk when this returns. Of two racing votes the first stays."""
        if not vote.valid:
            raise ValueError(f"only a verdict can be stored, not {vote.state}")
        text = None if vote.text is None else _storable(vote.text)
        row = (
            key, _storable(vote.judge), _storable(qid), vote.state, text, _storable(vote.reason),
            vote.prompt_tokens, vote.completion_tokens,
        )  # fmt: skip
        try:
            with self._lock:
                self._base.execute(
                    "INSERT OR IGNORE INTO votes (key, judge, qid, state, text, reason, prompt_tokens,"
                    " completion_tokens) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    row,
                )
        except sqlite3.Error as error:
            raise RunError(f"{self.path}: a verdict could not be stored: {error}") from None

    def __len__(self) -> int:
        with self._lock:
            return int(self._base.execute("SELECT count(*) FROM votes").fetchone()[0])

    def close(self) -> None:
        """Close the file; what was stored stays."""
        with self._lock:
            self._base.close()

    def __enter__(self) -> VerdictCache:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _storable(text: str) -> str:
    """Without lone surrogates, which JSON can carry and SQLite cannot."""
    return text.encode(errors="replace").decode()
