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
from surgeval.qa.chat import MODEL_SPECS, REJECTING_SPECS, close_kind, public_name
from surgeval.records import IntentQuestion, VqaQuestion

__all__ = ["open_answerer"]

Kind = TypeVar("Kind", VqaQuestion, IntentQuestion)

_EXPECTED = f"one of {', '.join((*MODEL_SPECS, *REJECTING_SPECS))}"


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
    if text in embedded_names("generative"):
        return ChatAnswerer(open_chat(f"hf:{EMBEDDED[text].path}", options), prompt)
    kind, colon, rest = text.partition(":")
    if kind in ("openai", "hf", "replay") and colon and not rest:
        raise BadInput(f"model {text!r}: found nothing after the colon, expected {_EXPECTED}")
    if kind in ("openai", "hf") and colon:
        return ChatAnswerer(open_chat(text, options), prompt)
    if kind == "replay" and colon:
        return Replay(rest)
    if kind == "prior":
        return PriorAnswerer(train(rest))
    if kind == "random":
        return RandomAnswerer(_seed(text, rest) if colon else 0)
    if kind in (AlwaysReject.name, AlwaysAccept.name):
        row = AlwaysReject if kind == AlwaysReject.name else AlwaysAccept
        return row(asked, _seed(text, rest) if colon else 0)
    if text == "oracle":
        return Oracle()
    found = f"the kind {kind!r}" if colon else "no known name"
    close = close_kind(kind, (*MODEL_SPECS, *REJECTING_SPECS))
    raise BadInput(f"model {public_name(text)!r}: found {found}, expected {_EXPECTED}{close}")


def _seed(text: str, rest: str) -> int:
    if not (rest.isascii() and rest.isdigit() and len(rest) < 19):
        raise BadInput(f"model {text!r}: found the seed {rest!r}, expected a whole number")
    return int(rest)
