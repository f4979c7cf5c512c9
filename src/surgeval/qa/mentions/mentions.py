"""What a reply names: classes in the order of their first mention, the characters of that mention, and the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

__all__ = ["Mentions"]

T = TypeVar("T")


@dataclass(frozen=True)
class Mentions(Generic[T]):
    """Classes of a label space that a text names.

    `spans` holds the first mention of each class: `text[start:end]`. `unparsed` holds the pieces of the text that name
    something outside the label space.

    >>> Mentions((0, 2), ((0, 7), (9, 13)), ("trocar",)).unparsed_rate
    0.3333333333333333
    """

    classes: tuple[T, ...]
    spans: tuple[tuple[int, int], ...]
    unparsed: tuple[str, ...]

    @property
    def unparsed_rate(self) -> float:
        """The share of what is named that the label space does not hold; 0 where nothing is named."""
        named = len(self.classes) + len(self.unparsed)
        return len(self.unparsed) / named if named else 0.0
