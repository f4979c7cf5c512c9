"""What judges and questions need of a chat model: messages in, one reply or a `ChatError` out; and what it costs.

`qa` never imports a client: the OpenAI-compatible and the local one live in `surgeval.models.chat` and are handed in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias
from urllib.parse import urlsplit

from surgeval.errors import BadInput, SurgevalError

__all__ = ["Chat", "ChatError", "Message", "Price", "Reply", "SeeingChat", "parse_server"]

Message: TypeAlias = Mapping[str, object]  # {"role": "system" | "user" | "assistant", "content": text or parts}


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model said. `text` None is a reply without text (content null), which is not an empty one.

    `requests` counts what it took to get it (retries included), `seconds` is the time of the one that succeeded; token
    counts are 0 where the server tells none.
    """

    text: str | None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    requests: int = 1
    finish: str = ""
    seconds: float = 0.0


class ChatError(SurgevalError):
    """A model that gave no reply: dead server, refused key, broken body, after all retries."""

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


@dataclass(frozen=True, slots=True)
class Price:
    """What a model's tokens cost, per million, in the user's currency."""

    prompt: float
    completion: float


def parse_server(text: str, rest: str, role: str = "model") -> tuple[str, str]:
    """Model and address out of `MODEL@URL`, the rest of the name `text`; the server is always named.

    >>> parse_server("openai:org/vlm@http://localhost:8000/v1", "org/vlm@http://localhost:8000/v1")
    ('org/vlm', 'http://localhost:8000/v1')
    """
    model, at, url = rest.partition("@http")
    url = f"http{url}" if at else ""
    _check_url(text, url, role)
    if not model:
        raise BadInput(f"{role} {text!r}: found no model, expected openai:MODEL@URL")
    return model, url


def _check_url(text: str, url: str, role: str) -> None:
    try:
        parts = urlsplit(url)
        ok = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        ok = False
    if not ok:
        raise BadInput(f"{role} {text!r}: found no server address, expected openai:MODEL@http(s)://HOST[:PORT]/v1")
    if parts.username or parts.password:
        raise BadInput(f"{role} for {parts.hostname}: found a password in the address, expected it in the environment")
