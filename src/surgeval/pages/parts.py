"""What a page is made of: sections that hold figures, tables and pictures.

All text is plain text: whatever a data file calls a class, the page shows those very characters.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

import numpy as np
import polars as pl

from surgeval.arrays import Image
from surgeval.errors import BadInput
from surgeval.figures import Figure
from surgeval.pages.evidence import Evidence
from surgeval.pages.scorecard import Finding, IntervalBar

__all__ = ["Card", "LegendKey", "Link", "Picture", "Plot", "Section", "Table", "Term"]

_JPEG = b"\xff\xd8\xff"


@dataclass(frozen=True, slots=True)
class Link:
    """Another page of ours, as a path relative to this one (it may lead up, never to another kind of address)."""

    text: str
    file: str

    def __post_init__(self) -> None:
        address = ":" in self.file.partition("/")[0]  # a scheme stands before the first slash
        if not self.file or self.file.startswith("/") or address or "\\" in self.file:
            raise BadInput(f"link {self.file!r}: expected a relative path")


@dataclass(frozen=True, slots=True)
class Table:
    """A table with a heading; `file` is its CSV, as a path relative to the page, and `bars` are drawings by column."""

    title: str
    frame: pl.DataFrame
    note: str = ""
    file: str = ""
    folded: bool = False  # closed until the reader opens it
    explained: bool = False  # the first column holds our own words: its terms are explained
    bars: Mapping[str, Sequence[IntervalBar | None]] = field(default_factory=dict)  # below the cells, row by row

    def __post_init__(self) -> None:
        _require_relative(self.file)


@dataclass(frozen=True, slots=True)
class Plot:
    """A figure with a remark and the files it was saved to, as paths relative to the page."""

    figure: Figure
    note: str = ""
    files: tuple[str, ...] = ()
    wide: bool = False  # takes the whole width even in a section whose figures stand in pairs

    def __post_init__(self) -> None:
        for file in self.files:
            _require_relative(file)

    @property
    def reading(self) -> str:
        """What its marks and lines mean, where the figure says it."""
        return str(getattr(self.figure, "reading", ""))


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """An RGB or grey image, uint8, embedded as JPEG; or the bytes of a JPEG file, embedded as they are.

    >>> Picture(np.zeros((2, 3), np.uint8), "black").alt
    'black'
    """

    image: Image | bytes
    alt: str
    note: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.image, bytes):
            if not self.image.startswith(_JPEG):
                raise BadInput(f"picture {self.alt!r}: found bytes of another kind, expected those of a JPEG file")
            return
        shape = self.image.shape
        fits = (
            self.image.dtype == np.uint8
            and self.image.size
            and (len(shape) == 2 or (len(shape) == 3 and shape[2] == 3))
        )
        if not fits:
            raise BadInput(
                f"picture {self.alt!r}: found {self.image.dtype} of shape {shape}, expected uint8 of (height, width, 3)"
            )

    @property
    def size(self) -> tuple[int, int]:
        """Width and height.

        >>> Picture(np.zeros((2, 3), np.uint8), "black").size
        (3, 2)
        """
        if not isinstance(self.image, bytes):
            return self.image.shape[1], self.image.shape[0]
        import PIL.Image

        try:
            with PIL.Image.open(io.BytesIO(self.image), formats=["JPEG"]) as header:
                return header.size
        except OSError as error:
            raise BadInput(f"picture {self.alt!r}: found a damaged JPEG, expected a whole one") from error


@dataclass(frozen=True, slots=True)
class Term:
    """A word of the field, and what it says in one plain sentence.

    >>> Term("|A|/HW", "Attended share.").key
    'a-hw'
    """

    name: str
    says: str

    @property
    def key(self) -> str:
        """The name as an anchor."""
        return "-".join(re.findall(r"[a-z0-9]+", self.name.casefold()))


@dataclass(frozen=True, slots=True)
class LegendKey:
    """What a colour of the pictures means: a line of one colour, or a scale from the first colour to the last."""

    text: str
    colours: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.colours or not all(re.fullmatch("#[0-9a-f]{6}", colour) for colour in self.colours):
            raise BadInput(f"key {self.text!r}: found {self.colours}, expected colours such as #009e73")


@dataclass(frozen=True, slots=True, eq=False)
class Card:
    """A picture of a gallery with what is known about it; `keys` are the numbers by which the reader can sort.

    Each key is an order, highest first; a card without it stands last. All cards of a gallery have the same keys.
    """

    picture: Picture
    title: str
    lines: tuple[str, ...] = ()
    keys: Mapping[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Section:
    """A chapter: text (blank lines part paragraphs), then findings, pictures, figures and tables."""

    title: str
    text: str = ""
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure | Plot, ...] = ()
    images: tuple[Picture, ...] = ()
    cards: tuple[Card, ...] = ()
    links: tuple[Link, ...] = ()
    evidence: tuple[Evidence, ...] = ()  # the cases of one model, or of several side by side
    findings: tuple[Finding, ...] = ()
    paired: bool = False  # figures two by two where the screen is wide enough
    key: tuple[LegendKey, ...] = ()  # what the colours of the pictures mean
    terms: tuple[Term, ...] = ()  # a glossary

    @property
    def plots(self) -> tuple[Plot, ...]:
        """The figures, each with its remark and files."""
        return tuple(figure if isinstance(figure, Plot) else Plot(figure) for figure in self.figures)

    @property
    def orders(self) -> tuple[str, ...]:
        """The orders a gallery offers."""
        return tuple(dict.fromkeys(name for card in self.cards for name in card.keys))

    @property
    def paragraphs(self) -> tuple[str, ...]:
        """The text, parted."""
        return tuple(part.strip() for part in self.text.split("\n\n") if part.strip())


def _require_relative(file: str) -> None:
    if file and (file.startswith("/") or ":" in file or "\\" in file or ".." in PurePosixPath(file).parts):
        raise BadInput(f"link {file!r}: expected a path below the page's folder")
