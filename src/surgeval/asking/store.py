"""Answers that were paid for: a row per question in the run's folder, on disk before it counts.

The run's part is written per block of questions; this file keeps what came in between, so that a killed run asks again
only what was in flight, and trying again only what failed. The folder's run.json vouches for model and data.
"""

from __future__ import annotations

from dataclasses import astuple

from surgeval.asking.answerers import Answered
from surgeval.files import Column, Store

__all__ = ["AnswerStore", "ShownStore"]


class AnswerStore(Store):
    """The stored answers of one run; threads may share it.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder, AnswerStore(Path(folder) / "answers.sqlite") as store:
    ...     store.store("q1", Answered("yes", 0.5))
    ...     store.find("q1").content, store.find("q2")
    ('yes', None)
    """

    title, table, key = "the stored answers of a run", "answers", "question"
    columns = (
        Column("content", str), Column("latency", float, null=True), Column("requests", int),
        Column("prompt_tokens", int), Column("completion_tokens", int), Column("model", str),
    )  # fmt: skip
    layout = """
CREATE TABLE answers (
    question TEXT PRIMARY KEY, content TEXT NOT NULL, latency REAL,
    requests INTEGER NOT NULL, prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, model TEXT NOT NULL
) WITHOUT ROWID
"""

    def find(self, question: str) -> Answered | None:
        """The stored answer to a question."""
        row = self.row(question)
        return None if row is None else Answered(*row)

    def store(self, question: str, answered: Answered) -> None:
        """Keep an answer; on disk when this returns."""
        self.put(question, astuple(answered), replace=True)


class ShownStore(Store):
    """What each question was shown (`shown_record`), beside the answers; written before the answer is.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder, ShownStore(Path(folder) / "shown.sqlite") as store:
    ...     store.put("q1", ("[]",))
    ...     store.row("q1")
    ('[]',)
    """

    title, table, key = "what the questions of a run were shown", "shown", "question"
    columns = (Column("frames", str),)
    layout = "CREATE TABLE shown (question TEXT PRIMARY KEY, frames TEXT NOT NULL) WITHOUT ROWID"
