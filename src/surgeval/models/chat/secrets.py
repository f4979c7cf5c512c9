"""Keys of servers: read cleanly, and kept out of every text that leaves the chat client.

A server may echo what it was sent, in a reply or in an error. `Secrets.hide` replaces each known secret, as it is or as
programs write it (percent signs, JSON and HTML escapes, hex, base32, base64), before a text is stored, printed or cut.
A text that holds one letter by letter in escapes or codes (`&amp;#115;`, `0x73`, `U+0073`, `115 107`), or a part of a
long one in disguise (spaced, reversed, encoded once or twice), is hidden as a whole.
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
_WINDOW = 12  # letters and digits of a long secret that no other text holds by chance
_VARIED = 5  # of them different: "000000000000" is in many texts
_SHORTEST = 6  # anything shorter ("EMPTY", "1") is no secret, and hiding it would change honest answers
_ROUNDS = 2  # of decoding
_QUOTED = 4  # times that percent signs or entities may have been escaped
_CODE = re.compile(r"(?:\\[ux]|0x|u\+|%u)\{?0*([0-9a-f]{2})[\s,;}]*", re.IGNORECASE)
_CODE_SIGNS = ("\\", "0x", "0X", "u+", "U+", "%u", "%U")  # looked for first: most texts have none
_NUMBER = re.compile(r"[0-9]+")
_BASES = {10: re.compile(r"0?[0-9]{2,3}"), 8: re.compile(r"0?[0-7]{2,3}"), 2: re.compile(r"[01]{6,8}")}
_RUN = re.compile(r"[A-Za-z0-9+/_-]{16,}")
_HEX = re.compile(r"[0-9A-Fa-f]+")
_BASE32 = re.compile(r"[A-Za-z2-7]+")


class Secrets:
    """Texts that must not be seen.

    >>> Secrets(["sk-1/2345"]).hide("Bearer sk-1/2345, sk-1%2f2345 or c2stMS8yMzQ1")
    'Bearer [hidden], [hidden] or [hidden]'
    """

    def __init__(self, values: Iterable[str]) -> None:
        secrets = [value for value in values if len(value) >= _SHORTEST]
        long = [value for value in secrets if len(value) >= _LONG]
        self._most = {part for value in long for part in _parts(_fold(value), len(_fold(value)) * 3 // 4)}
        self._windows = {window for value in long for form in _disguises(value) for window in _windows(form)}
        forms = {form for value in secrets for form in _forms(value)}
        longest_first = sorted(forms, key=lambda form: (-len(form), form))
        self._pattern = re.compile("|".join(map(_escaped, longest_first)), re.IGNORECASE) if forms else None

    def hide(self, text: str) -> str:
        """The text without any of them; one that holds a part of a long one in disguise is hidden as a whole."""
        if self._pattern is None:
            return text
        shown = self._pattern.sub(HIDDEN, text)
        readings = _readings(shown)
        spelt = any(map(self._pattern.search, readings - {shown}))
        return HIDDEN if spelt or any(map(self._holds, _views(shown, readings))) else shown

    def _holds(self, view: str) -> bool:
        return not self._windows.isdisjoint(_parts(view, _WINDOW)) or any(part in view for part in self._most)


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
    """The letters and digits that a reader would see, in small letters."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text).casefold()))


def _parts(text: str, size: int) -> Iterable[str]:
    return (text[first : first + size] for first in range(len(text) - size + 1)) if size else ()


def _disguises(value: str) -> Iterable[str]:
    yield value
    yield value[::-1]
    yield from _encoded(value.encode())


def _windows(form: str) -> Iterable[str]:
    """The parts of a form that give it away: those that look like a word may stand in any answer."""
    letters = "".join(filter(str.isalnum, unicodedata.normalize("NFKC", form)))
    for part in _parts(letters, _WINDOW):
        word = part.isalpha() and (part[1:].islower() or part.isupper())
        if not word and len(set(part)) >= _VARIED:
            yield part.casefold()


def _views(text: str, readings: set[str]) -> Iterable[str]:
    """The letters of a text's readings, and of those of what its runs of hex, base32 or base64 stand for."""
    yield from {_fold(reading) for reading in readings}
    for _ in range(_ROUNDS):
        text = " ".join(_decoded(text))
        if not text:
            return
        yield from {_fold(reading) for reading in _readings(text)}


def _readings(text: str) -> set[str]:
    """The text as it is, without percent signs, entities or escapes, and what its numbers spell as characters."""
    plain = text
    for _ in range(_QUOTED):
        before, plain = plain, html.unescape(unquote(plain))
        if plain == before:
            break
    readings = {text, unquote(text), html.unescape(text), plain}
    if any(sign in plain for sign in _CODE_SIGNS):
        readings.add(_CODE.sub(lambda code: chr(int(code[1], 16)), plain))
    numbers = _NUMBER.findall(plain)
    if len(numbers) >= _SHORTEST:
        readings.update(_spelt(numbers, base) for base in _BASES)
    return readings


def _spelt(numbers: Iterable[str], base: int) -> str:
    """What the numbers that can be codes of characters spell, written in this base."""
    codes = (int(number, base) for number in numbers if _BASES[base].fullmatch(number))
    return "".join(chr(code) for code in codes if 32 < code < 127)


def _decoded(text: str) -> Iterable[str]:
    """What each long run of letters, digits and signs may stand for; lines that were wrapped are joined."""
    for run in _RUN.findall("".join(map(str.strip, text.splitlines()))):
        if _HEX.fullmatch(run):
            for first in range(2):
                whole = run[first:]
                yield bytes.fromhex(whole[: len(whole) // 2 * 2]).decode("latin-1")
        if _BASE32.fullmatch(run):
            whole = run[: len(run) // 8 * 8].upper()
            yield base64.b32decode(whole).decode("latin-1")
        plain = run.replace("-", "+").replace("_", "/")
        for first in range(4):
            whole = plain[first:]
            yield base64.b64decode(whole[: len(whole) // 4 * 4]).decode("latin-1")


def _forms(value: str) -> Iterable[str]:
    yield value
    yield quote(value, safe="")
    yield quote(value)
    yield quote_plus(value)
    yield html.escape(value)
    yield json.dumps(value)[1:-1]
    yield from _encoded(value.encode())


def _escaped(form: str) -> str:
    """A pattern of the form with any number of backslashes before each character, however often it was quoted."""
    return r"\\*".join(re.escape(letter) for letter in form if letter != "\\") or re.escape(form)


def _encoded(data: bytes) -> Iterable[str]:
    """What the bytes look like in hex, and inside base32 and base64 at each of the places where they can begin."""
    yield data.hex()
    for encode, bits, places in ((base64.b32encode, 5, 5), (base64.b64encode, 6, 3)):
        for before in range(places):
            encoded = encode(bytes(before) + data).decode()
            whole = encoded[-(-before * 8 // bits) : (before + len(data)) * 8 // bits]
            yield whole
            yield whole.replace("+", "-").replace("/", "_")
