"""Chat models for judges and questions: any OpenAI-compatible server, or local transformers weights.

All retrying is here, in one bounded loop that also covers what HTTP calls a success (an error object, no choices, a
broken body). A key goes only where it belongs: `OPENAI_API_KEY` to api.openai.com, `SURGEVAL_API_KEY` to any server;
neither it nor any other secret is in what comes out, whatever the server says.
"""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urljoin, urlsplit

from surgeval._version import __version__
from surgeval.errors import BadInput
from surgeval.models.chat._http import HttpError, HttpReply, post, proxy_of
from surgeval.models.chat._replies import FailedReply, error_of, read_reply, retry_after
from surgeval.models.chat._secrets import read_key, secrets_of
from surgeval.qa.chat import ChatError, Message, Reply, SeeingChat, parse_server, public_name

__all__ = ["ChatOptions", "OpenAIChat", "open_chat"]

_TRANSIENT = frozenset({408, 409, 425, 429})
_LONGEST_WAIT = 1e6  # seconds; no operating system waits for ever


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """Decoding and patience. `timeout` is of one request from its connection to the last byte of its reply.

    `tries` counts the first one; waits double from `backoff` and never exceed `max_wait`.

    >>> ChatOptions(timeout=-1)
    Traceback (most recent call last):
    surgeval.errors.BadInput: timeout: found -1, expected seconds above 0, at most 1e+06
    """

    max_tokens: int = 16
    temperature: float = 0.0
    timeout: float = 30.0
    tries: int = 5
    backoff: float = 1.0
    max_wait: float = 60.0

    def __post_init__(self) -> None:
        if not 0 < self.timeout <= _LONGEST_WAIT:
            raise BadInput(f"timeout: found {self.timeout:g}, expected seconds above 0, at most {_LONGEST_WAIT:g}")
        if not math.isfinite(self.temperature):
            raise BadInput(f"temperature: found {self.temperature:g}, expected a finite number")


def open_chat(name: str, options: ChatOptions | None = None, *, role: str = "model") -> SeeingChat:
    """The model that a name (`openai:MODEL@URL`, `hf:PATH`) stands for; `role` is what messages call it.

    >>> open_chat("openai:vlm@http://localhost:8000/v1").sees
    True
    """
    options = options or ChatOptions()
    kind, _, rest = name.partition(":")
    if kind == "openai":
        return OpenAIChat(*parse_server(name, rest, role), options)
    if kind == "hf":
        from surgeval.models.chat._local import LocalChat

        return LocalChat(rest, options.max_tokens)
    raise BadInput(f"{role} {public_name(name)!r}: found the kind {kind!r}, expected openai or hf")


class OpenAIChat:
    """A model behind an OpenAI-compatible server; safe to call from many threads.

    >>> OpenAIChat("vlm", "http://localhost:8000/v1?key=abc123").identity
    'openai vlm http://localhost:8000/v1?key=… max_tokens=16 t=0.0'
    """

    sees = True  # a server that takes no images says so itself

    def __init__(
        self, model: str, url: str, options: ChatOptions | None = None, *, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        parse_server(f"openai:{model}@{url}", f"{model}@{url}")  # refuses what is no address
        self._model, self._options, self._sleep = model, options or ChatOptions(), sleep
        self._name = public_name(url)
        parts, key = urlsplit(url), read_key(url)
        try:
            self._secrets = secrets_of(key, url, proxy_of(parts))
        except HttpError as error:
            raise BadInput(f"{model} at {self._name}: found {error}") from None
        self._endpoint = parts._replace(path=f"{parts.path.rstrip('/')}/chat/completions", fragment="").geturl()
        self._headers = {
            "Content-Type": "application/json", "Accept": "application/json", "User-Agent": f"surgeval/{__version__}",
            "Authorization": f"Bearer {key or 'none'}",
        }  # fmt: skip
        # Newer models refuse one of these; the first refusal teaches us the spelling that this server wants.
        self._decoding: dict[str, Any] = {
            "max_tokens": self._options.max_tokens,
            "temperature": self._options.temperature,
        }

    @property
    def identity(self) -> str:
        """Model, server and decoding settings; of a query in the server's address only the names."""
        return f"openai {self._model} {self._name} max_tokens={self._options.max_tokens} t={self._options.temperature}"

    def complete(self, messages: Sequence[Message]) -> Reply:
        """Ask, and ask again after what may pass: time-outs, 429 and 5xx, resets, bodies without a reply."""
        problem = "no try was allowed"
        requests = 0
        for left in reversed(range(max(1, self._options.tries))):
            requests += 1
            began = time.perf_counter()
            outcome = self._once(messages)
            if isinstance(outcome, Reply):
                text = None if outcome.text is None else self._secrets.hide(outcome.text)
                return replace(outcome, text=text, requests=requests, seconds=time.perf_counter() - began)
            problem = _short(self._secrets.hide(outcome.problem))  # hidden first: half a key is a secret too
            if not outcome.transient:
                break
            if left and outcome.wait is not None:
                self._sleep(min(outcome.wait, self._options.max_wait))
            elif left:
                wait = self._options.backoff * 2 ** (requests - 1) * random.uniform(1, 1.25)
                self._sleep(min(wait, self._options.max_wait))
        raise ChatError(
            f"{self._model} at {self._name}: {problem} ({requests} {'try' if requests == 1 else 'tries'})",
            requests=requests,
        )

    def _once(self, messages: Sequence[Message]) -> Reply | FailedReply:
        asked = {"model": self._model, "messages": [dict(message) for message in messages], **self._decoding}
        try:
            reply = post(self._endpoint, json.dumps(asked).encode(), self._headers, self._options.timeout)
        except HttpError as error:
            return FailedReply(str(error), error.again)
        if 200 <= reply.status < 300:
            return read_reply(reply.body)
        return self._refused(reply)

    def _refused(self, reply: HttpReply) -> Reply | FailedReply:
        code, detail = reply.status, error_of(reply.body)
        if 300 <= code < 400 and "location" in reply.headers:
            place = _place(self._endpoint, self._secrets.hide(reply.headers["location"]))
            return FailedReply(
                f"HTTP {code}, a redirect to {place}, expected the server that was named", transient=False
            )
        if code == 400 and detail.get("code") == "content_filter":
            return Reply(None, finish="content_filter")
        if code == 400 and self._adapt(detail):
            return FailedReply(f"HTTP {code}", wait=0.0)
        said = detail.get("message") or reply.body.decode(errors="replace") or "no text"
        transient = code in _TRANSIENT or code >= 500
        return FailedReply(f"HTTP {code} ({said})", transient, retry_after(reply.headers))

    def _adapt(self, detail: Mapping[str, Any]) -> bool:
        """Drop or rename the decoding parameter that the server names as unsupported."""
        parameter, code = detail.get("param"), str(detail.get("code") or "")
        decoding = dict(self._decoding)
        if not code.startswith("unsupported") or not isinstance(parameter, str) or parameter not in decoding:
            return False
        del decoding[parameter]
        if parameter == "max_tokens":
            decoding["max_completion_tokens"] = self._options.max_tokens
        self._decoding = decoding
        return True


def _place(asked: str, location: str) -> str:
    """The origin that a redirect leads to."""
    try:
        parts = urlsplit(urljoin(asked, location))
        return f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}"
    except ValueError:
        return "no address"


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 200 else f"{text[:199]}…"
