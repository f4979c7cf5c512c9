"""Jargon explained where it stands: the terms of `glossary.toml` and of a page's measures, found in its own words.

A term in a text becomes a link to its entry in the glossary at the end of the page, which lists only the terms the page
uses; the sentence itself appears on hovering, focus or touch. Cells of tables hold names from data files and are left
alone, unless a table says that its first column is our own words. What a number is called and means stands in its
`Measure`; `glossary.toml` holds the other terms.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, cached_property
from importlib.resources import files
from typing import Literal, TypeAlias, get_args

from markupsafe import Markup, escape

from surgeval.pages.breaks import unbroken
from surgeval.pages.parts import Section, Term
from surgeval.pages.safety import seen
from surgeval.pages.scorecard import Scorecard
from surgeval.stats import Measure, glossary_entries

__all__ = ["Glossary", "Terms", "glossary", "glossary_page", "with_glossary"]

_Kind = Literal["word", "symbol", "head"]
_Entry: TypeAlias = tuple[Term, _Kind, tuple[str, ...]]


@cache
def _words() -> tuple[_Entry, ...]:
    """The terms of glossary.toml."""
    source = (files("surgeval.pages") / "glossary.toml").read_text(encoding="utf-8")
    entries = []
    for entry in tomllib.loads(source)["term"]:
        kind = entry.get("as", "word")
        if kind not in get_args(_Kind) or set(entry) - {"name", "also", "as", "says"}:
            raise ValueError(f"glossary.toml: {entry['name']!r}: expected name, says, also, as (word, symbol or head)")
        entries.append((Term(entry["name"], entry["says"]), kind, (entry["name"], *entry.get("also", ()))))
    return tuple(entries)


class Glossary:
    """The terms that a page may use: those of `glossary.toml`, and the names of its measures.

    >>> from surgeval.stats import Measure
    >>> own = Glossary([Measure(key="frames", label="busy frames", explanation="Frames with an instrument.")])
    >>> [term.says for term in own.terms if term.name == "busy frames"]
    ['Frames with an instrument.']
    """

    def __init__(self, measures: Iterable[Measure] = ()) -> None:
        known = {name for term, _, names in _words() for name in (term.name, *names)}
        # A number that is called by a term of the toml keeps that term's sentence.
        named = [entry for entry in glossary_entries(tuple(measures)) if entry[0] not in known]
        own = tuple((Term(name, says), _kind_of(name), (name, *also)) for name, also, says in named)
        self.entries: tuple[_Entry, ...] = (*_words(), *own)

    @property
    def terms(self) -> tuple[Term, ...]:
        """Every term, in the order of the alphabet."""
        return tuple(sorted((term for term, _, _ in self.entries), key=_alphabetical))

    def find(self, text: str) -> Iterator[Term]:
        """The terms of a text; one that is a heading is a term as a whole."""
        if text in self._heads:
            yield self.term_of(text)
            return
        for match in self.pattern.finditer(text):
            yield self.term_of(match.group())

    def term_of(self, spelling: str) -> Term:
        """The term that is spelled so."""
        return self._by_spelling.get(spelling) or self._by_spelling[spelling.casefold()]

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Where terms stand in a text."""
        spellings = [
            (spelling, re.escape(spelling) if kind == "symbol" else f"(?i:{re.escape(spelling)})")
            for _, kind, names in self.entries
            if kind != "head"
            for spelling in names
        ]
        longest_first = sorted(spellings, key=lambda pair: -len(pair[0]))
        return re.compile(rf"(?<![\w|-])(?:{'|'.join(pattern for _, pattern in longest_first)})(?![\w|]|-\w)")

    @cached_property
    def _by_spelling(self) -> dict[str, Term]:
        terms = {}
        for term, kind, names in self.entries:
            for spelling in names:
                terms[spelling if kind != "word" else spelling.casefold()] = term
        return terms

    @cached_property
    def _heads(self) -> frozenset[str]:
        return frozenset(name for _, kind, names in self.entries if kind == "head" for name in names)


def _kind_of(name: str) -> _Kind:
    """A name with capitals (TP-AC) is found letter for letter."""
    return "word" if name == name.lower() else "symbol"


