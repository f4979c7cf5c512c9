"""The instruments that a text names."""

from __future__ import annotations

import re

from surgeval.qa.mentions.lexicon import OUTSIDE, lexicon
from surgeval.qa.mentions.mentions import Mentions
from surgeval.qa.mentions.negation import clauses, denied
from surgeval.vocab import LabelSpace

__all__ = ["instrument_mentions"]

_ITEM = re.compile(r"[^,;/\n|]+")
_BULLET = re.compile(r"^[\s*•\-–>#\"'\[({]*(?:\d{1,2}[.):]\s*)?(?:and |or )?(?:an? |the )?", re.I)
_FILLER = frozenset(
    [
        "none",
        "no",
        "yes",
        "nothing",
        "etc",
        "others",
        "unknown",
        "n/a",
        "and",
        "or",
        "tools",
        "instruments",
        "image",
        "surgical",
    ]
)
_LONGEST_ITEM = 4  # words; a longer piece is prose


def instrument_mentions(text: str, space: LabelSpace) -> Mentions[int]:
    """The instruments of a label space that a text names and does not deny, in the order of their first mention.

    Unparsed are tools that the space does not hold, and, where the whole text is a list, its other items.

    >>> from surgeval.vocab import load_labels
    >>> space = load_labels("cholec80")
    >>> said = instrument_mentions("A grasper and a clip applier, but no hook. A trocar is seen too.", space)
    >>> [space.instruments[k] for k in said.classes], said.spans, said.unparsed
    (['Grasper', 'Clipper'], ((2, 9), (16, 28)), ('trocar',))
    """
    known = lexicon(space, "instrument")
    first: dict[int, tuple[int, int]] = {}
    unparsed: dict[str, None] = {}
    covered: list[tuple[int, int]] = []
    for start, end, asks in clauses(text):
        words = list(known.words(text, start, end))
        covered += [(word.start, word.end) for word in words]
        for word, off in zip(words, denied(text, words, start, end), strict=True):
            if off or asks:
                continue
            if word.number == OUTSIDE:
                unparsed.setdefault(text[word.start : word.end].casefold())
            else:
                first.setdefault(word.number, (word.start, word.end))
    for item in _strange_items(text, covered):
        unparsed.setdefault(item)
    return Mentions(tuple(first), tuple(first.values()), tuple(unparsed))


def _strange_items(text: str, covered: list[tuple[int, int]]) -> list[str]:
    """Items of a bare list ("grasper, stapling gun") in which no known word stands; none where the text is prose."""
    items = [(item.start(), item.end(), _BULLET.sub("", item[0]).strip(" .*\"')]}")) for item in _ITEM.finditer(text)]
    items = [item for item in items if item[2]]
    if any(
        len(words.split()) > _LONGEST_ITEM or re.search(r"[.:?]\s|\b(?:is|are|see)\b", words) for _, _, words in items
    ):
        return []
    starts = {start for start, _ in covered}
    return [
        words.casefold()
        for start, end, words in items
        if words.casefold() not in _FILLER and not any(position in starts for position in range(start, end))
    ]
