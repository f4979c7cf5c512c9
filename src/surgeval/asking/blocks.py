"""Blocks of questions through an answerer, as units of an engine run.

A unit is a block of questions in the order of their videos; a case is one question. Frames are read in one thread, in
order, while up to `concurrency` questions wait for a model. Each answer is on disk, as a line of the folder's
`answers/WORKER.jsonl` with the record of what was shown, before it becomes a case. A stopped run therefore asks again
only what was in flight, and `run.json` vouches for the model and the questions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic

from surgeval.asking.answerers import Answered, Answerer, Batching, ShownFrame, Unanswered
from surgeval.asking.pictures import shown_record
from surgeval.asking.question import Asked, Question
from surgeval.engine import Unit
from surgeval.errors import DataError, RunStopped, SurgevalError, printable
from surgeval.files import AnswerLog
from surgeval.progress import advance
from surgeval.qa import ReplyLine, open_replies, run_in_threads
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

    `folder` is that of the run; answers that cost time or money are stored in it. A case of a question that was shown
    frames records them under `shown`. Up to `concurrency` questions are asked at a time: in one batch where the model
    takes them so, else from as many threads.

    >>> from surgeval.asking import Oracle
    >>> from surgeval.records import VqaQuestion
    >>> asked = {"q": VqaQuestion("q", "v", 0, 1, "", "Is a clip visible?", "1a", "binary", "Yes")}
    >>> Asking(Oracle(), asked, Path("runs/oracle"))(["q"])[0].values["content"]
    'Yes'
    """

    def __init__(
        self,
        answerer: Answerer[Question],
        questions: Mapping[str, Question],
        folder: str | Path,
        *,
        look: Callable[[Question], Sequence[ShownFrame]] | None = None,
        concurrency: int = 8,
    ) -> None:
        self._answerer, self._questions, self._folder = answerer, questions, Path(folder)
        self._look, self._concurrency = look, concurrency
        self._batch = concurrency if isinstance(answerer, Batching) and answerer.batches else 1
        self._log: AnswerLog[ReplyLine] | None = None

    def setup(self) -> None:
        """Read the stored answers, if answers are worth storing; the run's folder exists by now."""
        if self._answerer.costly:
            self._log = open_replies(self._folder, "answer")

    def close(self) -> None:
        """Close the file of answers."""
        if self._log is not None:
            self._log.close()

    def __call__(self, payload: Any, /) -> list[Case]:
        """The cases of one block, in its order."""
        questions = [self._questions[qid] for qid in payload]
        if not self._answerer.costly:
            return [self._settled(question, self._answer(question, ()), None) for question in questions]
        cases: dict[str, Case] = {}
        threads = self._concurrency if self._batch == 1 else 1
        calls = (partial(self._asked, batch) for batch in self._unanswered(questions, cases))
        cases |= {case.id: case for done in run_in_threads(calls, threads) for case in done}
        return [cases[question.id] for question in questions]

    def _unanswered(
        self, questions: Sequence[Question], cases: dict[str, Case]
    ) -> Iterator[list[_ShownQuestion[Question]]]:
        """Batches of what must be asked, each with its frames; what is stored or cannot be shown is a case at once."""
        batch: list[_ShownQuestion[Question]] = []
        if self._log is not None:
            self._log.refresh()
        for question in questions:
            stored = self._log.find(question.id) if self._log is not None else None
            if stored is not None:
                cases[question.id] = self._settled(question, _answered(stored), stored.shown)
                continue
            try:
                batch.append(_ShownQuestion(question, self._look(question) if self._look is not None else ()))
            except DataError as error:
                cases[question.id] = self._settled(question, Unanswered(str(error), "media_error"), None)
            if len(batch) == self._batch:
                yield batch
                batch = []
        if batch:
            yield batch

    def _asked(self, batch: Sequence[_ShownQuestion[Question]]) -> list[Case]:
        return [self._stored(seen, answer) for seen, answer in zip(batch, self._answers(batch), strict=True)]

    def _answers(self, batch: Sequence[_ShownQuestion[Question]]) -> Sequence[Answered | Unanswered]:
        if self._batch > 1 and isinstance(self._answerer, Batching):
            try:
                answers = self._answerer.answer_all([seen.question for seen in batch], [seen.frames for seen in batch])
            except RunStopped:
                raise
            except Exception:  # noqa: BLE001 - whose fault it was shows when each is asked alone
                answers = ()
            if len(answers) == len(batch):
                return answers
        return [self._answer(seen.question, seen.frames) for seen in batch]

    def _answer(self, question: Question, frames: Sequence[ShownFrame]) -> Answered | Unanswered:
        try:
            return self._answerer.answer(question, frames)
        except Unanswered as error:
            return error
        except RunStopped:
            raise
        except Exception as error:  # noqa: BLE001 - its fault costs its question, not the block
            return _fault(error)

    def _stored(self, seen: _ShownQuestion[Question], answer: Answered | Unanswered) -> Case:
        shown = shown_record(seen.frames) if self._look is not None else None
        try:
            if isinstance(answer, Answered) and self._log is not None:
                self._log.put(
                    seen.question.id, text=answer.content, latency=answer.latency, requests=answer.requests,
                    prompt_tokens=answer.prompt_tokens, completion_tokens=answer.completion_tokens,
                    finish=answer.finish, model=answer.model, shown=shown,
                )  # fmt: skip
        except RunStopped:  # no answer can be stored
            raise
        except SurgevalError as error:
            answer = _fault(error)
        return self._settled(seen.question, answer, shown)

    def _settled(self, question: Question, answer: Answered | Unanswered, shown: str | None) -> Case:
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
class _ShownQuestion(Generic[Question]):
    """A question with the frames that it is shown with."""

    question: Question
    frames: Sequence[ShownFrame]


def _answered(line: ReplyLine) -> Answered:
    return Answered(
        line.text, line.latency, line.requests, line.prompt_tokens, line.completion_tokens, line.model, line.finish
    )


def _fault(error: Exception) -> Unanswered:
    return Unanswered(f"{type(error).__name__}: {error!s:.300}")
