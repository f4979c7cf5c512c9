"""Chat models for judges and questions: any OpenAI-compatible server, or local transformers weights.

All retrying is here, in one bounded loop that also covers what HTTP calls a success (an error object, no choices, a
broken body). A key goes only where it belongs: `OPENAI_API_KEY` to api.openai.com, `SURGEVAL_API_KEY` to any server.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from surgeval.errors import BadInput
from surgeval.models.chat._http import EndlessReply, bounded_client
from surgeval.qa.chat import ChatError, Message, Reply, SeeingChat, parse_server

__all__ = ["ChatOptions", "OpenAIChat", "open_chat"]

_TRANSIENT = frozenset({408, 409, 425, 429})


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """Decoding and patience. `tries` counts the first one; waits double from `backoff` and never exceed `max_wait`."""

    max_tokens: int = 16
    temperature: float = 0.0
    timeout: float = 30.0
    tries: int = 5
    backoff: float = 1.0
    max_wait: float = 60.0


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
    raise BadInput(f"{role} {name!r}: found the kind {kind!r}, expected openai or hf")


class OpenAIChat:
    """A model behind an OpenAI-compatible server; safe to call from many threads."""

    sees = True  # a server that takes no images says so itself

    def __init__(
        self, model: str, url: str, options: ChatOptions | None = None, *, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        try:
            import openai
        except ImportError:
            raise BadInput(f"openai:{model}: found no openai package, expected `pip install openai`") from None
        self._openai, self._model, self._options = openai, model, options or ChatOptions()
        self._sleep, self._url = sleep, url
        self._client = openai.OpenAI(
            base_url=url,
            api_key=_key(url),
            timeout=self._options.timeout,
            max_retries=0,  # retries are ours: the client's know nothing of broken bodies
            http_client=bounded_client(self._options.timeout),
        )
        # Newer models refuse one of these; the first refusal teaches us the spelling that this server wants.
        self._decoding: dict[str, Any] = {
            "max_tokens": self._options.max_tokens,
            "temperature": self._options.temperature,
        }

    @property
    def identity(self) -> str:
        """Model, server and decoding settings."""
        return f"openai {self._model} {self._url} max_tokens={self._options.max_tokens} t={self._options.temperature}"

    def complete(self, messages: Sequence[Message]) -> Reply:
        """Ask, and ask again after what may pass: time-outs, 429 and 5xx, resets, bodies without a reply."""
        problem = "no try was allowed"
        requests = 0
        for left in reversed(range(max(1, self._options.tries))):
            requests += 1
            began = time.perf_counter()
            outcome = self._once(messages)
            if isinstance(outcome, Reply):
                return replace(outcome, requests=requests, seconds=time.perf_counter() - began)
            problem = outcome.problem
            if not outcome.transient:
                break
            if left and outcome.wait is not None:
                self._sleep(min(outcome.wait, self._options.max_wait))
            elif left:
                wait = self._options.backoff * 2 ** (requests - 1) * random.uniform(1, 1.25)
                self._sleep(min(wait, self._options.max_wait))
        raise ChatError(
            f"{self._model} at {self._url}: {problem} ({requests} {'try' if requests == 1 else 'tries'})",
            requests=requests,
        )

    def _once(self, messages: Sequence[Message]) -> Reply | _Failure:
        openai = self._openai
        try:
            raw = self._client.chat.completions.with_raw_response.create(
                model=self._model, messages=_plain(messages), **self._decoding
            )
            return _read(raw.content)
        except openai.APITimeoutError:
            return _Failure(f"no reply in {self._options.timeout:g} s")
        except openai.APIConnectionError as error:
            if isinstance(error.__cause__, EndlessReply):  # some versions of the client wrap whatever they meet
                return _Failure(str(error.__cause__), error.__cause__.again)
            return _Failure(f"no connection ({_short(error.__cause__ or error)})")
        except EndlessReply as error:
            return _Failure(str(error), error.again)
        except openai.APIStatusError as error:
            return self._refused(error.status_code, error.response.headers, error.response.text)
        except openai.OpenAIError as error:
            return _Failure(_short(error))

    def _refused(self, code: int, headers: Mapping[str, str], body: str) -> _Failure:
        detail = _error_of(body)
        if code == 400 and self._adapt(detail):
            return _Failure(f"HTTP {code}", wait=0.0)
        said = _short(detail.get("message") or body or "no text")
        transient = code in _TRANSIENT or code >= 500
        return _Failure(f"HTTP {code} ({said})", transient, _retry_after(headers.get("retry-after")))

    def _adapt(self, detail: Mapping[str, Any]) -> bool:
        """Drop or rename the decoding parameter that the server names as unsupported."""
        parameter, code = detail.get("param"), str(detail.get("code") or "")
        if not code.startswith("unsupported") or parameter not in self._decoding:
            return False
        decoding = {key: value for key, value in self._decoding.items() if key != parameter}
        if parameter == "max_tokens":
            decoding["max_completion_tokens"] = self._options.max_tokens
        self._decoding = decoding
        return True


@dataclass(frozen=True, slots=True)
class _Failure:
    problem: str
    transient: bool = True
    wait: float | None = None


def _read(body: bytes) -> Reply | _Failure:
    """The reply in a response body that HTTP called a success."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return _Failure(f"a body that is no JSON ({_short(body[:80].decode(errors='replace'))})")
    if not isinstance(data, dict):
        return _Failure("a body that is no JSON object")
    if data.get("error"):
        return _Failure(f"an error in place of a reply ({_short(_error_of(data).get('message') or data['error'])})")
    choices = data.get("choices")
    if not isinstance(choices, list) or not choices:
        return _Failure("a reply without choices")
    message = choices[0].get("message") if isinstance(choices[0], dict) else None
    if not isinstance(message, dict):
        return _Failure("a choice without a message")
    content = message.get("content")
    if content is not None and not isinstance(content, str):
        return _Failure("a message whose content is no text")
    usage = data.get("usage") if isinstance(data.get("usage"), dict) else {}
    finish = choices[0].get("finish_reason")
    return Reply(
        content,
        _count(usage, "prompt_tokens"),
        _count(usage, "completion_tokens"),
        1,
        finish if finish == "length" else "",
    )


def _plain(messages: Sequence[Message]) -> Any:
    return [dict(message) for message in messages]  # the client's own types are a union of dictionaries


def _count(usage: Any, name: str) -> int:
    value = usage.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0


def _error_of(body: Any) -> dict[str, Any]:
    """The `error` object of a body, in whichever of the usual shapes."""
    if isinstance(body, str):
        try:
            body = json.loads(body)
        except (ValueError, RecursionError):
            return {}
    error = body.get("error") if isinstance(body, dict) else None
    return error if isinstance(error, dict) else {"message": error} if isinstance(error, str) else {}


def _retry_after(value: str | None) -> float | None:
    """Seconds, or an HTTP date; None where the server names neither."""
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
        except ValueError:
            return None
    return max(0.0, seconds) if seconds == seconds else None


def _key(url: str) -> str:
    own = os.environ.get("SURGEVAL_API_KEY")
    official = urlsplit(url).hostname == "api.openai.com"
    return own or (os.environ.get("OPENAI_API_KEY") if official else None) or "none"


def _short(thing: object) -> str:
    text = " ".join(str(thing).split()) or type(thing).__name__
    return text if len(text) <= 160 else f"{text[:159]}…"
