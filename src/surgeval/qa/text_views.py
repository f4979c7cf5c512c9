"""The readings of an answer that a judge model might take: as it looks, without look-alike letters, decoded.

Attacks use the difference between what a filter reads and what a model reads, so the screening rules are applied to
every reading. `strip_invisible` is also applied to every text in the judge's prompt.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import re
import unicodedata
from collections.abc import Iterator
from urllib.parse import unquote

__all__ = ["DECODED", "count_invisible", "decode_tags", "readings", "strip_invisible"]

# Readings whose encoding does not occur by accident.
DECODED = ("base64", "base32", "hexadecimal", "binary digits", "character codes", "morse")
_FILLERS = frozenset("\u034f\u115f\u1160\u3164\uffa0\u2800\u180b\u180c\u180d")  # invisible, but not of a format class
_HIDDEN_CLASSES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
_LINE_BREAKS = re.compile("\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
# Letters that look like Latin ones and that NFKC keeps apart.
_LOOKALIKES = str.maketrans(
    "абвгдеѕіјкӏмнопрстухԛԝһѵԁАВЕЅІЈКМНОРСТУХԚԜαβγικνορτυχωεηΑΒΕΖΗΙΚΜΝΟΡΤΥΧɑɡıłøđ",
    "a6brdesijklmhonpctyxqwhvdABESIJKMHOPCTYXQWaByikvoptuxwenABEZHIKMNOPTYXagilod",
)
_LEET = str.maketrans("0134578@$!|", "oieastbasil")
_LEET_WORD = re.compile(r"\b(?=\w*[0134578@$!|])(?=\w*[a-z]{2})[\w@$!|]{3,}\b")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")
_HEX = re.compile(r"(?:[0-9A-Fa-f]{2}[ :]?){8,}")
_BASE32 = re.compile(r"\b[A-Z2-7]{16,}={0,6}")
_BINARY = re.compile(r"(?:[01]{8} ?){4,}")
_CODES = re.compile(r"\b\d{2,3}(?:[ ,;]{1,2}\d{2,3}){5,}\b")
_MORSE = re.compile(r"(?:[.-]{1,5}(?: +| */ *)){4,}[.-]{1,5}")
_MORSE_LETTERS = {
    ".-": "a", "-...": "b", "-.-.": "c", "-..": "d", ".": "e", "..-.": "f", "--.": "g", "....": "h", "..": "i",
    ".---": "j", "-.-": "k", ".-..": "l", "--": "m", "-.": "n", "---": "o", ".--.": "p", "--.-": "q", ".-.": "r",
    "...": "s", "-": "t", "..-": "u", "...-": "v", ".--": "w", "-..-": "x", "-.--": "y", "--..": "z",
}  # fmt: skip
_ESCAPE = re.compile(r"\\u\{?([0-9A-Fa-f]{4,6})\}?|\\x([0-9A-Fa-f]{2})")
_SPACED = re.compile(r"(?<!\w)\w(?:[ .\-_*·|/]{1,3}\w(?!\w)){4,}")
_MAX_DEPTH = 2


def strip_invisible(text: str) -> str:
    r"""The text without invisible characters; every kind of line break becomes a newline.

    >>> strip_invisible("COR\u00adRECT\u200b\r\nyes")
    'CORRECT\nyes'
    """
    if text.isascii() and text.isprintable():
        return text  # nearly every answer; the rest checks each character
    lines = _LINE_BREAKS.split(text)
    return "\n".join("".join(c for c in line if c == "\t" or not _is_invisible(c)) for line in lines)


def count_invisible(text: str) -> int:
    r"""The number of invisible characters. A byte-order mark at the start is not counted, because editors add it.

    >>> count_invisible("\ufeffclip"), count_invisible("cl\u200b\u200bip")
    (0, 2)
    """
    if text.isascii() and text.isprintable():
        return 0
    body = _LINE_BREAKS.sub("", text.removeprefix("\ufeff"))
    return sum(c != "\t" and _is_invisible(c) for c in body)


def decode_tags(text: str) -> str:
    """The text that Unicode tag characters spell: a model reads them, a person does not see them."""
    return "".join(chr(ord(c) - 0xE0000) for c in text if 0xE0020 <= ord(c) <= 0xE007E)


def readings(text: str) -> Iterator[tuple[str, str]]:
    """Pairs (decoding, reading). Readings are in lower case, without accents on Latin letters, with single spaces.

    >>> [reading for how, reading in readings("Vеrdісt:  ÓK") if how == "look-alike letters replaced"]
    ['verdict: ok']
    """
    seen: set[str] = set()
    for how, source in _find_sources(text):
        visible = strip_invisible(unicodedata.normalize("NFKC", source))
        plain = ((how, visible),)
        alike = (
            ()
            if visible.isascii()
            else ((_join_names(how, "look-alike letters replaced"), visible.translate(_LOOKALIKES)),)
        )
        for name, reading in plain + alike:
            tidy = _tidy(reading)
            for label, view in (
                (name, tidy),
                (_join_names(name, "digits read as letters"), _LEET_WORD.sub(_unleet, tidy)),
            ):
                if view not in seen:
                    seen.add(view)
                    yield label, view


def _is_invisible(character: str) -> bool:
    if " " <= character <= "~":
        return False
    variation = "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef"
    return variation or character in _FILLERS or unicodedata.category(character) in _HIDDEN_CLASSES


def _find_sources(text: str) -> Iterator[tuple[str, str]]:
    """The text and what it encodes; an encoding inside an encoding is decoded too."""
    yield "", text
    sources = [("", text)]
    for _ in range(_MAX_DEPTH):
        sources = [(_join_names(how, name), part) for how, whole in sources for name, part in _decode(whole)]
        yield from sources
    message = decode_tags(text)
    if message:
        yield "invisible tag characters", message
    yield "rot13", codecs.encode(text, "rot13")
    yield "read backwards", "\n".join(line[::-1] for line in strip_invisible(text).split("\n"))
    closed = _SPACED.sub(_join_letters, strip_invisible(unicodedata.normalize("NFKC", text)))
    if closed != text:
        yield "letters closed up", closed


def _decode(text: str) -> Iterator[tuple[str, str]]:
    if "&" in text and html.unescape(text) != text:
        yield "HTML entities", html.unescape(text)
    if "%" in text and unquote(text) != text:
        yield "percent encoding", unquote(text)
    if "\\" in text:
        plain = _ESCAPE.sub(_unescape, text)
        if plain != text:
            yield "backslash escapes", plain
    for match in _BASE64.finditer(text):
        try:
            data = base64.b64decode(_pad(match[0].rstrip("=")), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            continue
        yield from (("base64", part) for part in _decode_text(data))
    for match in _BASE32.finditer(text):
        token = match[0].rstrip("=")
        try:
            data = base64.b32decode(token + "=" * (-len(token) % 8))
        except binascii.Error:
            continue
        yield from (("base32", part) for part in _decode_text(data))
    for match in _BINARY.finditer(text):
        yield from (
            ("binary digits", part) for part in _decode_text(bytes(int(b, 2) for b in re.findall("[01]{8}", match[0])))
        )
    for match in _CODES.finditer(text):
        codes = [int(code) for code in re.findall(r"\d+", match[0])]
        if all(32 <= code < 127 for code in codes):
            yield "character codes", "".join(map(chr, codes))
    for match in _MORSE.finditer(text):
        words = re.split(r" */ *| {3,}", match[0])
        yield "morse", " ".join("".join(_MORSE_LETTERS.get(code, "?") for code in word.split()) for word in words)
    for match in _HEX.finditer(text):
        yield from (("hexadecimal", part) for part in _decode_text(bytes.fromhex(re.sub("[ :]", "", match[0]))))


def _pad(token: str) -> str:
    token = token.replace("+", "-").replace("/", "_")
    return token + "=" * (-len(token) % 4)


def _decode_text(data: bytes) -> Iterator[str]:
    """The bytes as text, if they are printable text; an article number may decode to something else."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return
    if text.isprintable() or all(c.isprintable() or c.isspace() for c in text):
        yield text


def _unescape(match: re.Match[str]) -> str:
    code = int(match[1] or match[2], 16)
    return chr(code) if code < 0x110000 else match[0]


def _join_letters(match: re.Match[str]) -> str:
    """`i g n o r e  t h e` → `ignore the`: the wider gap ends the word."""
    words = re.split(r" {2,}| ?[|/] ?", match[0])
    return " ".join(re.sub(r"\W|_", "", word) for word in words)


def _unleet(match: re.Match[str]) -> str:
    return match[0].translate(_LEET)


def _tidy(text: str) -> str:
    composed = text.lower() if text.isascii() else _without_accents(text.casefold())
    return "\n".join(" ".join(line.split()) for line in composed.split("\n")).strip()


def _without_accents(text: str) -> str:
    """Latin letters without their marks; other scripts keep theirs."""
    characters: list[str] = []
    latin = False
    for character in unicodedata.normalize("NFD", text):
        if unicodedata.combining(character):
            if not latin:
                characters.append(character)
            continue
        latin = character.isascii()
        characters.append(character)
    return unicodedata.normalize("NFC", "".join(characters))


def _join_names(first: str, second: str) -> str:
    return f"{first}, {second}" if first else second