@cache
def _plain() -> Glossary:
    return Glossary()


def glossary(measures: Iterable[Measure] = ()) -> tuple[Term, ...]:
    """Every term that pages explain, and the names of the measures given, in the order of the alphabet.

    >>> next(term.says for term in glossary() if term.name == "IoU")
    'Intersection over union: the area two boxes share, divided by the area they cover together.'
    """
    return Glossary(measures).terms


def glossary_page(measures: Iterable[Measure] = ()) -> str:
    """The terms as a page of the documentation.

    >>> glossary_page().splitlines()[0]
    '# Glossary'
    """
    head = "# Glossary\n\nThe terms of pages and tables; every page explains those it uses where they stand.\n\n"
    rows = (f"| {term.name} | {term.says} |".replace("|A|", r"\|A\|") for term in glossary(measures))
    return "\n".join([f"{head}| term | what it says |", "| --- | --- |", *rows, ""])


class Terms:
    """Marks the terms of one page; in running text the first time in each section, so that text stays text."""

    def __init__(self, known: Glossary | None = None) -> None:
        self._known = known or _plain()
        self._seen: set[tuple[int, str]] = set()

    def mark(self, text: str, section: int = -1, *, whole: bool = False) -> Markup:
        """The text, escaped, with links to the glossary; `whole` keeps each number on one line with its sign.

        >>> Terms().mark("<b> AC and AC")
        Markup('&lt;b&gt; <a class="term" href="#term-ac" aria-describedby="term-ac">AC</a> and AC')
        """
        text, marked, end = seen(text), Markup(), 0
        written = unbroken if whole else str
        for match in self._known.pattern.finditer(text):
            term = self._known.term_of(match.group())
            if (section, term.key) not in self._seen:
                self._seen.add((section, term.key))
                marked += escape(written(text[end : match.start()])) + _link(term, match.group())
                end = match.end()
        return marked + escape(written(text[end:]))

    def cell(self, text: str) -> Markup:
        """A cell of our own words."""
        whole = next(iter(self._known.find(text)), None)
        return _link(whole, text) if whole is not None and whole.name == text else Terms(self._known).mark(text)

    def described(self, head: str) -> str:
        """The entries that explain a heading, for `aria-describedby`."""
        return " ".join(dict.fromkeys(f"term-{term.key}" for term in self._known.find(head)))


def _link(term: Term, text: str) -> Markup:
    link = '<a class="term" href="#term-{key}" aria-describedby="term-{key}">{text}</a>'
    return Markup(link).format(key=term.key, text=text)  # noqa: S704 - ours; format escapes


def with_glossary(
    sections: Sequence[Section], lead: str = "", known: Glossary | None = None, card: Scorecard | None = None
) -> list[Section]:
    """The sections, and behind them the terms that they use."""
    known = known or _plain()
    used = {term for text in (lead, *_card_texts(card), *(text for section in sections for text in _texts(section)))
            for term in known.find(text)}  # fmt: skip
    # An explanation may use terms itself; their entries stand beside it.
    used |= {term for other in used for term in known.find(other.says)}
    listed = tuple(sorted(used, key=_alphabetical))
    return [*sections, Section("Glossary", terms=listed)] if listed else list(sections)


def _card_texts(card: Scorecard | None) -> Iterator[str]:
    if card is not None:
        yield card.claim
        for number in (*((card.number,) if card.number else ()), *card.others):
            yield from (number.label, number.note)


def _texts(section: Section) -> Iterable[str]:
    yield section.text
    for finding in section.findings:
        yield from (finding.text, finding.rule)
    for picture in section.images:
        yield picture.note
    for card in section.cards:
        yield from (card.title, *card.lines, *section.orders)
    for plot in section.plots:
        yield from (plot.figure.title, plot.note, plot.reading)
    for table in section.tables:
        yield from (table.title, table.note, *table.frame.columns)
        if table.explained:
            yield from (str(text) for text in table.frame.to_series(0))


def _alphabetical(term: Term) -> str:
    return term.name.casefold().strip("|")
