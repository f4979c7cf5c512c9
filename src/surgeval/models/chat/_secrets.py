"""Keys of servers: read cleanly, and kept out of every text that leaves the chat client.

A server may echo what it was sent, in a reply or in an error. `Secrets.hide` replaces each known secret, as it is or as
programs write it (percent signs, JSON and HTML escapes, base64), before the text is stored, printed or cut.
"""

from __future__ import annotations

import base64
import html
import json
import os
import re
import unicodedata
from collections.abc import Iterable
from urllib.parse import SplitResult, quote, quote_plus, unquote, unquote_plus, urlsplit

from surgeval.errors import BadInput

__all__ = ["HIDDEN", "Secrets", "read_key", "secrets_of"]

HIDDEN = "[hidden]"
_LONG = 16  # only of a long secret is a part, or a disguise, no word that an honest answer might hold
_SHORTEST = 6  # anything shorter ("EMPTY", "1") is no secret, and hiding it would change honest answers


class Secrets:
    """Texts that must not be seen.

    >>> Secrets(["sk-1/2345"]).hide("Bearer sk-1/2345, sk-1%2f2345 or c2stMS8yMzQ1")
    'Bearer [hidden], [hidden] or [hidden]'
    """

    def __init__(self, values: Iterable[str]) -> None:
        secrets = [value for value in values if len(value) >= _SHORTEST]
        self._folded = {_fold(value)[: len(value) * 3 // 4] for value in secrets if len(value) >= _LONG}
        forms = {form for value in secrets for form in _forms(value)}
        longest_first = sorted(forms, key=lambda form: (-len(form), form))
        self._pattern = re.compile("|".join(map(_escaped, longest_first)), re.IGNORECASE) if forms else None

    def hide(self, text: str) -> str:
        """The text without any of them; one that holds most of a secret in disguise is hidden as a whole."""
        if self._pattern is None:
            return text
        shown = self._pattern.sub(HIDDEN, text)
        return HIDDEN if any(start in view for view in _views(shown) for start in self._folded) else shown


def read_key(url: str) -> str:
    """The key for a server: `SURGEVAL_API_KEY`, or `OPENAI_API_KEY` for api.openai.com only; "" where there is none."""
    names = ["SURGEVAL_API_KEY"]
    if urlsplit(url).hostname == "api.openai.com":
        names.append("OPENAI_API_KEY")
    for name in names:
        key = os.environ.get(name, "").strip()
        if not (key.isascii() and key.isprintable()):
            raise BadInput(f"{name}: found a key with a control character or a letter outside ASCII, expected one line")
        if key:
            return key
    return ""


def secrets_of(key: str, url: str, proxy: SplitResult | None) -> Secrets:
    """All that is secret about asking a server: the key, the values in its address's query, a proxy's login."""
    values = [key]
    for part in filter(None, urlsplit(url).query.split("&")):
        name, equals, value = part.partition("=")
        stated = value if equals else name
        values += [stated, unquote_plus(stated)]
    if proxy is not None and proxy.username is not None:
        login = unquote(proxy.username), unquote(proxy.password or "")
        values += [login[1], ":".join(login)]
    return Secrets(values)


def _fold(text: str) -> str:
    """The letters and signs that a reader would see, without spaces, marks of emphasis and what is not shown."""
    seen = unicodedata.normalize("NFKC", text).casefold()
    return "".join(c for c in seen if not (c.isspace() or c in "*`\\" or unicodedata.category(c) == "Cf"))


def _views(text: str) -> Iterable[str]:
    """The text as it is and decoded once: spaced or wrapped, in wide letters, percent signs or entities."""
    yield from {_fold(text), _fold(unquote(text)), _fold(html.unescape(text))}


def _forms(value: str) -> Iterable[str]:
    yield value
    yield quote(value, safe="")
    yield quote(value)
    yield quote_plus(value)
    yield html.escape(value)
    yield json.dumps(value)[1:-1]
    yield from _base64(value.encode())


def _escaped(form: str) -> str:
    """A pattern of the form with any number of backslashes before each character, however often it was quoted."""
    return r"\\*".join(re.escape(letter) for letter in form if letter != "\\") or re.escape(form)


def _base64(data: bytes) -> Iterable[str]:
    """What the bytes look like inside base64, at each of the three places where they can begin."""
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + data).decode()
        first = -(-before * 8 // 6)
        last = (before + len(data)) * 8 // 6
        whole = encoded[first:last]
        yield whole
        yield whole.replace("+", "-").replace("/", "_")
