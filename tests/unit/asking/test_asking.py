"""Asking serves more than one kind of question: here a multiple choice without format, capability or window."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.unit.models.wire import Wire, reply

from surgeval.asking import (
    ChatAnswerer,
    ModelAnswer,
    ModelFrame,
    QuestionWorker,
    RecordedAnswers,
    Unanswered,
    question_units,
)
from surgeval.errors import DataError, RunStopped
from surgeval.qa import Message, Price, Usage, open_replies


@dataclass(frozen=True)
class Choice:
    id: str
    video: str
    question: str
    options: tuple[str, ...]


def prompt(question: Choice, pictures: Sequence[ModelFrame]) -> Sequence[Message]:
    lines = [question.question, *question.options, f"{len(pictures)} pictures"]
    return [{"role": "user", "content": "\n".join(lines)}]


def look(question: Choice) -> tuple[ModelFrame, ...]:
    if question.video == "gone":
        raise DataError("video gone", "found no such file, expected its frames")
    return (ModelFrame(1.0, b"JPEG"),)


ASKED = {
    name: Choice(name, video, "What does the surgeon intend?", ("A) dissect", "B) clip"))
    for name, video in (("a", "v1"), ("b", "v2"), ("c", "v1"), ("d", "gone"))
}


@pytest.fixture
def wire() -> Iterator[Wire]:
    with Wire(lambda connection: connection.sendall(reply("B) clip", usage={"prompt_tokens": 50}))) as running:
        yield running


def test_a_multiple_choice_is_asked_stored_and_counted(wire: Wire, tmp_path: Path) -> None:
    answerer: ChatAnswerer[Choice] = ChatAnswerer(wire.chat(), prompt)
    worker = QuestionWorker(answerer, ASKED, tmp_path, read_frames=look)
    worker.setup()
    (unit,) = question_units(list(ASKED.values()))
    assert unit.payload == ["a", "c", "b", "d"]  # those of one video together
    cases = worker(unit.payload)
    worker.close()
    assert [(case.id, case.cluster, case.status) for case in cases] == [
        ("a", "v1", "ok"), ("c", "v1", "ok"), ("b", "v2", "ok"), ("d", "gone", "media_error"),
    ]  # fmt: skip
    content = json.loads(wire.requests[0].partition(b"\r\n\r\n")[2])["messages"][0]["content"]
    assert content.endswith("B) clip\n1 pictures")
    with open_replies(tmp_path, "answer") as replies:
        stored = [replies.find(name) for name in "abc"]
        used = sum((Usage(one.requests, one.prompt_tokens, one.completion_tokens) for one in stored if one), Usage())
    assert used == Usage(3, 150, 0)
    assert used.cost(Price(prompt=2.0, completion=8.0)) == 0.0003
    assert used.cost(None) is None


def test_a_file_of_answers_serves_any_question(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text('[{"qID": "a", "content": "A) dissect"}]')
    worker = QuestionWorker(RecordedAnswers(tmp_path / "r.json"), ASKED, tmp_path)
    assert [(case.status, case.values.get("content")) for case in worker(["a", "b"])] == [
        ("ok", "A) dissect"), ("missing", None),
    ]  # fmt: skip


class Clumsy:
    """An answerer of another package, with a fault of its own."""

    identity, uses_images, cache_answers = "clumsy", False, True

    def answer(self, question: Choice, frames: Sequence[ModelFrame] = ()) -> ModelAnswer:
        return ModelAnswer(question.options["ab".index(question.id)])


def test_the_fault_of_an_answerer_costs_its_question_alone(tmp_path: Path) -> None:
    worker = QuestionWorker(Clumsy(), ASKED, tmp_path)
    worker.setup()
    cases = worker(["a", "c", "b"])
    worker.close()
    assert [case.status for case in cases] == ["ok", "model_error", "ok"]
    assert cases[1].reason == "ValueError: substring not found"


class Boastful(Clumsy):
    """Tells a count that no table holds."""

    def answer(self, question: Choice, frames: Sequence[ModelFrame] = ()) -> ModelAnswer:
        return ModelAnswer("A", prompt_tokens=2**63 if question.id == "b" else 5)


def test_a_count_that_cannot_be_stored_costs_its_question_alone(tmp_path: Path) -> None:
    worker = QuestionWorker(Boastful(), ASKED, tmp_path)
    worker.setup()
    cases = worker(["a", "b", "c"])
    worker.close()
    assert [case.status for case in cases] == ["ok", "model_error", "ok"]
    assert "prompt_tokens: Input should be less than 9223372036854775808" in str(cases[1].reason)


def test_a_full_disk_ends_the_run_instead_of_costing_every_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    worker = QuestionWorker(Clumsy(), ASKED, tmp_path)
    worker.setup()
    monkeypatch.setattr("surgeval.files.answers.os.fsync", full)
    with pytest.raises(RunStopped, match="the reply to a could not be stored: No space left on device; free"):
        worker(["a"])
    worker.close()


class Hasty:
    """Says that it takes batches, and loses one of each."""

    identity, uses_images, cache_answers, batches = "hasty", False, True, True

    def answer(self, question: Choice, frames: Sequence[ModelFrame] = ()) -> ModelAnswer:
        return ModelAnswer("alone")

    def answer_all(
        self, questions: Sequence[Choice], frames: Sequence[Sequence[ModelFrame]]
    ) -> Sequence[ModelAnswer | Unanswered]:
        return [ModelAnswer("together")] * (len(questions) - 1 if len(questions) == 3 else len(questions))


def test_a_batch_that_comes_back_short_is_asked_one_by_one(tmp_path: Path) -> None:
    worker = QuestionWorker(Hasty(), ASKED, tmp_path, concurrency=3)
    worker.setup()
    cases = worker(["a", "b", "c", "d"])
    worker.close()
    assert [case.values["content"] for case in cases] == ["alone", "alone", "alone", "together"]
