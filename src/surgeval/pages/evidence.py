"""Evidence: one row per case, so that a reader can check a number down to one frame and one answer.

An `Evidence` holds the cases of one model. A page shows one, or several side by side on the same cases. Whatever a row
says is data, never markup: the page's script shows it as text only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from surgeval.errors import BadInput

__all__ = ["BOXES", "TEXTS", "Evidence", "no_boxes"]

# Every case: its id, where it stands, what was asked, said and expected, what became of it, and why.
TEXTS = ("id", "video", "frame", "asked", "answer", "reference", "verdict", "reason")
# Rectangles on a case's frame, in pixels of the frame. `kind` is one of `KINDS`.
BOXES = {"id": pl.String, "kind": pl.String, "label": pl.String,
         "x": pl.Float64, "y": pl.Float64, "w": pl.Float64, "h": pl.Float64}  # fmt: skip
KINDS = ("label", "missed", "hit", "wrong")


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence:
    """The cases of one model, a row each, as a page shows them.

    `cases` has the columns `TEXTS`, those that `facets` and `numbers` name, and `width` and `height` of the frame
    where boxes are to be drawn. A facet is a text column (or a list of texts) the reader can filter by; `own` are those
    that tell of the model's answer, the others tell of the case itself. `right` are the verdicts that are praise,
    `doubtful` those of them that are shown with reserve (right for the wrong reason), `open` those that are neither
    praise nor blame. `pictures` are JPEG files by case id.

    >>> row = {"id": "q1", "video": "v1", "frame": "3 s", "asked": "Is a clip visible?", "answer": "no",
    ...        "reference": "yes", "verdict": "wrong", "reason": ""}
    >>> Evidence(model="net", cases=pl.DataFrame([row])).wrong
    1
    """

    model: str
    cases: pl.DataFrame
    facets: Mapping[str, str] = field(default_factory=dict)
    own: frozenset[str] = frozenset()
    numbers: Mapping[str, str] = field(default_factory=dict)
    right: frozenset[str] = frozenset({"right"})
    doubtful: frozenset[str] = frozenset()
    open: frozenset[str] = frozenset()
    pictures: Mapping[str, bytes] = field(default_factory=dict)
    boxes: pl.DataFrame = field(default_factory=lambda: no_boxes())
    order: str = ""  # the number by which rows stand at first, highest first
    case: str = "case"  # what a row is called: question, frame
    note: str = ""

    def __post_init__(self) -> None:
        known = self.cases.schema
        for name in (*TEXTS, *self.facets, *self.numbers):
            if name not in known:
                raise BadInput(f"evidence of {self.model!r:.60}: found no column {name!r}, expected it in the cases")
        for name in TEXTS:
            if known[name] != pl.String or self.cases[name].null_count():
                raise BadInput(f"evidence of {self.model!r:.60}: {name}: found other values, expected texts")
        if self.cases["id"].n_unique() != self.cases.height:
            raise BadInput(f"evidence of {self.model!r:.60}: found two cases of one id, expected each once")

    @property
    def wrong(self) -> int:
        """Cases whose verdict is blame."""
        return int((~self.cases["verdict"].is_in([*self.right, *self.open])).sum())


def no_boxes() -> pl.DataFrame:
    """The table of boxes of evidence that has none.

    >>> no_boxes().height
    0
    """
    return pl.DataFrame(schema=BOXES)
