"""Verdicts that survive: stored under everything that determines a vote, on disk before they are counted.

A killed run asks again only what was in flight. Failures are not stored: the next run asks them again.
"""

from __future__ import annotations

from surgeval.files import Column, Store
from surgeval.qa.judging.vote import Vote

__all__ = ["VerdictCache"]


class VerdictCache(Store):
    """The stored votes of one file, made when absent; threads and processes may share it.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder, VerdictCache(Path(folder) / "verdicts.sqlite") as cache:
    ...     cache.store("k", "q1", Vote("judge", "correct", text="CORRECT"))
    ...     cache.find("k").state, len(cache)
    ('correct', 1)
    """

    title, table, key = "a verdict cache", "votes", "key"
    columns = (
        Column("judge", str), Column("qid", str), Column("state", str, only=("correct", "incorrect")),
        Column("text", str, null=True), Column("reason", str), Column("prompt_tokens", int),
        Column("completion_tokens", int), Column("model", str),
    )  # fmt: skip
    layout = """
CREATE TABLE votes (
    key TEXT PRIMARY KEY, judge TEXT NOT NULL, qid TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('correct', 'incorrect')),
    text TEXT, reason TEXT NOT NULL, prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL,
    model TEXT NOT NULL,
    stored TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))
) WITHOUT ROWID
"""

    def find(self, key: str) -> Vote | None:
        """The stored vote, marked as cached and costing nothing."""
        row = self.row(key)
        if row is None:
            return None
        judge, _, state, text, reason, prompt, completion, model = row
        return Vote(judge, state, text, reason, 0, prompt, completion, cached=True, model=model)

    def store(self, key: str, qid: str, vote: Vote) -> None:
        """Keep a valid vote; on disk when this returns. Of two racing votes the first stays."""
        if not vote.valid:
            raise ValueError(f"only a verdict can be stored, not {vote.state}")
        tokens = vote.prompt_tokens, vote.completion_tokens
        self.put(key, (vote.judge, qid, vote.state, vote.text, vote.reason, *tokens, vote.model))
