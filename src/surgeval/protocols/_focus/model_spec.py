"""Models by name: `openai:MODEL@URL`, `hf:PATH`, `replay:FILE`, `prior[:TRAIN]`, `random[:SEED]`, `oracle`.

The server is always named: a frame of an operation never goes to a default address.
"""

from __future__ import annotations

from surgeval.errors import BadInput
from surgeval.models.chat import ChatOptions, OpenAIChat
from surgeval.protocols._focus.answerers import Answerer, Oracle, PriorAnswerer, RandomAnswerer, Replay
from surgeval.protocols._focus.chat_answerer import ChatAnswerer
from surgeval.protocols._focus.sources import QuestionSet, open_questions
from surgeval.qa.judge import parse_server

__all__ = ["open_answerer"]

_EXPECTED = "openai:MODEL@URL, hf:PATH, replay:FILE, prior[:TRAIN], random[:SEED] or oracle"


def open_answerer(text: str, asked: QuestionSet, options: ChatOptions | None = None) -> Answerer:
    """The answerer that a name stands for; `prior` learns from `asked` where no other set is named.

    >>> open_answerer("random:3", QuestionSet(())).identity
    'random seed=3'
    """
    kind, colon, rest = text.partition(":")
    if kind in ("openai", "hf", "replay") and colon and not rest:
        raise BadInput(f"model {text!r}: found nothing after the colon, expected {_EXPECTED}")
    if kind == "openai" and colon:
        return ChatAnswerer(OpenAIChat(*parse_server(text, rest, "model"), options))
    if kind == "hf" and colon:
        from surgeval.models._local_chat import LocalChat

        return ChatAnswerer(LocalChat(rest, (options or ChatOptions()).max_tokens))
    if kind == "replay" and colon:
        return Replay(rest)
    if kind == "prior":
        return PriorAnswerer((open_questions(rest) if rest else asked).learnable)
    if kind == "random":
        return RandomAnswerer(_seed(text, rest) if colon else 0)
    if text == "oracle":
        return Oracle()
    raise BadInput(f"model {text!r}: found {f'the kind {kind!r}' if colon else 'no known name'}, expected {_EXPECTED}")


def _seed(text: str, rest: str) -> int:
    if not (rest.isascii() and rest.isdigit() and len(rest) < 19):
        raise BadInput(f"model {text!r}: found the seed {rest!r}, expected a whole number")
    return int(rest)
