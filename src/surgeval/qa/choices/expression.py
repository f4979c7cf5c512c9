"""A choice written at one place of a reply: "(C) Forceps", "B.", "option 3", or an option's own text.

`Options.at(text, position)` reads it or says None. A letter counts only where it cannot be a word: "A surgeon",
"I see", "C-arm" and "Answer" hold no choice. Numbers count from 1, and only where no option is that number's text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from surgeval.qa.choices.spelling import spelled
from surgeval.qa.choices.wording import CLOSE, NOUN, OPEN, OPENING

__all__ = ["AMBIGUOUS", "OUT_OF_RANGE", "Expression", "Options"]

AMBIGUOUS: Final = -1
OUT_OF_RANGE: Final = -2

_SYMBOL = re.compile(
    rf"(?P<before>{OPEN})(?P<noun>{NOUN})(?P<open>{OPEN})(?P<symbol>[A-Za-z]|\d{{1,4}})(?![\w’'-]\w)(?!\w|\.[a-z]\b)(?P<close>{CLOSE})",
    re.I,
)
_QUOTE = re.compile(OPEN)
# What may follow a letter that could be a word (a, A, I): the end, punctuation, or a word no noun phrase starts with.
_MARKS = r"[.,;:!?…)\]}>。，、；！？：]"
_STOP = re.compile(
    rf"$|\n| ?{_MARKS}| ?[/&=<]| ?(?:[-–—]|->|→) "
    r"| (?:because|since|as|for|and|or|but|due|is|was|would|which|given|based|if|"
    r"at|it is|seems|appears|looks|must|should|fits|matches)\b"
)
_FULL_STOP = re.compile(rf"$|\n| ?{_MARKS}")
_DECIMAL = re.compile(r"[.,]\d| ?%|°")
_DELIMITER = re.compile(r" ?[.:,)\]/=|–—-]{0,2} ?\n?" + OPEN)
_ALSO = r"(?:also |both |possibly |maybe |perhaps |even )?(?:the |an? )?"
_AND = re.compile(rf"(?: ?(?P<mark>[,/&+;])| ?,? ?(?:and|or|und|oder|as well as|and/or)\b) ?{_ALSO}")
_SECOND = re.compile(
    rf"{NOUN}(?:[{OPENING}]{{1,4}} ?(?P<held>[A-Za-z])(?!\w)(?![\"'] ?:)|(?P<bare>[A-Z])(?!\w|['’-]\w))"
)
_PHRASE_END = re.compile(rf"$|\n| ?{_MARKS}| ?[/&]| (?:and|or|are|both)\b")
_AFTER_AND = re.compile(rf"{_PHRASE_END.pattern}| (?:is|could|may|might|would|seem)")


@dataclass(frozen=True, slots=True)
class Expression:
    """A choice (index, AMBIGUOUS or OUT_OF_RANGE), where it ends, and how it is written."""

    index: int
    end: int
    symbol: bool  # a letter or number, not an option's text alone
    marked: bool  # in brackets, after a noun such as "option", or followed by punctuation: surely not a word
    number: bool = False
    texted: bool = False  # the option's own text stands there


class Options:
    """The options of one question, as they may be written."""

    def __init__(self, options: Sequence[str]) -> None:
        self.count = len(options)
        texts = [spelled(option).rstrip(" .") for option in options]
        known = Counter(text.casefold() for text in texts)
        self.texts = {index: text for index, text in enumerate(texts) if text and known[text.casefold()] == 1}
        longest = sorted(self.texts, key=lambda index: -len(self.texts[index]))
        self._groups = longest
        words = ["[ _-]?".join(re.escape(word) for word in re.split(r"[ _-]", self.texts[k])) for k in longest]
        pattern = "|".join(f"({word})" for word in words) or "(?!)"
        self.anywhere = re.compile(rf"(?<!\w)(?:{pattern})(?!\w)", re.I)

    def named(self, match: re.Match[str]) -> int:
        """The option that a match of `anywhere` is."""
        return self._groups[(match.lastindex or 1) - 1]

    def text_at(self, text: str, position: int) -> tuple[int, int] | None:
        """The option whose text stands at a position, perhaps in quotes, and its end."""
        opened = _QUOTE.match(text, position)
        match = self.anywhere.match(text, opened.end() if opened else position) or self.anywhere.match(text, position)
        return (self.named(match), match.end()) if match else None

    def at(self, text: str, position: int) -> Expression | None:
        """The choice written at a position; AMBIGUOUS where a second one is joined to it ("A or C")."""
        choice = self._first_at(text, position)
        if choice is None or choice.index < 0:
            return choice
        end = self._second_end(text, choice.end, choice.index)
        return choice if end is None else Expression(AMBIGUOUS, end, symbol=choice.symbol, marked=True)

    def _first_at(self, text: str, position: int) -> Expression | None:
        named = self.text_at(text, position)
        symbol = self._symbol_at(text, position)
        if symbol is None or (named and (symbol.number or named[1] > symbol.end)):
            return Expression(named[0], named[1], symbol=False, marked=True, texted=True) if named else None
        return symbol

    def _second_end(self, text: str, end: int, index: int) -> int | None:
        """Where a second, different choice ends that "and", "or" or a comma joins to the first."""
        joint = _AND.match(text, end)
        if joint is None:
            return None
        after = _PHRASE_END if joint["mark"] else _AFTER_AND  # "B, A is wrong" chooses B, "B or A is right" neither
        if letter := _SECOND.match(text, joint.end()):
            other = ord((letter["held"] or letter["bare"]).upper()) - ord("A")
            ends = letter["held"] or after.match(text, letter.end())
            return letter.end() if ends and other != index and other < self.count else None
        named = self.text_at(text, joint.end())
        return named[1] if named and named[0] != index and after.match(text, named[1]) else None

    def _symbol_at(self, text: str, position: int) -> Expression | None:
        match = _SYMBOL.match(text, position)
        if match is None:
            return None
        sign = match["symbol"]
        marked = any(match[part].strip() for part in ("before", "noun", "open", "close"))
        if sign.isdigit():
            if _DECIMAL.match(text, match.end("symbol")) or not (marked or _FULL_STOP.match(text, match.end())):
                return None
            if named := self.text_at(text, match.start("symbol")):
                return Expression(named[0], named[1], symbol=False, marked=True, texted=True)
            index = int(sign) - 1
            marked = True
        else:
            ended = bool(_STOP.match(text, match.end()))
            if not marked and not ended and (sign in "AI" or sign.islower()):
                return None
            marked = marked or bool(_FULL_STOP.match(text, match.end()))
            index = ord(sign.upper()) - ord("A")
        if not 0 <= index < self.count:
            return Expression(OUT_OF_RANGE, match.end(), symbol=True, marked=marked, number=sign.isdigit())
        return self._with_text(text, index, match.end(), marked, sign.isdigit())

    def _with_text(self, text: str, index: int, end: int, marked: bool, number: bool) -> Expression:
        """The choice with the option text that may follow it: its own confirms, another's contradicts."""
        delimiter = _DELIMITER.match(text, end)
        named = self.text_at(text, delimiter.end()) if delimiter and delimiter.end() > end else None
        own = self._own_text(text, index, delimiter.end() if delimiter else end)
        if own is not None:
            return Expression(index, own, symbol=True, marked=True, number=number, texted=True)
        same_line = delimiter is not None and "\n" not in delimiter[0]
        if named and same_line and self._whole(text, named[1]):
            return Expression(AMBIGUOUS, named[1], symbol=True, marked=True, number=number)
        return Expression(index, end, symbol=True, marked=marked, number=number)

    def _own_text(self, text: str, index: int, position: int) -> int | None:
        own = self.texts.get(index)
        if own is None or text[position : position + len(own)].casefold() != own.casefold():
            return None
        return position + len(own)

    @staticmethod
    def _whole(text: str, end: int) -> bool:
        """Whether an option's text ends where a phrase ends: "B. Forceps" is, "B. Forceps are not used" is not."""
        return bool(_FULL_STOP.match(text, end))
