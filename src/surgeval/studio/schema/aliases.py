"""Names that mean the same: the paper and its files spell instruments, targets and attributes in several ways."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["attribute_name", "folded", "spelled"]

# Each row: names of one thing. A schema's own spelling always comes first.
_SAME = (
    ("needle driver", "driver"),
    ("clip applier", "applier", "clip applicator", "clipper"),
    ("seminal vesicle", "vesicle", "seminal-vesicle"),
    ("fascias", "fascia"),
    ("forceps", "forcep"),
    ("null", "null_verb", "null_target"),
)
_ATTRIBUTES = {"actions": "action", "targets": "target", "verb": "action", "verbs": "action"}


def folded(name: str) -> str:
    """A name without case, spaces, '-' and '_'.

    >>> folded("Seminal-Vesicle") == folded("seminal vesicle")
    True
    """
    return "".join(character for character in name.casefold() if character not in " -_")


_MEANING = {folded(name): number for number, row in enumerate(_SAME) for name in row}


def spelled(name: str, names: Iterable[str]) -> str:
    """The one of `names` that means the same; the name itself where none does.

    >>> spelled("vesicle", ["prostate", "seminal vesicle"]), spelled("liver", ["prostate"])
    ('seminal vesicle', 'liver')
    """
    known = list(names)
    if name in known:
        return name
    key = folded(name)
    by_form = {folded(other): other for other in known}
    if key in by_form:
        return by_form[key]
    meaning = _MEANING.get(key)
    return next((other for other in known if meaning is not None and _MEANING.get(folded(other)) == meaning), name)


def attribute_name(name: str) -> str:
    """An attribute's name in the singular that the studio uses; others' own attributes stay as they are.

    >>> [attribute_name(name) for name in ("actions", "Verb", "Target", "position")]
    ['action', 'action', 'target', 'position']
    """
    key = name.casefold()
    return _ATTRIBUTES.get(key, key if key in ("action", "target") else name)
