"""What figures on two named axes share: their three names, and how a reader is told of them."""

from __future__ import annotations

from dataclasses import dataclass

from surgeval.figures.labels import plain


@dataclass(frozen=True, slots=True)
class Plane:
    """A figure whose axes say what lies `across` and `up`."""

    title: str
    across: str
    up: str

    def says(self, kind: str, shown: str) -> str:
        """What the picture shows, in words."""
        return f"{kind}: {plain(self.title)}, {plain(self.up)} against {plain(self.across)}. {shown}."
