"""Models by name: `openai:MODEL@URL`, `hf:PATH`, `replay:FILE`, and the reference rows.

The server is always named: a frame of an operation never goes to a default address.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from surgeval.asking.answerers import Answerer
from surgeval.asking.chat_answerer import ChatAnswerer, Prompt
from surgeval.asking.reference_rows import AlwaysAccept, AlwaysReject, Oracle, PriorAnswerer, RandomAnswerer
from surgeval.asking.replay import Replay
from surgeval.errors import BadInput
from surgeval.models import EMBEDDED, embedded_names
from surgeval.models.chat import ChatOptions, open_chat
from surgeval.qa import ANSWERER_FORMS, REJECTING_FORMS, parse_model_name
from surgeval.records import IntentQuestion, VqaQuestion

__all__ = ["open_answerer"]

Kind = TypeVar("Kind", VqaQuestion, IntentQuestion)


def open_answerer(
    text: str, prompt: Prompt[Kind], train: Callable[[str], Iterable[Kind]], options: ChatOptions | None = None,
    *, asked: Iterable[Kind] = (),
) -> Answerer[Kind]:  # fmt: skip
    """The answerer that a name stands for.

    `prompt` says how a chat model is asked, `train(place)` gives the questions `prior` learns from ("" where no place
    was named), `asked` is the set that will be asked: `always-reject` and `always-accept` learn from it which option
    rejects a premise.

    >>> open_answerer("random:3", lambda question, pictures: (), lambda place: ()).identity
    'random seed=3'
    """
    kind, argument = parse_model_name(text, (*ANSWERER_FORMS, *REJECTING_FORMS))
    if kind in embedded_names("generative"):
        return ChatAnswerer(open_chat(f"hf:{EMBEDDED[kind].path}", options), prompt)
    if kind in ("openai", "hf"):
        return ChatAnswerer(open_chat(text, options), prompt)
    if kind == "replay":
        return Replay(argument or "")
    if kind == "prior":
        return PriorAnswerer(train(argument or ""))
    if kind == "random":
        return RandomAnswerer(_read_seed(text, argument))
    if kind in (AlwaysReject.name, AlwaysAccept.name):
        row = AlwaysReject if kind == AlwaysReject.name else AlwaysAccept
        return row(asked, _read_seed(text, argument))
    return Oracle()


def _read_seed(text: str, argument: str | None) -> int:
    if argument is None:
        return 0
    if not (argument.isascii() and argument.isdigit() and len(argument) < 19):
        raise BadInput(f"The seed in the model name {text!r} is not a whole number.")
    return int(argument)
