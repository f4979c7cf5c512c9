"""What judges and questions need of a chat model: messages in, one reply or a `ChatError` out; and what it costs.

`qa` never imports a client: the OpenAI-compatible and the local one live in `surgeval.models.chat` and are handed in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, runtime_checkable
from urllib.parse import urlsplit

from surgeval.errors import BadInput, SurgevalError, did_you_mean

__all__ = ["FILTERED", "MODEL_SPECS", "REJECTING_SPECS", "BatchChat", "Chat", "ChatError", "Finish", "JsonForm",
           "Message", "Price", "Reply", "SchemaChat", "SeeingChat", "Usage", "close_kind", "parse_server",
           "public_name"]  # fmt: skip

# What a model that answers questions may be called, in the words of help and of errors.
MODEL_SPECS = ("openai:MODEL@URL", "hf:PATH", "phantom-llava", "phantom-sycophant", "replay:FILE", "prior[:TRAIN]",
               "random[:SEED]", "oracle")  # fmt: skip
REJECTING_SPECS = ("always-reject[:SEED]", "always-accept[:SEED]")  # only where premises can be rejected
FILTERED = "the server's content filter withheld the reply"
Message: TypeAlias = Mapping[str, object]  # {"role": "system" | "user" | "assistant", "content": text or parts}
JsonForm: TypeAlias = Literal["json_schema", "json_object", "text"]  # how far a reply was held to a schema
Finish: TypeAlias = Literal["", "length", "content_filter"]  # why a reply is not complete; "" of one that is


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model said. `text` None is a reply without text (content null), which is not an empty one.

    `requests` counts what it took to get it (retries included), `seconds` is the time of the one that succeeded; token
    counts are 0 where the server tells none. `finish` says why a text is not whole: "length" (the token limit) or
    "content_filter" (the server withheld the rest, and the text is no answer). `form` says how a reply that was asked
    for with a schema was held to it; None where none was. `model` is the name under which the server answered.

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
    """A model that gave no reply: dead server, refused key, broken body, after all retries.

    >>> ChatError("vlm at http://localhost:8000/v1: no connection", requests=5).requests
    5
    """

    def __init__(self, message: str, *, requests: int = 1) -> None:
        super().__init__(message)
        self.requests = requests


class Chat(Protocol):
    """A chat model. `identity` names everything that determines its replies (it is part of the cache's key)."""

    @property
    def identity(self) -> str:
        """Model, server or weights, and settings."""

    def complete(self, messages: Sequence[Message]) -> Reply:
        """One reply to the messages, or a ChatError; called from several threads."""


class SeeingChat(Chat, Protocol):
    """A chat model that says whether it takes pictures."""

    @property
    def sees(self) -> bool:
        """Whether messages may hold pictures."""


class SchemaChat(SeeingChat, Protocol):
    """A chat model that holds its replies to a JSON schema as far as it can; the reply's `form` says how far."""

    def complete(self, messages: Sequence[Message], *, schema: Mapping[str, object] | None = None) -> Reply:
        """One reply, a JSON text of the schema where the model can be held to it."""


@runtime_checkable
class BatchChat(Protocol):
    """A chat model that is quicker with several conversations at once."""

    def complete_all(self, conversations: Sequence[Sequence[Message]]) -> Sequence[Reply | ChatError]:
        """A reply to each, or why there is none: one that fails leaves the others alone."""


@dataclass(frozen=True, slots=True)
class Price:
    """What a model's tokens cost, per million, in the user's currency.

    >>> Price(prompt=0.15, completion=0.6).completion
    0.6
    """

    prompt: float
    completion: float


@dataclass(frozen=True, slots=True)
class Usage:
    """Requests and tokens of a model, as judge or as answerer.

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
        """What the tokens cost; None without a price, never a guess."""
        if price is None:
            return None
        return (self.prompt_tokens * price.prompt + self.completion_tokens * price.completion) / 1e6


def public_name(text: str) -> str:
    """A model's name as it may be stored and printed: without a login or the values of a query in its address.

    >>> public_name("openai:vlm@https://me:pw@host/v1?key=k1&v=2"), public_name("openai:vlm@http://host/v1")
    ('openai:vlm@https://…@host/v1?key=…&v=…', 'openai:vlm@http://host/v1')
    """
    if "://" not in text and not text.startswith("openai:"):
        return text  # a file or a folder
    address, mark, query = text.partition("#")[0].partition("?")
    names = (part.partition("=") for part in query.split("&"))
    hidden = "&".join(f"{name}=…" if equals else "…" * bool(name) for name, equals, _ in names)
    return re.sub("//[^/]*@", "//…@", address) + mark + hidden


def close_kind(kind: str, specs: Iterable[str]) -> str:
    """`; did you mean …?` where a kind is close to that of one of these specs, such as `prior[:TRAIN]`; else nothing.

    >>> close_kind("priorr", MODEL_SPECS), close_kind("gpt", MODEL_SPECS)
    ("; did you mean 'prior'?", '')
    """
    return did_you_mean(kind, (spec.partition("[")[0].partition(":")[0] for spec in specs))


def parse_server(text: str, rest: str, role: str = "model") -> tuple[str, str]:
    """Model and address out of `MODEL@URL`, the rest of the name `text`; the server is always named.

    >>> parse_server("openai:org/vlm@http://localhost:8000/v1", "org/vlm@http://localhost:8000/v1")
    ('org/vlm', 'http://localhost:8000/v1')
    """
    model, at, url = rest.partition("@http")
    url = f"http{url}" if at else ""
    _check_url(text, url, role)
    if not model:
        raise BadInput(f"{role} {public_name(text)!r}: found no model, expected openai:MODEL@URL")
    return model, url


def _check_url(text: str, url: str, role: str) -> None:
    try:
        parts = urlsplit(url)
        ok = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        ok = False
    if not ok or not url.isprintable() or " " in url or "\\" in url:
        # Where an address ends is unclear, and so is where a password in it does.
        name = re.sub("://.*", "://…", public_name(text), flags=re.DOTALL)
        raise BadInput(f"{role} {name!r}: found no server address, expected openai:MODEL@http(s)://HOST[:PORT]/v1")
    if parts.username or parts.password:
        raise BadInput(f"{role} for {parts.hostname}: found a password in the address, expected it in the environment")
