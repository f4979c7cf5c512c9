"""The interface of models, baselines and recorded answers; chat models; and opening any of them by name.

An answerer returns an answer or raises `Unanswered`. It never returns an empty text in place of a failure. A kind is
declared with `@answerer_kind` and found through `ANSWERERS`; other packages add kinds by an entry point of the group
`surgeval.answerers`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, runtime_checkable

from surgeval.errors import BadInput, SurgevalError, printable
from surgeval.models import EMBEDDED
from surgeval.models.chat import ChatOptions, open_chat
from surgeval.qa import (
    FILTERED,
    BatchChat,
    ChatError,
    FailureCounter,
    Finish,
    Message,
    Reply,
    SeeingChat,
    kind_of_form,
    parse_model_name,
    remove_reasoning,
)
from surgeval.records import IntentQuestion, VqaQuestion
from surgeval.registry import Registry

__all__ = [
    "ANSWERERS",
    "Answerer",
    "AnswererKind",
    "AnswererSetup",
    "AnyQuestion",
    "BatchAnswerer",
    "ChatAnswerer",
    "ModelAnswer",
    "ModelFrame",
    "Prompt",
    "Question",
    "TimedQuestion",
    "Unanswered",
    "answerer_forms",
    "answerer_kind",
    "extract_answer",
    "open_answerer",
    "parse_seed",
]  # fmt: skip


class AnyQuestion(Protocol):
    """What asking needs of a question: an id, and the video that its answer is clustered by."""

    @property
    def id(self) -> str:
        """Unique among the questions of a run."""

    @property
    def video(self) -> str:
        """The video it is about."""


class TimedQuestion(AnyQuestion, Protocol):
    """A question about a moment (`start` equals `end`) or a window of its video, in seconds."""

    @property
    def start(self) -> float:
        """Start of the window."""

    @property
    def end(self) -> float:
        """End of the window."""


Question = TypeVar("Question", bound=AnyQuestion, contravariant=True)
Kind = TypeVar("Kind", VqaQuestion, IntentQuestion)


@dataclass(frozen=True, slots=True)
class ModelFrame:
    """A frame as it is sent to a model: time in seconds (None if unknown), JPEG, frame number and size in pixels.

    >>> ModelFrame(2.5, b"JPEG").time
    2.5
    """

    time: float | None
    jpeg: bytes
    frame: int = 0
    width: int = 0
    height: int = 0


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """An answer and what it cost. `latency` is that of the request that succeeded, in seconds.

    Baselines leave tokens and requests at 0. `model` is the name under which a server answered, or "". `finish` says
    why a reply is incomplete, as in `qa.Reply`.

    >>> ModelAnswer("a clip", latency=0.5, requests=1).content
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
    """There is no answer. `status` is `model_error` (the model failed; ask again) or `missing` (not in the file).

    >>> Unanswered("the reply has no text").status
    'model_error'
    """

    def __init__(self, reason: str, status: str = "model_error") -> None:
        super().__init__(reason)
        self.status = status


class Answerer(Protocol[Question]):
    """Answers one question at a time, from several threads. Only `Oracle` may read the question's reference."""

    @property
    def identity(self) -> str:
        """Everything that determines the answers. A run with another identity is another run."""

    @property
    def uses_images(self) -> bool:
        """Whether it takes frames."""

    @property
    def cache_answers(self) -> bool:
        """Whether an answer costs time or money, so each one is stored at once and never asked for twice."""

    def answer(self, question: Question, frames: Sequence[ModelFrame] = ()) -> ModelAnswer:
        """Answer the question, or raise `Unanswered`."""


@runtime_checkable
class BatchAnswerer(Protocol[Question]):
    """An answerer that can take several questions at once."""

    @property
    def batches(self) -> bool:
        """Whether it takes batches; if not, it is asked one question at a time from several threads."""

    def answer_all(
        self, questions: Sequence[Question], frames: Sequence[Sequence[ModelFrame]]
    ) -> Sequence[ModelAnswer | Unanswered]:
        """Answer each question, or say why it has no answer. A failure does not affect the other questions."""


Prompt: TypeAlias = Callable[[Question, Sequence[ModelFrame]], Sequence[Message]]


