"""A chat model as answerer: the reply is the answer, and no reply is never an answer.

After `give_up_after` questions in a row without a reply the server counts as down and the rest fail at once, so that a
dead server costs a minute and not a time-out per question; a later try of the run asks them again. A reply without an
answer (withheld, cut off, no text) fails alone: the server is there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeAlias

from surgeval.asking.answerers import Answered, ShownFrame, Unanswered
from surgeval.asking.question import Question
from surgeval.errors import printable
from surgeval.qa import FILTERED, BatchChat, ChatError, FailureCounter, Message, Reply, SeeingChat, remove_reasoning

__all__ = ["ChatAnswerer", "Prompt", "final_text"]

Prompt: TypeAlias = Callable[[Question, Sequence[ShownFrame]], Sequence[Message]]


class ChatAnswerer(Generic[Question]):
    """Asks a chat model; safe to call from many threads when the model is. `prompt` puts a question into messages.

    >>> from surgeval.qa import Reply
    >>> from surgeval.records import VqaQuestion
    >>> class Polite:
    ...     identity, sees = "polite", False
    ...     def complete(self, messages):
    ...         return Reply(f"<think>hm</think> yes to {messages[0]['content']!r}", 12, 3)
    >>> answerer = ChatAnswerer(Polite(), lambda question, pictures: [{"role": "user", "content": question.text}])
    >>> answerer.answer(VqaQuestion("q", "v", 0, 1, "", "Is a clip visible?", "1a", "binary", "Yes")).content
    "yes to 'Is a clip visible?'"
    """

    costly = True

    def __init__(self, chat: SeeingChat, prompt: Prompt[Question], *, give_up_after: int = 20) -> None:
        self._chat, self._prompt, self._failures = chat, prompt, FailureCounter(give_up_after)
        self.identity, self.looks = chat.identity, chat.sees
        self.batches = isinstance(chat, BatchChat)

    def answer(self, question: Question, pictures: Sequence[ShownFrame] = ()) -> Answered:
        """The model's reply without its reasoning."""
        self._check()
        reply: Reply | ChatError
        try:
            reply = self._chat.complete(self._prompt(question, pictures if self.looks else ()))
        except ChatError as error:
            reply = error
        return self._answered(reply)

    def answer_all(
        self, questions: Sequence[Question], pictures: Sequence[Sequence[ShownFrame]]
    ) -> list[Answered | Unanswered]:
        """The replies to a batch; each is an answer of its own, or has failed alone."""
        if not isinstance(self._chat, BatchChat):
            return [_tried(self.answer, *asked) for asked in zip(questions, pictures, strict=True)]
        try:
            self._check()
        except Unanswered as error:
            return [error] * len(questions)
        asked = [
            self._prompt(question, seen if self.looks else ())
            for question, seen in zip(questions, pictures, strict=True)
        ]
        return [_tried(self._answered, reply) for reply in self._chat.complete_all(asked)]

    def _check(self) -> None:
        if self._failures.reason:
            raise Unanswered(self._failures.reason)

    def _answered(self, reply: Reply | ChatError) -> Answered:
        self._failures.count(failed=isinstance(reply, ChatError))
        if isinstance(reply, ChatError):
            raise Unanswered(str(reply))
        return Answered(
            printable(final_text(reply)),
            reply.seconds,
            reply.requests,
            reply.prompt_tokens,
            reply.completion_tokens,
            reply.model,
            reply.finish,
        )


def _tried(answer: Callable[..., Answered], *asked: object) -> Answered | Unanswered:
    try:
        return answer(*asked)
    except Unanswered as error:
        return error


def final_text(reply: Reply) -> str:
    """Return a reply's answer without the reasoning; a reply that was cut off before its answer is a failure.

    Reasoning that never ends is kept, since the answer may stand in it.

    >>> from surgeval.qa import Reply
    >>> final_text(Reply("<think>a or b?</think> Answer: B"))
    'Answer: B'
    """
    if reply.finish == "content_filter":
        raise Unanswered(FILTERED)
    if reply.text is None:
        raise Unanswered("the reply has no text")
    answer = remove_reasoning(reply.text)
    if reply.finish == "length" and not (answer or "").strip():
        raise Unanswered("the reply was cut off at the token limit before its answer; a new run may allow more tokens")
    return reply.text if answer is None else answer
