"""What a server's body says: a reply, or why there is none. Whatever a body holds, reading it raises nothing."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Literal

from surgeval.errors import bounded, visible
from surgeval.files import BrokenJson, parse_json
from surgeval.qa import Reply

__all__ = ["FailedReply", "error_of", "is_foreign", "read_reply", "retry_after"]

_LONGEST = 1 << 16  # characters of a message that was asked to be short: thinking and white space may be many times it
_PER_TOKEN = 32  # characters: a usual token has four, the longest of known vocabularies a run of spaces
_MOST_TOKENS = 10**9  # more is no count, and sums of a run must stay numbers that tables can hold
_SHOWN = 1 << 16  # characters of an unreadable body that are looked at


@dataclass(frozen=True, slots=True)
class FailedReply:
    """Why there is no reply, whether asking again may help, and how long the server wants to be left alone.

    `learnt` is set where the server said which of our settings it does not take: the same question, asked without it,
    is no second try. `foreign` means that the body is not even the start of JSON, or JSON of another kind, as from a
    server of web pages.
    """

    problem: str
    transient: bool = True
    wait: float | None = None
    learnt: bool = False
    foreign: bool = False


def read_reply(body: bytes, max_tokens: int = 0) -> Reply | FailedReply:
    """The reply in a response body that HTTP called a success; `max_tokens` is what it was asked to have at most.

    A run holds all its replies: a server that sends much more than it was asked for would take all memory.

    >>> read_reply(b'{"choices": [{"message": {"content": "yes"}}]}').text
    'yes'
    >>> read_reply(b'{"choices": []}').problem
    'a reply without choices'
    """
    try:
        data = parse_json(body.decode("utf-8-sig"))
    except (BrokenJson, UnicodeDecodeError):
        shown = body[:_SHOWN].decode(errors="replace")
        return FailedReply(f"a body that is no JSON ({shown})", foreign=is_foreign(body))
    if not isinstance(data, dict):
        return FailedReply("a body that is no JSON object", foreign=True)
    if data.get("error"):
        return FailedReply(f"an error in place of a reply ({error_of(data).get('message') or data['error']})")
    choices = data.get("choices")
    if not isinstance(choices, list) or not choices:
        return FailedReply("a reply without choices", foreign="choices" not in data)
    message = choices[0].get("message") if isinstance(choices[0], dict) else None
    if not isinstance(message, dict):
        return FailedReply("a choice without a message")
    content = message.get("content")
    if content is not None and not isinstance(content, str):
        return FailedReply("a message whose content is no text")
    longest = max(_LONGEST, _PER_TOKEN * max_tokens)
    if content is not None and len(content) > longest:
        return FailedReply(
            f"a message of {len(content)} characters, more than {longest} for {max_tokens} tokens", transient=False
        )
    usage = data.get("usage")
    return Reply(
        content,
        _count(usage, "prompt_tokens"),
        _count(usage, "completion_tokens"),
        finish=_finish(choices[0].get("finish_reason")),
        model=_model_name(data.get("model")),
    )


def is_foreign(body: bytes) -> bool:
    """Whether a body is neither JSON nor the start of it.

    >>> is_foreign(b"<html>503 Bad Gateway</html>"), is_foreign(b'{"error": "overloaded"}')
    (True, False)
    """
    return body.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] not in (b"{", b"[")


def error_of(body: Any) -> dict[str, Any]:
    """The `error` object of a body, in whichever of the usual shapes."""
    if isinstance(body, bytes):
        try:
            body = parse_json(body.decode("utf-8-sig"))
        except (BrokenJson, UnicodeDecodeError):
            return {}
    error = body.get("error") if isinstance(body, dict) else None
    return error if isinstance(error, dict) else {"message": error} if isinstance(error, str) else {}


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds, or an HTTP date; None where the server names neither, or a time without end.

    >>> retry_after({"retry-after": "7"}), retry_after({"retry-after": "soon"})
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


def _model_name(name: object) -> str:
    """The name under which the server answered, in one printable line."""
    return bounded(visible(name.strip())) if isinstance(name, str) else ""


def _count(usage: Any, name: str) -> int:
    value = usage.get(name) if isinstance(usage, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS else 0


def _finish(reason: object) -> Literal["", "length", "content_filter"]:
    return "length" if reason == "length" else "content_filter" if reason == "content_filter" else ""
