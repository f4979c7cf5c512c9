"""Verdicts that are stored before they count, under everything that determines a vote.

Stopped runs ask again only what was in flight. Failures are not stored, so the next run asks them again.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Self

from surgeval.qa.judging.vote import Vote

if TYPE_CHECKING:
    from surgeval.files.answers import AnswerLog
    from surgeval.qa.answer_lines import VerdictLine

__all__ = ["VerdictCache"]


class VerdictCache:
    """The stored votes of a folder: lines of its `answers/*.jsonl`. Threads, processes and hosts may share it.

    A folder of verdicts that several runs share uses the same files as a run's own folder, and not one database: two
    runs may be scored with it at the same time, on different hosts.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, VerdictCache(folder) as cache:
    ...     cache.store("k", "q1", Vote("judge", "correct", text="CORRECT"))
    ...     cache.find("k").state, len(cache)
    ('correct', 1)
    """

    def __init__(self, folder: str | Path) -> None:
        from surgeval.qa.answer_lines import open_verdicts

        self._log: AnswerLog[VerdictLine] = open_verdicts(folder)

    def find(self, key: str) -> Vote | None:
        """Return the stored vote, marked as cached and without requests."""
        line = self._log.find(key)
        if line is None:
            return None
        return Vote(
            line.judge, line.state, line.text, line.reason, 0, line.prompt_tokens, line.completion_tokens,
            cached=True, model=line.model,
        )  # fmt: skip

    def store(self, key: str, qid: str, vote: Vote) -> None:
        """Store a valid vote; it is on disk when this returns."""
        if not vote.valid:
            raise ValueError(f"only a verdict can be stored, not {vote.state}")
        self._log.put(
            key, judge=vote.judge, question=qid, state=vote.state, text=vote.text, reason=vote.reason,
            prompt_tokens=vote.prompt_tokens, completion_tokens=vote.completion_tokens, model=vote.model,
        )  # fmt: skip

    def refresh(self) -> None:
        """Read the verdicts that other processes have stored since."""
        self._log.refresh()

    def close(self) -> None:
        """Close the file that this process writes."""
        self._log.close()

    def __len__(self) -> int:
        return len(self._log)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
