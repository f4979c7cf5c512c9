"""What a training set left out, cut or found odd: counted by kind, with a few names of each kind.

Nothing is left out silently: the counts stand beside the data, and `lines` says them in words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from surgeval.errors import bounded, visible

__all__ = ["ProblemTally", "Problems"]

NAMED = 5  # examples kept of each kind
_LONGEST = 160  # characters of one example: names come from files

# What is wrong with the things of a kind, and what was done; the reader's other kinds are told by their own name.
_FRAMES = {
    "frame-unlabelled": "without labels: left out",
    "frame-unboxed": "with an instrument that has no box: left out, it would be taught as background",
    "image-missing": "without an image: left out",
    "image-broken": "whose image cannot be read: left out",
    "image-size": "whose image has another size than the labels say: left out",
}
_BOXES = {
    "box-outside": "past the edge of the frame: cut there",
    "box-off-frame": "outside the frame: left out",
    "box-degenerate": "without an area inside the frame: left out",
    "box-repeated": "written twice with the same class: counted once",
    "box-shared": "with several triplets: taken as one box with several classes",
    "triplet-unknown": "whose triplet is no class of the detector: left out",
    "class-unknown": "of a class that the detector does not know: left out",
}
_CLASSES = {"class-absent": "without a box: the detector cannot learn them"}
WORDS = {
    kind: (things, words)
    for things, kinds in (("frames", _FRAMES), ("boxes", _BOXES), ("classes", _CLASSES))
    for kind, words in kinds.items()
}
_ONE = {"frames": "frame", "boxes": "box", "classes": "class", "problems": "problem"}
# Kinds that a training set counts by its own rule; the reader's count of the same thing is not added to it.
OWN = frozenset({"frame-unlabelled", "box-outside", "frame-unboxed"})


@dataclass(frozen=True)
class Problems:
    """Counts by kind, and the first few names of each kind.

    >>> problems = Problems({"box-outside": 2}, {"box-outside": ("v03/046025", "v02/042225")})
    >>> problems["box-outside"], problems["image-broken"], list(problems.lines())
    (2, 0, ['2 boxes past the edge of the frame: cut there (v03/046025, v02/042225)'])
    """

    counts: Mapping[str, int] = field(default_factory=dict)
    examples: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __getitem__(self, kind: str) -> int:
        return self.counts.get(kind, 0)

    def __bool__(self) -> bool:
        return any(self.counts.values())

    def having(self, kind: str, names: Sequence[str]) -> Problems:
        """The same with one kind counted anew.

        >>> Problems({"class-absent": 9}).having("class-absent", ["Hook"]).counts
        {'class-absent': 1}
        """
        counts = {**self.counts, kind: len(names)}
        return Problems(counts, {**self.examples, kind: tuple(_shown(name) for name in names[:NAMED])})

    def lines(self) -> Iterator[str]:
        """One sentence for each kind, in the order of `WORDS`, then what only the reader names."""
        for kind in (*WORDS, *sorted(set(self.counts) - set(WORDS))):
            if self[kind]:
                things, words = WORDS.get(kind, ("problems", f"that the reader calls {kind}"))
                names = self.examples.get(kind, ())
                more = ", …" if self[kind] > len(names) else ""
                noun = _ONE[things] if self[kind] == 1 else things
                yield f"{self[kind]} {noun} {words}" + (f" ({', '.join(names)}{more})" if names else "")


class ProblemTally:
    """Counts while the data is read."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._examples: dict[str, list[str]] = {}

    def add(self, kind: str, name: str) -> None:
        """One more of a kind."""
        self._counts[kind] += 1
        known = self._examples.setdefault(kind, [])
        if len(known) < NAMED:
            known.append(_shown(name))

    def __getitem__(self, kind: str) -> int:
        return self._counts[kind]

    def problems(self) -> Problems:
        """The counts so far."""
        return Problems(dict(self._counts), {kind: tuple(names) for kind, names in self._examples.items()})


def _shown(name: str) -> str:
    return visible(bounded(name, _LONGEST))
