"""How the classes of a label space are written in free text: their names, synonyms, plurals and inflections.

`vocab/data/synonyms.json` lists synonyms per packaged label space. A user's own space takes the synonyms of packaged
classes with the same name. A class name of the space always means that class: "forceps" is a synonym of grasper in
CholecT50, which has no class of that name, and a class in ProstaTD.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from surgeval.vocab.label_space import LabelSpace, read_packaged

__all__ = ["other_instruments", "spellings"]

_BASES = {"phantom": ("cholect50", "cholec80"), "cholec80": ("cholec80", "cholect50")}
_VOWELS = "aeiou"


def spellings(space: LabelSpace, component: str) -> dict[str, int]:
    """Every spelling of the instruments, verbs or targets, in lower case with single spaces, and its class id.

    >>> from surgeval.vocab import load_labels
    >>> known = spellings(load_labels("cholect50"), "instrument")
    >>> known["clip applier"] == known["clippers"] == 4
    True
    >>> spellings(load_labels("cholect50"), "verb")["cutting"]
    5
    """
    names = {"instrument": space.instruments, "verb": space.verbs, "target": space.targets}[component]
    return dict(_spellings(space.name, component, names))


def other_instruments() -> tuple[str, ...]:
    """Surgical tools that no packaged label space has and that a model may name nevertheless.

    >>> "trocars" in other_instruments()
    True
    """
    return tuple(form for name in read_packaged("synonyms")["other_instruments"] for form in (name, *_plurals(name)))


@lru_cache(maxsize=64)
def _spellings(space: str, component: str, names: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    listed = read_packaged("synonyms")["spaces"]
    order = [*_BASES.get(space, (space,)), *listed]
    known: dict[str, int] = {}
    for number, name in enumerate(names):
        plain = _words(name)
        for synonym in _synonyms((listed[base] for base in order if base in listed), component, plain):
            for form in _forms(synonym, component):
                known.setdefault(form, number)
    own = {form: number for number, name in enumerate(names) for form in _forms(_words(name), component)}
    return tuple({**known, **own, **{_words(name): number for number, name in enumerate(names)}}.items())


def _synonyms(spaces: Iterable[dict[str, dict[str, list[str]]]], component: str, name: str) -> list[str]:
    """The synonyms in the first of the spaces that has a class of this name."""
    for space in spaces:
        for listed, synonyms in space.get(component, {}).items():
            if _words(listed).replace(" ", "") == name.replace(" ", ""):
                return [_words(synonym) for synonym in synonyms]
    return []


def _words(name: str) -> str:
    """A name as words: "SpecimenBag", "specimen_bag" and "Specimen Bag" are the same."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return " ".join(re.split(r"[\s_-]+", apart.casefold()))


def _forms(name: str, component: str) -> Iterator[str]:
    yield name
    yield from _inflected(name) if component == "verb" else _plurals(name)


def _plurals(name: str) -> Iterator[str]:
    if name.endswith(("x", "ch", "sh")):
        yield f"{name}es"
    elif name.endswith("y") and name[-2:-1] not in _VOWELS:
        yield f"{name[:-1]}ies"
    elif not name.endswith("s"):
        yield f"{name}s"


def _inflected(verb: str) -> Iterator[str]:
    """cut: cuts, cutting; coagulate: coagulates, coagulated, coagulating; pull back: pulls back, …"""
    first, _, rest = verb.partition(" ")
    tail = f" {rest}" if rest else ""
    stem = first[:-1] if first.endswith("e") else first
    if len(first) <= 5 and first[-1:] not in "aeiouwxy" and first[-2:-1] in _VOWELS and first[-3:-2] not in _VOWELS:
        stem = first + first[-1]
    third = f"{first}es" if first.endswith(("sh", "ch", "x", "ss")) else f"{first}s"
    yield from (f"{third}{tail}", f"{stem}ed{tail}", f"{stem}ing{tail}")
    if first == "hold":
        yield f"held{tail}"
