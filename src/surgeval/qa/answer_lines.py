"""What the lines of `answers/WORKER.jsonl` hold: replies of chat models, and verdicts of judges.

Import this module where a log is opened: it loads pydantic.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, FiniteFloat

from surgeval.files.answers import AnswerLine, AnswerLog
from surgeval.qa.chat import Finish

__all__ = ["ReplyKind", "ReplyLine", "VerdictLine", "open_replies", "open_verdicts"]

# An answer to a question, a choice read out of an answer, or a reply of a model that writes or probes questions.
ReplyKind: TypeAlias = Literal["answer", "reading", "reply"]
_Count: TypeAlias = Annotated[int, Field(ge=0, lt=2**63)]


class ReplyLine(AnswerLine):
    """A reply of a chat model.

    `latency` is that of the request that succeeded, in seconds; `model` the name under which the server answered;
    `finish` says why the text is not complete; `shown` is the record of the frames that were sent, as JSON.
    """

    text: str
    latency: FiniteFloat | None = None
    requests: _Count = 0
    prompt_tokens: _Count = 0
    completion_tokens: _Count = 0
    finish: Finish = ""
    model: str = ""
    shown: str | None = None


class VerdictLine(AnswerLine):
    """A valid vote of a judge on the answer to a question; `text` is the judge's reply."""

    judge: str
    question: str
    state: Literal["correct", "incorrect"]
    text: str | None = None
    reason: str = ""
    prompt_tokens: _Count = 0
    completion_tokens: _Count = 0
    model: str = ""


def open_replies(folder: str | Path, kind: ReplyKind) -> AnswerLog[ReplyLine]:
    """Open the stored replies of one kind in a folder.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, open_replies(folder, "answer") as replies:
    ...     replies.put("q1", text="a clip", latency=0.5, requests=1, model="vlm")
    ...     replies.find("q1").text
    'a clip'
    """
    return AnswerLog(folder, kind, ReplyLine)


def open_verdicts(folder: str | Path) -> AnswerLog[VerdictLine]:
    """Open the stored verdicts of judges in a folder.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, open_verdicts(folder) as verdicts:
    ...     len(verdicts)
    0
    """
    return AnswerLog(folder, "verdict", VerdictLine)
