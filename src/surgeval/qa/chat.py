"""The interface of chat models: messages in, a reply or a `ChatError` out; and what tokens cost.

`qa` never imports a client: `surgeval.models.chat` has one for OpenAI-compatible servers and one for local weights, and
callers pass them in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from surgeval.errors import SurgevalError

__all__ = ["FILTERED", "BatchChat", "Chat", "ChatError", "Finish", "JsonForm", "Message", "Price", "Reply",
           "SchemaChat", "SeeingChat", "Usage"]  # fmt: skip

FILTERED = "the server's content filter withheld the reply"
Message: TypeAlias = Mapping[str, object]  # {"role": "system" | "user" | "assistant", "content": text or parts}
JsonForm: TypeAlias = Literal["json_schema", "json_object", "text"]  # how strictly a reply was held to a schema
Finish: TypeAlias = Literal["", "length", "content_filter"]  # why a reply is not complete; "" if it is


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply of a model. `text` is None for a reply without text (content null), which differs from an empty one.

    `requests` counts the requests it took, retries included; `seconds` is the time of the one that succeeded. Token
    counts are 0 if the server reports none. `finish` says why a text is incomplete: "length" (token limit) or
    "content_filter" (the server withheld the rest, so the text is not an answer). `form` says how the reply was held to
    a schema; None without one. `model` is the name under which the server answered.

    >>> Reply("CORRECT", prompt_tokens=300, completion_tokens=1).finish
    ''
    """

    text: str | None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    requests: int = 1
    finish: Finish = ""
    seconds: float = 0.0
    form: JsonForm | None = None
    model: str = ""


class ChatError(SurgevalError):
    """A model gave no reply after all retries: server down, key refused, invalid body.

    >>> ChatError("vlm at http://localhost:8000/v1: no connection", requests=5).requests
    5
    """

    def __init__(self, message: str, *, requests: int = 1) -> None:
        super().__init__(message)
        self.requests = requests


class Chat(Protocol):
    """A chat model. `identity` names everything that determines its replies; it is part of cache keys."""

    @property
    def identity(self) -> str:
        """Model, server or weights, and settings."""

    def complete(self, messages: Sequence[Message]) -> Reply:
        """One reply to the messages, or a `ChatError`; called from several threads."""


class SeeingChat(Chat, Protocol):
    """A chat model that says whether it accepts images."""

    @property
    def sees(self) -> bool:
        """Whether messages may contain images."""


class SchemaChat(SeeingChat, Protocol):
    """A chat model that can hold its replies to a JSON schema; the reply's `form` says how strictly."""

    def complete(self, messages: Sequence[Message], *, schema: Mapping[str, object] | None = None) -> Reply:
        """One reply; JSON of the schema if the model supports it."""


@runtime_checkable
class BatchChat(Protocol):
    """A chat model that is faster with several conversations at once."""

    def complete_all(self, conversations: Sequence[Sequence[Message]]) -> Sequence[Reply | ChatError]:
        """A reply or an error for each; one that fails does not affect the others."""


@dataclass(frozen=True, slots=True)
class Price:
    """Price of a model's tokens per million, in the user's currency.

    >>> Price(prompt=0.15, completion=0.6).completion
    0.6
    """

    prompt: float
    completion: float


@dataclass(frozen=True, slots=True)
class Usage:
    """Requests and tokens that a model has used.

    >>> used = Usage(1, 1000, 10) + Usage(2, 3000, 20)
    >>> used, used.cost(Price(prompt=2.0, completion=10.0))
    (Usage(requests=3, prompt_tokens=4000, completion_tokens=30), 0.0083)
    """

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.requests + other.requests,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
        )

    def cost(self, price: Price | None) -> float | None:
        """The cost of the tokens; None without a price."""
        if price is None:
            return None
        return (self.prompt_tokens * price.prompt + self.completion_tokens * price.completion) / 1e6
