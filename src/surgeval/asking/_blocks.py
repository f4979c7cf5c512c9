"""Blocks of questions through an answerer, as units of an engine run.

A unit is a block of questions in the order of their videos; a case is one question. Frames are read in one thread, in
order, while up to `concurrency` questions wait for a model. What a model answered is stored before the block is done.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Generic

from surgeval.asking._answerers import Answered, Answerer, ShownFrame, Unanswered
from surgeval.asking._question import Asked, Question
from surgeval.asking._store import AnswerStore
from surgeval.engine import Unit
from surgeval.errors import DataError, printable
from surgeval.progress import advance
from surgeval.records import Case

__all__ = ["BLOCK", "Asking", "question_units"]

BLOCK = 32


def question_units(questions: Sequence[Asked]) -> tuple[Unit, ...]:
    """Blocks of questions, those of one video together.

    >>> from surgeval.records import VqaQuestion
    >>> asked = [VqaQuestion(f"q{n}", f"v{n % 2}", 0, 1, "", "?", "1a", "binary", "Yes") for n in range(4)]
    >>> [unit.payload for unit in question_units(asked)]
    [['q0', 'q2', 'q1', 'q3']]
    """
    first: dict[str, int] = {}
    for number, question in enumerate(questions):
        first.setdefault(question.video, number)
    ordered = sorted(questions, key=lambda question: first[question.video])
    units = []
    for start in range(0, len(ordered), BLOCK):
        block = ordered[start : start + BLOCK]
        cases = tuple((question.id, question.video) for question in block)
        units.append(
            Unit(
                f"questions {start + 1} to {start + len(block)}",
                [q.id for q in block],
                cases,
                {"questions": len(block)},
            )
        )
    return tuple(units)


class Asking(Generic[Question]):
    """The worker: question ids in, cases out. `look` gives the frames that a question is shown with (None: none).

    >>> from surgeval.asking import Oracle
    >>> from surgeval.records import VqaQuestion
    >>> asked = {"q": VqaQuestion("q", "v", 0, 1, "", "Is a clip visible?", "1a", "binary", "Yes")}
    >>> Asking(Oracle(), asked, Path("answers.sqlite"))(["q"])[0].values["content"]
    'Yes'
    """

    def __init__(
        self,
        answerer: Answerer[Question],
        questions: Mapping[str, Question],
        store: Path,
        *,
        look: Callable[[Question], Sequence[ShownFrame]] | None = None,
        concurrency: int = 8,
    ) -> None:
        self._answerer, self._questions, self._path = answerer, questions, store
        self._look, self._concurrency = look, concurrency
        self._store: AnswerStore | None = None

    def setup(self) -> None:
        """Open the store, when answers are worth one; the run's folder exists by now."""
        if self._answerer.costly:
            self._store = AnswerStore(self._path)

    def close(self) -> None:
        """Close the store."""
        if self._store is not None:
            self._store.close()

    def __call__(self, payload: Any, /) -> list[Case]:
        """The cases of one block, in its order."""
        questions = [self._questions[qid] for qid in payload]
        if not self._answerer.costly:
            return [self._counted(question, ()) for question in questions]
        with ThreadPoolExecutor(self._concurrency, thread_name_prefix="answer") as pool:
            try:
                begun = [self._begin(question, pool) for question in questions]
                return [one.result() if isinstance(one, Future) else one for one in begun]
            except BaseException:
                pool.shutdown(cancel_futures=True)  # what is in flight ends by itself and is stored
                raise

    def _begin(self, question: Question, pool: ThreadPoolExecutor) -> Case | Future[Case]:
        stored = self._store.find(question.id) if self._store is not None else None
        if stored is not None:
            advance("questions")
            return _case(question, stored)
        try:
            seen = self._look(question) if self._look is not None else ()
        except DataError as error:
            advance("questions")
            return _failed(question, "media_error", str(error))
        return pool.submit(self._counted, question, seen)

    def _counted(self, question: Question, seen: Sequence[ShownFrame]) -> Case:
        case = self._asked(question, seen)
        advance("questions")
        return case

    def _asked(self, question: Question, seen: Sequence[ShownFrame]) -> Case:
        try:
            answered = self._answerer.answer(question, seen)
            if self._store is not None:
                self._store.store(question.id, answered)
        except Unanswered as error:
            return _failed(question, error.status, str(error))
        except Exception as error:  # noqa: BLE001 - its fault costs its question, not the block
            return _failed(question, "model_error", f"{type(error).__name__}: {error!s:.300}")
        return _case(question, answered)


def _case(question: Asked, answered: Answered) -> Case:
    values = {
        "content": printable(answered.content), "latency": answered.latency, "requests": answered.requests,
        "prompt_tokens": answered.prompt_tokens, "completion_tokens": answered.completion_tokens,
    }  # fmt: skip
    return Case(question.id, question.video, values=values)


def _failed(question: Asked, status: str, reason: str) -> Case:
    return Case(question.id, question.video, status, printable(reason))
