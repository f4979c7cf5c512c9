"""Ask questions in an engine run: a unit is a block of questions, a case is one question.

One thread reads frames in the order of the questions, while up to `concurrency` questions wait for a model. Each answer
is written to the folder's `answers/WORKER.jsonl`, with a description of its frames, before it becomes a case. A stopped
run therefore asks only those questions again that were in flight. `run.json` records the model and the questions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic

from surgeval.asking.answerer import (
    Answerer,
    AnyQuestion,
    BatchAnswerer,
    ModelAnswer,
    ModelFrame,
    Question,
    Unanswered,
)
from surgeval.asking.frames import describe_frames
from surgeval.engine import Unit
from surgeval.errors import DataError, RunStopped, SurgevalError, printable
from surgeval.files import AnswerLog
from surgeval.progress import advance
from surgeval.qa import ReplyLine, open_replies, run_in_threads
from surgeval.records import Case

__all__ = ["BLOCK", "QuestionWorker", "question_units"]

BLOCK = 32  # questions of a unit, and so the most that can be asked at a time


def question_units(questions: Sequence[AnyQuestion]) -> tuple[Unit, ...]:
    """Divide questions into units of `BLOCK`, those of one video together.

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


class QuestionWorker(Generic[Question]):
    """The worker of a run: takes ids of questions and returns cases. `read_frames` gives
    a question's frames (None: no frames).

    `folder` is that of the run; answers that cost time or money are stored in it. The case of a question with frames
    describes them under `shown`. Up to `concurrency` questions are asked at a time: in one batch if the model takes
    batches, else from as many threads.

    >>> from surgeval.asking import Oracle
    >>> from surgeval.records import VqaQuestion
    >>> asked = {"q": VqaQuestion("q", "v", 0, 1, "", "Is a clip visible?", "1a", "binary", "Yes")}
    >>> QuestionWorker(Oracle(), asked, Path("runs/oracle"))(["q"])[0].values["content"]
    'Yes'
    """

    def __init__(
        self,
        answerer: Answerer[Question],
        questions: Mapping[str, Question],
        folder: str | Path,
        *,
        read_frames: Callable[[Question], Sequence[ModelFrame]] | None = None,
        concurrency: int = 8,
    ) -> None:
        self._answerer, self._questions, self._folder = answerer, questions, Path(folder)
        self._read_frames, self._concurrency = read_frames, concurrency
        self._batch = concurrency if isinstance(answerer, BatchAnswerer) and answerer.batches else 1
        self._log: AnswerLog[ReplyLine] | None = None

    def setup(self) -> None:
        """Open the stored answers, if answers are stored. The run's folder must exist."""
        if self._answerer.cache_answers:
            self._log = open_replies(self._folder, "answer")

    def close(self) -> None:
        """Close the file of answers."""
        if self._log is not None:
            self._log.close()

    def __call__(self, payload: Any, /) -> list[Case]:
        """Ask the questions of one unit and return their cases in order."""
        questions = [self._questions[qid] for qid in payload]
        if not self._answerer.cache_answers:
            return [self._to_case(question, self._answer_one(question, ()), None) for question in questions]
        cases: dict[str, Case] = {}
        threads = self._concurrency if self._batch == 1 else 1
        calls = (partial(self._ask_batch, batch) for batch in self._batches_to_ask(questions, cases))
        cases |= {case.id: case for done in run_in_threads(calls, threads) for case in done}
        return [cases[question.id] for question in questions]

    def _batches_to_ask(
        self, questions: Sequence[Question], cases: dict[str, Case]
    ) -> Iterator[list[_QuestionWithFrames[Question]]]:
        """Yield batches to ask, each with its frames. Stored answers and unreadable frames become cases at once."""
        batch: list[_QuestionWithFrames[Question]] = []
        if self._log is not None:
            self._log.refresh()
        for question in questions:
            stored = self._log.find(question.id) if self._log is not None else None
            if stored is not None:
                cases[question.id] = self._to_case(question, _from_line(stored), stored.shown)
                continue
            try:
                batch.append(
                    _QuestionWithFrames(question, self._read_frames(question) if self._read_frames is not None else ())
                )
            except DataError as error:
                cases[question.id] = self._to_case(question, Unanswered(str(error), "media_error"), None)
            if len(batch) == self._batch:
                yield batch
                batch = []
        if batch:
            yield batch

    def _ask_batch(self, batch: Sequence[_QuestionWithFrames[Question]]) -> list[Case]:
        return [self._store_answer(pair, answer) for pair, answer in zip(batch, self._answer_batch(batch), strict=True)]

    def _answer_batch(self, batch: Sequence[_QuestionWithFrames[Question]]) -> Sequence[ModelAnswer | Unanswered]:
        if self._batch > 1 and isinstance(self._answerer, BatchAnswerer):
            try:
                answers = self._answerer.answer_all([pair.question for pair in batch], [pair.frames for pair in batch])
            except RunStopped:
                raise
            except Exception:  # noqa: BLE001 - each question is asked alone next, which shows which one failed
                answers = ()
            if len(answers) == len(batch):
                return answers
        return [self._answer_one(pair.question, pair.frames) for pair in batch]

    def _answer_one(self, question: Question, frames: Sequence[ModelFrame]) -> ModelAnswer | Unanswered:
        try:
            return self._answerer.answer(question, frames)
        except Unanswered as error:
            return error
        except RunStopped:
            raise
        except Exception as error:  # noqa: BLE001 - a fault fails its question, not the block
            return _describe_fault(error)

    def _store_answer(self, pair: _QuestionWithFrames[Question], answer: ModelAnswer | Unanswered) -> Case:
        shown = describe_frames(pair.frames) if self._read_frames is not None else None
        try:
            if isinstance(answer, ModelAnswer) and self._log is not None:
                self._log.put(
                    pair.question.id, text=answer.content, latency=answer.latency, requests=answer.requests,
                    prompt_tokens=answer.prompt_tokens, completion_tokens=answer.completion_tokens,
                    finish=answer.finish, model=answer.model, shown=shown,
                )  # fmt: skip
        except RunStopped:  # nothing can be stored
            raise
        except SurgevalError as error:
            answer = _describe_fault(error)
        return self._to_case(pair.question, answer, shown)

    def _to_case(self, question: Question, answer: ModelAnswer | Unanswered, shown: str | None) -> Case:
        advance("questions")
        if isinstance(answer, Unanswered):
            return Case(question.id, question.video, answer.status, printable(str(answer)))
        values: dict[str, object] = {
            "content": printable(answer.content), "latency": answer.latency, "requests": answer.requests,
            "prompt_tokens": answer.prompt_tokens, "completion_tokens": answer.completion_tokens,
            "answered_by": answer.model,
        }  # fmt: skip
        if shown is not None:
            values["shown"] = shown
        return Case(question.id, question.video, values=values)


@dataclass(frozen=True)
class _QuestionWithFrames(Generic[Question]):
    """A question with the frames that a model gets with it."""

    question: Question
    frames: Sequence[ModelFrame]


def _from_line(line: ReplyLine) -> ModelAnswer:
    return ModelAnswer(
        line.text, line.latency, line.requests, line.prompt_tokens, line.completion_tokens, line.model, line.finish
    )


def _describe_fault(error: Exception) -> Unanswered:
    return Unanswered(f"{type(error).__name__}: {error!s:.300}")
