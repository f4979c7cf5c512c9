"""What a judge needs of a language model: messages in, one reply or a `ChatError` out.

`qa` never imports a client: the OpenAI-compatible and the local one live in `surgeval.models` and are handed in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from surgeval.errors import SurgevalError

__all__ = ["Chat", "ChatError", "Message", "Reply"]

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
