"""Finding the words of a label space in a text: one pattern per component, the longest spelling first.

Spans count characters of the text as it was given, since a model's tokens are found by them; so nothing is rewritten
before it is searched. Words of a spelling may be apart by spaces, "-" or "_", or by nothing ("gallbladder").
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from surgeval.vocab import LabelSpace, other_instruments, spellings

__all__ = ["OUTSIDE", "Lexicon", "Word", "lexicon"]

OUTSIDE = -1
_GAP = r"[ \t_-]{0,2}"


@dataclass(frozen=True, slots=True)
class Word:
    """A class (or OUTSIDE) named at text[start:end]."""

    number: int
    start: int
    end: int


class Lexicon:
    """The spellings of one component."""

    def __init__(self, known: dict[str, int]) -> None:
        self._ids = {_key(spelling): number for spelling, number in known.items()}
        longest = sorted(known, key=lambda spelling: (-len(spelling), spelling))
        patterns = (_GAP.join(re.escape(word) for word in spelling.split(" ")) for spelling in longest)
        self._pattern = re.compile(rf"(?<![^\W_])(?:{'|'.join(patterns) or '(?!)'})(?![^\W_])", re.I)

    def words(self, text: str, start: int = 0, end: int | None = None) -> Iterator[Word]:
        """Every spelling in a part of the text, from left to right, none inside another."""
        for match in self._pattern.finditer(text, start, len(text) if end is None else end):
            yield Word(self._ids.get(_key(match[0]), OUTSIDE), match.start(), match.end())

    def first(self, text: str, start: int, end: int) -> Word | None:
        """The first spelling in a part of the text."""
        return next(self.words(text, start, end), None)


def _key(text: str) -> str:
    return re.sub(r"[\s_-]", "", text.casefold())


def lexicon(space: LabelSpace, component: str) -> Lexicon:
    """The lexicon of a component; for instruments with the tools that the space does not hold."""
    return _lexicon(component, tuple(spellings(space, component).items()))


@lru_cache(maxsize=64)
def _lexicon(component: str, known: tuple[tuple[str, int], ...]) -> Lexicon:
    others = dict.fromkeys(other_instruments(), OUTSIDE) if component == "instrument" else {}
    return Lexicon({**others, **dict(known)})
