"""Blocks of questions through an answerer, as units of an engine run.

A unit is a block of questions in the order of their videos; a case is one question. Frames are read in one thread, in
order, while up to `concurrency` questions wait for a model. What a model answered is stored before the block is done.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from surgeval.asking._answerers import Answered, Answerer, ShownFrame, Unanswered
from surgeval.asking._media import Media, Shown, pictures
from surgeval.asking._store import AnswerStore
from surgeval.engine import Unit
from surgeval.errors import DataError, printable
from surgeval.records import Case, VqaQuestion

__all__ = ["BLOCK", "Asking", "question_units"]

BLOCK = 32


def question_units(questions: Sequence[VqaQuestion]) -> tuple[Unit, ...]:
    """Blocks of questions, those of one video together."""
    first: dict[str, int] = {}
    for number, question in enumerate(questions):
        first.setdefault(question.video, number)
    ordered = sorted(questions, key=lambda question: first[question.video])
    units = []
    for start in range(0, len(ordered), BLOCK):
        block = ordered[start : start + BLOCK]
        cases = tuple((question.id, question.video) for question in block)
        units.append(Unit(f"questions {start + 1} to {start + len(block)}", [q.id for q in block], cases))
    return tuple(units)


class Asking:
    """The worker: question ids in, cases out."""

    def __init__(
        self,
        answerer: Answerer,
        questions: Mapping[str, VqaQuestion],
        store: Path,
        *,
        media: Media | None = None,
        shown: Shown | None = None,
        concurrency: int = 8,
    ) -> None:
        self._answerer, self._questions, self._path = answerer, questions, store
        self._media, self._shown, self._concurrency = media, shown or Shown(), concurrency
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
            return [self._asked(question, ()) for question in questions]
        with ThreadPoolExecutor(self._concurrency, thread_name_prefix="answer") as pool:
            try:
                begun = [self._begin(question, pool) for question in questions]
                return [one.result() if isinstance(one, Future) else one for one in begun]
            except BaseException:
                pool.shutdown(cancel_futures=True)  # what is in flight ends by itself and is stored
                raise

    def _begin(self, question: VqaQuestion, pool: ThreadPoolExecutor) -> Case | Future[Case]:
        stored = self._store.find(question.id) if self._store is not None else None
        if stored is not None:
            return _case(question, stored)
        try:
            seen = pictures(self._media, question, self._shown) if self._media is not None else ()
        except DataError as error:
            return _failed(question, "media_error", str(error))
        return pool.submit(self._asked, question, seen)

    def _asked(self, question: VqaQuestion, seen: Sequence[ShownFrame]) -> Case:
        try:
            answered = self._answerer.answer(question, seen)
        except Unanswered as error:
            return _failed(question, error.status, str(error))
        except Exception as error:  # noqa: BLE001 - its fault costs its question, not the block
            return _failed(question, "model_error", f"{type(error).__name__}: {error!s:.300}")
        if self._store is not None:
            self._store.put(question.id, answered)
        return _case(question, answered)


def _case(question: VqaQuestion, answered: Answered) -> Case:
    values = {
        "content": printable(answered.content), "latency": answered.latency, "requests": answered.requests,
        "prompt_tokens": answered.prompt_tokens, "completion_tokens": answered.completion_tokens,
    }  # fmt: skip
    return Case(question.id, question.video, values=values)


def _failed(question: VqaQuestion, status: str, reason: str) -> Case:
    return Case(question.id, question.video, status, printable(reason))