class ChatAnswerer(Generic[Question]):
    """Asks a chat model, from several threads if the model allows it. `prompt` turns a question into messages.

    After `give_up_after` questions in a row without a reply the server counts as down, and the remaining questions fail
    at once. A dead server then costs a minute instead of a time-out for each question; the next try asks them again.
    A reply without an answer (withheld, cut off, no text) fails its own question only.

    >>> from surgeval.qa import Reply
    >>> from surgeval.records import VqaQuestion
    >>> class Polite:
    ...     identity, sees = "polite", False
    ...     def complete(self, messages):
    ...         return Reply(f"<think>hm</think> yes to {messages[0]['content']!r}", 12, 3)
    >>> answerer = ChatAnswerer(Polite(), lambda question, frames: [{"role": "user", "content": question.text}])
    >>> answerer.answer(VqaQuestion("q", "v", 0, 1, "", "Is a clip visible?", "1a", "binary", "Yes")).content
    "yes to 'Is a clip visible?'"
    """

    cache_answers = True

    def __init__(self, chat: SeeingChat, prompt: Prompt[Question], *, give_up_after: int = 20) -> None:
        self._chat, self._prompt, self._failures = chat, prompt, FailureCounter(give_up_after)
        self.identity, self.uses_images = chat.identity, chat.sees
        self.batches = isinstance(chat, BatchChat)

    def answer(self, question: Question, frames: Sequence[ModelFrame] = ()) -> ModelAnswer:
        """Return the model's reply without its reasoning."""
        self._check_server()
        reply: Reply | ChatError
        try:
            reply = self._chat.complete(self._messages(question, frames))
        except ChatError as error:
            reply = error
        return self._read_reply(reply)

    def answer_all(
        self, questions: Sequence[Question], frames: Sequence[Sequence[ModelFrame]]
    ) -> list[ModelAnswer | Unanswered]:
        """Ask a batch of questions; each has an answer or a failure of its own."""
        pairs = list(zip(questions, frames, strict=True))
        if not isinstance(self._chat, BatchChat):
            return [_catch_unanswered(self.answer, *pair) for pair in pairs]
        try:
            self._check_server()
        except Unanswered as error:
            return [error] * len(questions)
        replies = self._chat.complete_all([self._messages(*pair) for pair in pairs])
        return [_catch_unanswered(self._read_reply, reply) for reply in replies]

    def _messages(self, question: Question, frames: Sequence[ModelFrame]) -> Sequence[Message]:
        return self._prompt(question, frames if self.uses_images else ())

    def _check_server(self) -> None:
        if self._failures.reason:
            raise Unanswered(self._failures.reason)

    def _read_reply(self, reply: Reply | ChatError) -> ModelAnswer:
        self._failures.count(failed=isinstance(reply, ChatError))
        if isinstance(reply, ChatError):
            raise Unanswered(str(reply))
        return ModelAnswer(
            printable(extract_answer(reply)),
            reply.seconds,
            reply.requests,
            reply.prompt_tokens,
            reply.completion_tokens,
            reply.model,
            reply.finish,
        )


def _catch_unanswered(answer: Callable[..., ModelAnswer], *arguments: object) -> ModelAnswer | Unanswered:
    try:
        return answer(*arguments)
    except Unanswered as error:
        return error


