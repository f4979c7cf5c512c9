"""The client of OpenAI-compatible servers: one request, its retries, the reply, and keys that never leave it.

All retries happen in one bounded loop, which also covers what HTTP calls a success (an error object, no choices, a
broken body). A server whose first replies (2xx or 5xx) are not JSON, or JSON without choices, is given up unless they
ask for a pause (Retry-After); one that asks for a pause longer than `_LONGEST_PAUSE` stops the run. Keys are sent only
where they belong: `OPENAI_API_KEY` to api.openai.com, `SURGEVAL_API_KEY` to any server. A server may echo them in a
reply or an error, so every text is searched for them before it is stored, printed or cut.
"""

from __future__ import annotations

import base64
import html
import json
import math
import os
import random
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from typing import Any, Literal
from urllib.parse import SplitResult, quote, quote_plus, unquote, unquote_plus, urljoin, urlsplit

from surgeval._version import __version__
from surgeval.errors import BadInput, RunStopped, bounded, visible
from surgeval.files import BrokenJson, parse_json
from surgeval.models.chat.http import HttpError, HttpReply, post, proxy_of
from surgeval.models.registry import require_packages
from surgeval.qa import ChatError, JsonForm, Message, Reply, SchemaChat, parse_server, public_name

__all__ = ["HIDDEN", "ChatOptions", "FailedReply", "OpenAIChat", "Secrets", "open_chat", "read_error", "read_reply",
           "read_retry_after"]  # fmt: skip

_TRANSIENT = frozenset({408, 409, 425, 429})
_NAMES_FORM = re.compile(rb"response_format|json_schema|json_object|guided_json")  # however the refusal is worded
_NAMES_SEED = re.compile(rb"\bseed\b")
_MOST_SEARCHED = 1 << 16  # characters of an error that are searched for keys; 200 of them are shown
_LONGEST_TIMEOUT = 1e6  # seconds; no operating system waits without end
_LONGEST_PAUSE = 300.0  # seconds; if a server asks for a longer pause, the run stops
_MOST_FOREIGN = 3  # foreign replies (see `FailedReply`), before any other, after which a server is given up
_LONGEST_MESSAGE = 1 << 16  # characters of a short reply: its thinking and white space may be many times its text
_PER_TOKEN = 32  # characters: a usual token has four, the longest of known vocabularies a run of spaces
_MOST_TOKENS = 10**9  # a larger count is wrong, and sums of a run must fit into tables
_MOST_SHOWN = 1 << 16  # characters of an unreadable body
_SHORTEST_SECRET = 6  # anything shorter ("EMPTY", "1") is no secret, and hiding it would change answers
HIDDEN = "[hidden]"


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """Decoding and retries. `timeout` is for one request, from its connection to the last byte of its reply.

    `tries` includes the first one; waits double from `backoff` and never exceed `max_wait`. `seed` is sent if it is
    given and the server accepts it.

    >>> ChatOptions(max_tokens=64, seed=1).tries
    5
    >>> ChatOptions(timeout=-1)
    Traceback (most recent call last):
    surgeval.errors.BadInput: timeout must be above 0 and at most 1e+06 seconds, not -1.
    """

    max_tokens: int = 16
    temperature: float = 0.0
    timeout: float = 30.0
    tries: int = 5
    backoff: float = 1.0
    max_wait: float = 60.0
    seed: int | None = None

    def __post_init__(self) -> None:
        if not 0 < self.timeout <= _LONGEST_TIMEOUT:
            most = f"{_LONGEST_TIMEOUT:g}"
            raise BadInput(f"timeout must be above 0 and at most {most} seconds, not {self.timeout:g}.")
        if not math.isfinite(self.temperature):
            raise BadInput(f"temperature must be a finite number, not {self.temperature:g}.")


def open_chat(name: str, options: ChatOptions | None = None, *, role: str = "model") -> SchemaChat:
    """Open the chat model of this name, `openai:MODEL@URL` or `hf:PATH`; errors call it a `role`.

    >>> open_chat("openai:vlm@http://localhost:8000/v1").sees
    True
    """
    options = options or ChatOptions()
    kind, _, rest = name.partition(":")
    if kind == "openai":
        return OpenAIChat(*parse_server(name, rest, role), options)
    if kind == "hf":
        require_packages(public_name(name))
        from surgeval.models.chat.local import LocalChat

        return LocalChat(rest, options.max_tokens)
    raise BadInput(f"Unknown {role} {public_name(name)!r}. Write openai:MODEL@URL or hf:PATH.")


