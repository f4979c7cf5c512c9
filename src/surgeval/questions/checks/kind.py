"""What a check is: a function from a draft, its rules and the facts of its scene to what is wrong ("" = nothing).

Its name is the function's name with hyphens, its claim the first line of its docstring.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from surgeval.questions.draft import Draft
from surgeval.questions.records import SourceRecord, facts_named
from surgeval.questions.template import Rules

__all__ = ["Check", "Facts", "Fault", "content_words", "name_of", "plain"]


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of the scene that a question is about; empty where nothing is.

    >>> Facts(view="CC").visible
    ()
    """

    procedure: str = ""
    phase: str = ""
    site: str = ""
    view: str = ""
    locations: tuple[str, ...] = ()
    visible: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()

    @classmethod
    def of(cls, record: SourceRecord) -> Facts:
        """What a source record knows."""
        scene = record.scene
        return cls(record.procedure, record.phase, record.site, facts_named(record, "view"), scene.locations,
                   scene.visible, scene.absent, scene.actions)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fault:
    """A check that failed: its name, the question (or batch, or set) it failed for, and what it found.

    >>> str(Fault("first-person", "op1.relative", "no I"))
    'op1.relative: first-person: no I'
    """

    check: str
    where: str
    found: str

    def __str__(self) -> str:
        return f"{self.where}: {self.check}: {self.found}" if self.where else f"{self.check}: {self.found}"


Check: TypeAlias = Callable[[Draft, Rules, Facts], str]


def name_of(check: Callable[..., object]) -> str:
    """A check's name as it is told."""
    return check.__name__.replace("_", "-")


def plain(text: str) -> str:
    """Text as checks compare it: one width of letters, hyphens and underscores as spaces, lower case.

    >>> plain("Calot-Triangle_dissection")
    'calot triangle dissection'
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(re.sub(r"[\-_‐-―]", " ", folded).split())


_SMALL = frozenset(
    ["the", "and", "with", "from", "into", "onto", "near", "over", "under", "this", "that", "for", "its", "right"]
)


def content_words(text: str) -> tuple[str, ...]:
    """The words of a name that carry it, cut to what their forms share.

    >>> content_words("Dissection of the Calot triangle")
    ('disse', 'calot', 'trian')
    """
    words = re.findall(r"[^\W\d_]{3,}", plain(text))
    return tuple(word[:5] for word in words if word not in _SMALL)
