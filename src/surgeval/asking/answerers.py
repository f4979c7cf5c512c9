"""Whoever answers questions: one small interface for models, reference rows and files.

An answerer either answers or raises `Unanswered`; it never gives an empty text in place of a failure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from surgeval.asking.question import Question
from surgeval.errors import SurgevalError
from surgeval.qa import Finish

__all__ = ["Answered", "Answerer", "Batching", "ShownFrame", "Unanswered"]


@dataclass(frozen=True, slots=True)
class ShownFrame:
    """A frame as a model is shown it: when in the video (seconds, None where nobody knows), its JPEG, number and size.

    >>> ShownFrame(2.5, b"JPEG").time
    2.5
    """

    time: float | None
    jpeg: bytes
    frame: int = 0
    width: int = 0
    height: int = 0


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer. `latency` is that of the request that succeeded; tokens and requests are 0 where nothing is spent.

    `model` is the name under which a server answered; "" where it gave none. `finish` says why the reply is not
    complete, as that of `qa.chat.Reply`.

    >>> Answered("a clip", latency=0.5, requests=1).content
    'a clip'
    """

    content: str
    latency: float | None = None
    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    model: str = ""
    finish: Finish = ""


class Unanswered(SurgevalError):
    """No answer: `model_error` (a model that failed, to be asked again) or `missing` (a file without one).

    >>> Unanswered("the reply has no text").status
    'model_error'
    """

    def __init__(self, reason: str, status: str = "model_error") -> None:
        super().__init__(reason)
        self.status = status


class Answerer(Protocol[Question]):
    """Answers one question at a time, from several threads; only `Oracle` may read the question's reference."""

    @property
    def identity(self) -> str:
        """Everything that determines the answers: a run under another identity is another run."""

    @property
    def looks(self) -> bool:
        """Whether it is shown frames."""

    @property
    def costly(self) -> bool:
        """Whether an answer costs time or money, so that each is stored at once and never asked for twice."""

    def answer(self, question: Question, pictures: Sequence[ShownFrame] = ()) -> Answered:
        """The answer, or `Unanswered`."""


@runtime_checkable
class Batching(Protocol[Question]):
    """An answerer that may be quicker with several questions at once."""

    @property
    def batches(self) -> bool:
        """Whether it is; if not, it is asked one question at a time from several threads."""

    def answer_all(
        self, questions: Sequence[Question], pictures: Sequence[Sequence[ShownFrame]]
    ) -> Sequence[Answered | Unanswered]:
        """An answer to each, or why there is none; one that fails leaves the others alone."""