@dataclass(frozen=True, slots=True)
class _Settings:
    """The settings sent with each request: those that the server is known, or not yet known not, to accept."""

    decoding: Mapping[str, Any]
    form: JsonForm = "json_schema"

    def without(self, detail: Mapping[str, Any], body: bytes, form: JsonForm | None) -> _Settings | None:
        """The settings without the one that the server's refusal names; None if it names none of them."""
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
    """A model on an OpenAI-compatible server; safe to call from many threads.

    >>> OpenAIChat("vlm", "http://localhost:8000/v1?key=abc123").identity
    'openai vlm http://localhost:8000/v1?key=… max_tokens=16 t=0.0'
    """

    sees = True  # a server that takes no images says so itself

    def __init__(
        self, model: str, url: str, options: ChatOptions | None = None, *, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        parse_server(f"openai:{model}@{url}", f"{model}@{url}")  # raises for an invalid address
        self._model, self._options, self._sleep = model, options or ChatOptions(), sleep
        self._name, self._met = public_name(url), False
        parts, key = urlsplit(url), _read_key(url)
        try:
            self._secrets = _secrets_of(key, url, proxy_of(parts))
        except HttpError as error:
            raise BadInput(f"{model} at {self._name}: {error}") from None
        self._endpoint = parts._replace(path=f"{parts.path.rstrip('/')}/chat/completions", fragment="").geturl()
        self._headers = {
            "Content-Type": "application/json", "Accept": "application/json", "User-Agent": f"surgeval/{__version__}",
            "Authorization": f"Bearer {key or 'none'}",
        }  # fmt: skip
        # Some servers refuse one of these; their first refusal tells which.
        decoding = {"max_tokens": self._options.max_tokens, "temperature": self._options.temperature}
        if self._options.seed is not None:
            decoding["seed"] = self._options.seed
        self._settings, self._lock = _Settings(decoding), threading.Lock()
        self._foreign, self._speaks_json, self._given_up, self._paused_until = 0, False, "", 0.0

    @property
    def model(self) -> str:
        """The model's name in requests."""
        return self._model

    @property
    def identity(self) -> str:
        """Model, server and decoding settings; of a query in the server's address only the names."""
        options = self._options
        seed = "" if options.seed is None else f" seed={options.seed}"
        return f"openai {self._model} {self._name} max_tokens={options.max_tokens} t={options.temperature}{seed}"

    @property
    def settings(self) -> dict[str, Any]:
        """The decoding settings that the server has accepted so far, and the form of JSON that it is asked for."""
        return {**self._settings.decoding, "form": self._settings.form}

    def complete(self, messages: Sequence[Message], *, schema: Mapping[str, object] | None = None) -> Reply:
        """Ask, and ask again after temporary failures: time-outs, 429 and 5xx, resets, bodies without a reply.

        Raises `ChatError` after the last try, and `RunStopped` if the server asks for a long pause: the run can be
        resumed later without loss. With a schema the server is asked for JSON of that schema, for any JSON, or for
        plain text, whichever it accepts first.
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
            outcome = self._ask_once(messages, schema)
            if isinstance(outcome, Reply):
                text = None if outcome.text is None else self._secrets.hide(outcome.text)
                model, seconds = self._secrets.hide(outcome.model), time.perf_counter() - began
                return replace(outcome, text=text, requests=requests, seconds=seconds, model=model)
            if outcome.adapted:
                continue  # asked again with other settings, at most once per setting
            left -= 1
            shown = " ".join(outcome.problem.split())[:_MOST_SEARCHED]  # a body may have megabytes
            problem = _shorten(self._secrets.hide(shown))  # hidden before it is cut: half a key is a secret too
            if not outcome.transient:
                break
            if outcome.wait is not None and outcome.wait > _LONGEST_PAUSE:
                self._paused_until = time.monotonic() + outcome.wait
                self._check_pause(problem)
            if outcome.foreign and self._foreign >= _MOST_FOREIGN and not self._speaks_json:
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
        left = self._paused_until - time.monotonic()
        if left > 0:
            reason = f"{problem}; " if problem else ""
            raise RunStopped(
                f"{self._model} at {self._name}: {reason}the server asks to wait {_format_duration(left)} "
                "(Retry-After), so the run has stopped; run the same command after that to resume it"
            )

    def _ask_once(self, messages: Sequence[Message], schema: Mapping[str, object] | None) -> Reply | FailedReply:
        settings = self._settings
        form = None if schema is None else settings.form
        asked = {"model": self._model, "messages": [dict(message) for message in messages], **settings.decoding}
        if schema is not None and settings.form != "text":
            asked["response_format"] = _response_format(settings.form, schema)
        try:
            reply = post(self._endpoint, json.dumps(asked).encode(), self._headers, self._options.timeout)
        except HttpError as error:
            # A server that was never reached is not waited for; one that was may be restarting.
            return FailedReply(str(error), error.transient and (self._met or not error.refused))
        self._met = True
        if 200 <= reply.status < 300:
            read = read_reply(reply.body, self._options.max_tokens)
            if isinstance(read, Reply):
                self._speaks_json = True
                return replace(read, form=form)
            self._count_foreign(reply, read.foreign)
            self._speaks_json = self._speaks_json or not read.foreign
            return read
        return self._read_refusal(reply, settings, form)

    def _count_foreign(self, reply: HttpReply, foreign: bool) -> None:
        """Count a foreign reply, unless its Retry-After says that the failure is temporary."""
        if foreign and read_retry_after(reply.headers) is None:
            with self._lock:
                self._foreign += 1

    def _read_refusal(self, reply: HttpReply, settings: _Settings, form: JsonForm | None) -> Reply | FailedReply:
        code, detail = reply.status, read_error(reply.body)
        self._speaks_json = self._speaks_json or bool(detail)
        if 300 <= code < 400 and "location" in reply.headers:
            target = _redirect_target(self._endpoint, self._secrets.hide(reply.headers["location"]))
            return FailedReply(f"HTTP {code}, a redirect to {target}, which is not followed", transient=False)
        if code == 400 and detail.get("code") == "content_filter":
            return Reply(None, finish="content_filter")
        if code in (400, 422) and (fewer := settings.without(detail, reply.body, form)) is not None:
            with self._lock:
                if self._settings is settings:  # otherwise another thread has changed them: use those
                    self._settings = fewer
            return FailedReply(f"HTTP {code}", adapted=True)
        message = detail.get("message") or reply.body.decode(errors="replace") or "no text"
        transient = code in _TRANSIENT or code >= 500
        foreign = code >= 500 and _is_foreign(reply.body)
        self._count_foreign(reply, foreign)
        return FailedReply(f"HTTP {code} ({message})", transient, read_retry_after(reply.headers), foreign=foreign)


def _response_format(form: JsonForm, schema: Mapping[str, object]) -> dict[str, object]:
    if form == "json_object":
        return {"type": "json_object"}
    return {"type": "json_schema", "json_schema": {"name": "reply", "schema": dict(schema), "strict": True}}


def _redirect_target(asked: str, location: str) -> str:
    """The origin that a redirect leads to; another host is not named: its name may contain what the server was sent."""
    try:
        parts = urlsplit(urljoin(asked, location))
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "an invalid address"
    if parts.scheme not in ("http", "https") or parts.hostname != urlsplit(asked).hostname:
        return "another server"
    return f"{parts.scheme}://{parts.hostname}{port}"


def _format_duration(seconds: float) -> str:
    """Format seconds in words, rounded up.

    >>> _format_duration(3599.9), _format_duration(200_000)
    ('60 minutes', '56 hours')
    """
    minutes = math.ceil(min(seconds, 1e9) / 60)
    return f"{minutes} minutes" if minutes <= 120 else f"{math.ceil(minutes / 60)} hours"


def _shorten(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:199]}…"


@dataclass(frozen=True, slots=True)
class FailedReply:
    """Why there is no reply, whether asking again may help, and the seconds that the server wants as a pause.

    `adapted` is set after the server named a setting that it does not accept: asking again without it is not a second
    try. `foreign` means that the body is neither JSON nor its beginning, or JSON of another kind, as from a web server.
    """

    problem: str
    transient: bool = True
    wait: float | None = None
    adapted: bool = False
    foreign: bool = False


def read_reply(body: bytes, max_tokens: int = 0) -> Reply | FailedReply:
    """Read the body of a successful response; whatever it holds, nothing is raised.

    `max_tokens` is the limit that was asked for. A much longer reply is refused: a run holds all its replies in memory.

    >>> read_reply(b'{"choices": [{"message": {"content": "yes"}}]}').text
    'yes'
    >>> read_reply(b'{"choices": []}').problem
    'a reply without choices'
    """
    try:
        data = parse_json(body.decode("utf-8-sig"))
    except (BrokenJson, UnicodeDecodeError):
        shown = body[:_MOST_SHOWN].decode(errors="replace")
        return FailedReply(f"a body that is not JSON ({shown})", foreign=_is_foreign(body))
    if not isinstance(data, dict):
        return FailedReply("a body that is not a JSON object", foreign=True)
    if data.get("error"):
        return FailedReply(f"an error instead of a reply ({read_error(data).get('message') or data['error']})")
    choices = data.get("choices")
    if not isinstance(choices, list) or not choices:
        return FailedReply("a reply without choices", foreign="choices" not in data)
    message = choices[0].get("message") if isinstance(choices[0], dict) else None
    if not isinstance(message, dict):
        return FailedReply("a choice without a message")
    content = message.get("content")
    if content is not None and not isinstance(content, str):
        return FailedReply("a message whose content is not text")
    longest = max(_LONGEST_MESSAGE, _PER_TOKEN * max_tokens)
    if content is not None and len(content) > longest:
        return FailedReply(
            f"a message of {len(content)} characters; at most {longest} are accepted for {max_tokens} tokens",
            transient=False,
        )
    usage = data.get("usage")
    return Reply(
        content,
        _read_count(usage, "prompt_tokens"),
        _read_count(usage, "completion_tokens"),
        finish=_read_finish(choices[0].get("finish_reason")),
        model=_read_model_name(data.get("model")),
    )


def _is_foreign(body: bytes) -> bool:
    """Whether a body is neither JSON nor the beginning of it.

    >>> _is_foreign(b"<html>503 Bad Gateway</html>"), _is_foreign(b'{"error": "overloaded"}')
    (True, False)
    """
    return body.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] not in (b"{", b"[")


def read_error(body: Any) -> dict[str, Any]:
    """The `error` object of a body in any of its usual forms; empty if there is none."""
    if isinstance(body, bytes):
        try:
            body = parse_json(body.decode("utf-8-sig"))
        except (BrokenJson, UnicodeDecodeError):
            return {}
    error = body.get("error") if isinstance(body, dict) else None
    return error if isinstance(error, dict) else {"message": error} if isinstance(error, str) else {}


def read_retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds of a Retry-After header, which may be an HTTP date; None if it is absent, invalid or infinite.

    >>> read_retry_after({"retry-after": "7"}), read_retry_after({"retry-after": "soon"})
    (7.0, None)
    """
    value = headers.get("retry-after")
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
        except (ValueError, TypeError, OverflowError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _read_model_name(name: object) -> str:
    """The name under which the server answered, as one printable line."""
    return bounded(visible(name.strip())) if isinstance(name, str) else ""


def _read_count(usage: Any, name: str) -> int:
    value = usage.get(name) if isinstance(usage, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS else 0


def _read_finish(reason: object) -> Literal["", "length", "content_filter"]:
    return "length" if reason == "length" else "content_filter" if reason == "content_filter" else ""


class Secrets:
    """Texts that no output may contain, as they are or as programs write them.

    These forms are known: plain, with percent signs, with JSON or HTML escapes, and base64 of the whole.

    >>> Secrets(["sk-1/2345"]).hide("Bearer sk-1/2345, sk-1%2f2345 or c2stMS8yMzQ1")
    'Bearer [hidden], [hidden] or [hidden]'
    """

    def __init__(self, values: Iterable[str]) -> None:
        forms = {form for value in values if len(value) >= _SHORTEST_SECRET for form in _spell(value)}
        longest_first = sorted(forms, key=lambda form: (-len(form), form))
        self._pattern = re.compile("|".join(map(_match_quoted, longest_first)), re.IGNORECASE) if forms else None

    def hide(self, text: str) -> str:
        """The text with each secret replaced by `HIDDEN`."""
        return self._pattern.sub(HIDDEN, text) if self._pattern else text


def _spell(value: str) -> Iterable[str]:
    encoded = base64.b64encode(value.encode()).decode().rstrip("=")
    yield from (value, quote(value, safe=""), quote(value), quote_plus(value), html.escape(value))
    yield from (json.dumps(value)[1:-1], encoded, encoded.replace("+", "-").replace("/", "_"))


def _match_quoted(form: str) -> str:
    """A pattern of the form with any number of backslashes before each character, for JSON within JSON."""
    return r"\\*".join(re.escape(letter) for letter in form if letter != "\\") or re.escape(form)


def _read_key(url: str) -> str:
    """The key for a server: `SURGEVAL_API_KEY`, or `OPENAI_API_KEY` for api.openai.com only; empty if there is none."""
    names = ["SURGEVAL_API_KEY"]
    if urlsplit(url).hostname == "api.openai.com":
        names.append("OPENAI_API_KEY")
    for name in names:
        key = os.environ.get(name, "").strip()
        if not (key.isascii() and key.isprintable()):
            raise BadInput(f"{name} has a control character or a letter outside ASCII. Set it to the key alone.")
        if key:
            return key
    return ""


def _secrets_of(key: str, url: str, proxy: SplitResult | None) -> Secrets:
    """The secrets of asking a server: the key, the values in its address's query, a proxy's login."""
    values = [key]
    for part in filter(None, urlsplit(url).query.split("&")):
        name, equals, value = part.partition("=")
        stated = value if equals else name
        values += [stated, unquote_plus(stated)]
    if proxy is not None and proxy.username is not None:
        login = unquote(proxy.username), unquote(proxy.password or "")
        values += [login[1], ":".join(login)]
    return Secrets(values)