def extract_answer(reply: Reply) -> str:
    """Return a reply's answer without the reasoning, or raise `Unanswered` if it was cut off before its answer.

    Reasoning without an end is kept, because the answer may be in it.

    >>> from surgeval.qa import Reply
    >>> extract_answer(Reply("<think>a or b?</think> Answer: B"))
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


@dataclass(frozen=True, slots=True)
class AnswererSetup:
    """What an answerer is opened with: its full name, the argument in it (or None), and what the protocol passes on.

    `prompt` is how a chat model is asked, `train(source)` gives the questions that `prior` learns from ("" if the name
    has no source), and `asked` are the questions of the run.
    """

    text: str
    argument: str | None
    prompt: Prompt[Any]
    train: Callable[[str], Iterable[Any]]
    options: ChatOptions | None = None
    asked: Iterable[Any] = ()


@dataclass(frozen=True, slots=True)
class AnswererKind:
    """A kind of answerer: the form of its name, the function that opens one, and whether it is about false premises."""

    form: str
    open: Callable[[AnswererSetup], Answerer[Any]]
    premises: bool = False

    @property
    def name(self) -> str:
        """The kind, which is the first part of the form."""
        return kind_of_form(self.form)


def answerer_kind(
    form: str, *, premises: bool = False
) -> Callable[[Callable[[AnswererSetup], Answerer[Any]]], AnswererKind]:
    """Declare the function that opens answerers of one kind. `premises`: only listed where questions have premises.

    >>> @answerer_kind("polite[:MODEL]")
    ... def open_polite(setup):
    ...     return ChatAnswerer(open_chat(setup.argument), setup.prompt)
    >>> open_polite.name
    'polite'
    """
    return lambda function: AnswererKind(form, function, premises)


def _open_chat_answerer(setup: AnswererSetup) -> Answerer[Any]:
    return ChatAnswerer(open_chat(setup.text, setup.options), setup.prompt)


def _open_embedded_answerer(setup: AnswererSetup) -> Answerer[Any]:
    return ChatAnswerer(open_chat(f"hf:{EMBEDDED[setup.text].path}", setup.options), setup.prompt)


openai_answerer = answerer_kind("openai:MODEL@URL")(_open_chat_answerer)
local_answerer = answerer_kind("hf:PATH")(_open_chat_answerer)
phantom_llava = answerer_kind("phantom-llava")(_open_embedded_answerer)
phantom_sycophant = answerer_kind("phantom-sycophant")(_open_embedded_answerer)

ANSWERERS: Registry[AnswererKind] = Registry(
    "surgeval.answerers",
    {
        "openai": f"{__name__}:openai_answerer",
        "hf": f"{__name__}:local_answerer",
        "phantom-llava": f"{__name__}:phantom_llava",
        "phantom-sycophant": f"{__name__}:phantom_sycophant",
        "replay": "surgeval.asking.recorded_answers:replay",
        "prior": "surgeval.asking.baselines:prior",
        "random": "surgeval.asking.baselines:random_guesses",
        "oracle": "surgeval.asking.baselines:oracle",
        "always-reject": "surgeval.asking.baselines:always_reject",
        "always-accept": "surgeval.asking.baselines:always_accept",
    },
    AnswererKind,
    "model",
)


def answerer_forms(*, premises: bool = False) -> tuple[str, ...]:
    """Return the forms of names for help and errors; with `premises` also those about false premises.

    >>> answerer_forms()[-3:]
    ('prior[:TRAIN]', 'random[:SEED]', 'oracle')
    """
    return tuple(kind.form for kind in ANSWERERS.load_all().values() if premises or not kind.premises)


def open_answerer(
    text: str, prompt: Prompt[Kind], train: Callable[[str], Iterable[Kind]], options: ChatOptions | None = None,
    *, asked: Iterable[Kind] = (),
) -> Answerer[Kind]:  # fmt: skip
    """Open the answerer of this name, such as `openai:MODEL@URL`, `hf:PATH`, `replay:FILE` or a baseline.

    A server is always part of the name, so a frame of an operation never goes to a default address. `prompt` is how a
    chat model is asked. `train(source)` gives the questions that `prior` learns from ("" if no source is named).
    `asked` are the questions of the run: `always-reject` and `always-accept` learn from them which option rejects a
    premise.

    >>> open_answerer("random:3", lambda question, frames: (), lambda source: ()).identity
    'random seed=3'
    """
    name, argument = parse_model_name(text, answerer_forms(premises=True))
    return ANSWERERS[name].open(AnswererSetup(text, argument, prompt, train, options, asked))


def parse_seed(setup: AnswererSetup) -> int:
    """Return the seed in a name such as `random:3`, or 0 if there is none.

    >>> parse_seed(AnswererSetup("random:3", "3", lambda question, frames: (), lambda source: ()))
    3
    """
    if setup.argument is None:
        return 0
    if not (setup.argument.isascii() and setup.argument.isdigit() and len(setup.argument) < 19):
        raise BadInput(f"The seed in the model name {setup.text!r} is not a whole number.")
    return int(setup.argument)
