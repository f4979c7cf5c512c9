"""Chat models for judges and questions: any OpenAI-compatible server, or local transformers weights.

All retrying is here, in one bounded loop that also covers what HTTP calls a success (an error object, no choices, a
broken body). A server whose first replies (2xx or 5xx) are not JSON, or JSON without choices, is given up, unless they
ask for a pause (Retry-After); one that asks for a pause longer than `_LONGEST_PAUSE` stops the run. A key goes
only where it belongs: `OPENAI_API_KEY` to api.openai.com, `SURGEVAL_API_KEY` to any server; neither it nor any other
secret is in what comes out, whatever the server says.
"""

from __future__ import annotations

import json
import math
import random
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urljoin, urlsplit

from surgeval._version import __version__
from surgeval.errors import BadInput, RunStopped
from surgeval.models.chat.http import HttpError, HttpReply, post, proxy_of
from surgeval.models.chat.replies import FailedReply, error_of, is_foreign, read_reply, retry_after
from surgeval.models.chat.secrets import read_key, secrets_of
from surgeval.qa import ChatError, JsonForm, Message, Reply, SchemaChat, parse_server, public_name

__all__ = ["ChatOptions", "OpenAIChat", "open_chat"]

_TRANSIENT = frozenset({408, 409, 425, 429})
_NAMES_FORM = re.compile(rb"response_format|json_schema|json_object|guided_json")  # however the refusal is worded
_NAMES_SEED = re.compile(rb"\bseed\b")
_LOOKED_AT = 1 << 16  # characters of a refusal, of which 200 are shown
_LONGEST_WAIT = 1e6  # seconds; no operating system waits for ever
_LONGEST_PAUSE = 300.0  # seconds; if a server asks for a longer pause, the run stops
_FOREIGN = 3  # foreign replies (see `FailedReply`), before any other, after which a server is given up


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """Decoding and patience. `timeout` is of one request from its connection to the last byte of its reply.

    `tries` counts the first one; waits double from `backoff` and never exceed `max_wait`. `seed` is sent where one is
    given and the server takes it.

    >>> ChatOptions(max_tokens=64, seed=1).tries
    5
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
    seed: int | None = None

    def __post_init__(self) -> None:
        if not 0 < self.timeout <= _LONGEST_WAIT:
            raise BadInput(f"timeout: found {self.timeout:g}, expected seconds above 0, at most {_LONGEST_WAIT:g}")
        if not math.isfinite(self.temperature):
            raise BadInput(f"temperature: found {self.temperature:g}, expected a finite number")


def open_chat(name: str, options: ChatOptions | None = None, *, role: str = "model") -> SchemaChat:
    """The model that a name (`openai:MODEL@URL`, `hf:PATH`) stands for; `role` is what messages call it.

    >>> open_chat("openai:vlm@http://localhost:8000/v1").sees
    True
    """
    options = options or ChatOptions()
    kind, _, rest = name.partition(":")
    if kind == "openai":
        return OpenAIChat(*parse_server(name, rest, role), options)
    if kind == "hf":
        from surgeval.models.chat.local import LocalChat

        return LocalChat(rest, options.max_tokens)
    raise BadInput(f"{role} {public_name(name)!r}: found the kind {kind!r}, expected openai or hf")


@dataclass(frozen=True, slots=True)
class _Accepted:
    """What a server is sent, as far as it is known to take it."""

    decoding: Mapping[str, Any]
    form: JsonForm = "json_schema"

    def without(self, detail: Mapping[str, Any], body: bytes, form: JsonForm | None) -> _Accepted | None:
        """The same without what the server's refusal names; None where it names nothing that could be left out."""
        parameter, code = detail.get("param"), str(detail.get("code") or "")
        if isinstance(parameter, str) and parameter in self.decoding and code.startswith("unsupported"):
            decoding = {name: value for name, value in self.decoding.items() if name != parameter}
            if parameter == "max_tokens":
                decoding["max_completion_tokens"] = self.decoding["max_tokens"]
            return replace(self, decoding=decoding)
        if form in ("json_schema", "json_object") and _NAMES_FORM.search(body):
            return replace(self, form="json_object" if form == "json_schema" else "text")
        if "seed" in self.decoding and _NAMES_SEED.search(body):
            return replace(self, decoding={name: value for name, value in self.decoding.items() if name != "seed"})
        return None


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
        self._name, self._met = public_name(url), False
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
        # Some servers refuse one of these; the first refusal teaches us what this one wants.
        decoding = {"max_tokens": self._options.max_tokens, "temperature": self._options.temperature}
        if self._options.seed is not None:
            decoding["seed"] = self._options.seed
        self._accepted, self._lock = _Accepted(decoding), threading.Lock()
        self._foreign, self._speaks_json, self._given_up, self._asked_again_at = 0, False, "", 0.0

    @property
    def model(self) -> str:
        """The model's name as requests give it."""
        return self._model

    @property
    def identity(self) -> str:
        """Model, server and decoding settings; of a query in the server's address only the names."""
        options = self._options
        seed = "" if options.seed is None else f" seed={options.seed}"
        return f"openai {self._model} {self._name} max_tokens={options.max_tokens} t={options.temperature}{seed}"

    @property
    def settings(self) -> dict[str, Any]:
        """The decoding settings that the server takes, as far as it has been asked, and how it is held to a schema."""
        return {**self._accepted.decoding, "form": self._accepted.form}

    def complete(self, messages: Sequence[Message], *, schema: Mapping[str, object] | None = None) -> Reply:
        """Ask, and ask again after what may pass: time-outs, 429 and 5xx, resets, bodies without a reply.

        Raises `RunStopped` if the server asks for a long pause: the run can be resumed later without loss.

        With a schema the server is asked for JSON of it, or for any JSON, or in plain text, whichever it takes first.
        """
        problem = "no try was allowed"
        requests, left = 0, max(1, self._options.tries)
        while left:
            self._check_pause()
            if self._given_up:
                problem = self._given_up
                break
            requests += 1
            began = time.perf_counter()
            outcome = self._once(messages, schema)
            if isinstance(outcome, Reply):
                text = None if outcome.text is None else self._secrets.hide(outcome.text)
                model, seconds = self._secrets.hide(outcome.model), time.perf_counter() - began
                return replace(outcome, text=text, requests=requests, seconds=seconds, model=model)
            if outcome.learnt:
                continue  # asked again in the server's own way at once, which happens only so often
            left -= 1
            shown = " ".join(outcome.problem.split())[:_LOOKED_AT]  # a body may have megabytes
            problem = _short(self._secrets.hide(shown))  # hidden first: half a key is a secret too
            if not outcome.transient:
                break
            if outcome.wait is not None and outcome.wait > _LONGEST_PAUSE:
                self._asked_again_at = time.monotonic() + outcome.wait
                self._check_pause(problem)
            if outcome.foreign and self._foreign >= _FOREIGN and not self._speaks_json:
                self._given_up = problem
                break
            if left and outcome.wait is not None:
                self._sleep(min(outcome.wait, self._options.max_wait))
            elif left:
                wait = self._options.backoff * 2 ** (requests - 1) * random.uniform(1, 1.25)
                self._sleep(min(wait, self._options.max_wait))
        tries = f" ({requests} {'try' if requests == 1 else 'tries'})" if requests else ""
        raise ChatError(f"{self._model} at {self._name}: {problem}{tries}", requests=requests)

    def _check_pause(self, problem: str = "") -> None:
        """Stop the run during a pause that the server asked for."""
        left = self._asked_again_at - time.monotonic()
        if left > 0:
            reason = f"{problem}; " if problem else ""
            raise RunStopped(
                f"{self._model} at {self._name}: {reason}the server asks to wait {_duration(left)} (Retry-After), so "
                "the run has stopped; run the same command after that to resume it"
            )

    def _once(self, messages: Sequence[Message], schema: Mapping[str, object] | None) -> Reply | FailedReply:
        accepted = self._accepted
        form = None if schema is None else accepted.form
        asked = {"model": self._model, "messages": [dict(message) for message in messages], **accepted.decoding}
        if schema is not None and accepted.form != "text":
            asked["response_format"] = _response_format(accepted.form, schema)
        try:
            reply = post(self._endpoint, json.dumps(asked).encode(), self._headers, self._options.timeout)
        except HttpError as error:
            # A server that was never there is not waited for; one that was may be starting again.
            return FailedReply(str(error), error.again and (self._met or not error.nobody))
        self._met = True
        if 200 <= reply.status < 300:
            read = read_reply(reply.body, self._options.max_tokens)
            if isinstance(read, Reply):
                self._speaks_json = True
                return replace(read, form=form)
            self._count_foreign(reply, read.foreign)
            self._speaks_json = self._speaks_json or not read.foreign
            return read
        return self._refused(reply, accepted, form)

    def _count_foreign(self, reply: HttpReply, foreign: bool) -> None:
        """Count a foreign reply; one with Retry-After says itself that it passes."""
        if foreign and retry_after(reply.headers) is None:
            with self._lock:
                self._foreign += 1

    def _refused(self, reply: HttpReply, accepted: _Accepted, form: JsonForm | None) -> Reply | FailedReply:
        code, detail = reply.status, error_of(reply.body)
        self._speaks_json = self._speaks_json or bool(detail)
        if 300 <= code < 400 and "location" in reply.headers:
            target = _place(self._endpoint, self._secrets.hide(reply.headers["location"]))
            return FailedReply(
                f"HTTP {code}, a redirect to {target}, expected the server that was named", transient=False
            )
        if code == 400 and detail.get("code") == "content_filter":
            return Reply(None, finish="content_filter")
        if code in (400, 422) and (learnt := accepted.without(detail, reply.body, form)) is not None:
            with self._lock:
                if self._accepted is accepted:  # else another thread has learnt something since: ask as it says
                    self._accepted = learnt
            return FailedReply(f"HTTP {code}", learnt=True)
        message = detail.get("message") or reply.body.decode(errors="replace") or "no text"
        transient = code in _TRANSIENT or code >= 500
        foreign = code >= 500 and is_foreign(reply.body)
        self._count_foreign(reply, foreign)
        return FailedReply(f"HTTP {code} ({message})", transient, retry_after(reply.headers), foreign=foreign)


def _response_format(form: JsonForm, schema: Mapping[str, object]) -> dict[str, object]:
    if form == "json_object":
        return {"type": "json_object"}
    return {"type": "json_schema", "json_schema": {"name": "reply", "schema": dict(schema), "strict": True}}


def _place(asked: str, location: str) -> str:
    """The origin that a redirect leads to; of another host no name, which may be anything that the server was sent."""
    try:
        parts = urlsplit(urljoin(asked, location))
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "no address"
    if parts.scheme not in ("http", "https") or parts.hostname != urlsplit(asked).hostname:
        return "another server"
    return f"{parts.scheme}://{parts.hostname}{port}"


def _duration(seconds: float) -> str:
    """Format seconds in words, rounded up.

    >>> _duration(3599.9), _duration(200_000)
    ('60 minutes', '56 hours')
    """
    minutes = math.ceil(min(seconds, 1e9) / 60)
    return f"{minutes} minutes" if minutes <= 120 else f"{math.ceil(minutes / 60)} hours"


def _short(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:199]}…"
