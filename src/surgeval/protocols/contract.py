"""What a protocol hands to the rest of surgeval beside its results: headlines, a demo chapter, other folders."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import polars as pl

from surgeval.errors import BadInput
from surgeval.stats import Interval, Measure, NumberUnit, baseline_of

if TYPE_CHECKING:
    from surgeval.datasets import Dataset
    from surgeval.pages import Section

__all__ = ["DEMO_IMPORTS", "Chapter", "Demo", "FolderKind", "Headline", "by_key", "headlines_of"]

Part = TypeVar("Part")
# What a demo chapter's worker processes need and take seconds to import; none of these starts a thread (polars does).
DEMO_IMPORTS = (
    "scipy.ndimage", "cv2", "jinja2", "torch", "transformers.models.auto", "transformers.models.clip.modeling_clip",
    "transformers.models.llava.modeling_llava",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Headline:
    """A number to read first: its interval, what chance reaches, and whether more is better (None: neither).

    `baseline` is what a prediction without the images reaches, where a verdict compares with it and it is not `chance`.
    """

    key: str
    label: str
    interval: Interval
    _: KW_ONLY
    chance: float | None = None
    baseline: float | None = None
    higher_is_better: bool | None = True
    unit: NumberUnit = "score"

    @property
    def cell(self) -> str:
        """Number and ends as tables show them."""
        return self.interval.cell(self.unit)


def headlines_of(
    measures: Sequence[Measure],
    numbers: Mapping[str, Interval],
    *,
    chances: Mapping[str, float | None] | None = None,
    baselines: Mapping[str, float | None] | None = None,
) -> tuple[Headline, ...]:
    """The headlines among the measures that have a number, in their order.

    `chances` are levels of chance that the data decide, `baselines` those of predictions without images, by key.

    >>> half = Interval(estimate=0.5, low=0.4, high=0.6)
    >>> right = Measure(key="right", label="right", explanation="Share of right answers.", baseline=0.25)
    >>> headlines_of([right], {"right": half})[0].chance
    0.25
    """
    return tuple(
        Headline(measure.key, measure.label, numbers[measure.key], chance=baseline_of(measure, numbers, chances),
                 baseline=(baselines or {}).get(measure.key), higher_is_better=measure.higher_is_better,
                 unit=measure.unit)
        for measure in measures
        if measure.headline and measure.key in numbers
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Chapter:
    """What a chapter made: its runs, the page to open first, and a small table and a few sentences to print.

    `ranking` holds options of `rank` where the runs are to be ranked; `pages` are further pages worth a link.
    """

    title: str
    page: Path
    runs: tuple[Path, ...]
    table: pl.DataFrame
    sentences: tuple[str, ...] = ()
    pages: Mapping[str, Path] = field(default_factory=dict)
    ranking: Mapping[str, Any] | None = None
    more: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain values for `--json`."""
        return {
            "report": str(self.page),
            "runs": [str(run) for run in self.runs],
            "pages": {text: str(page) for text, page in self.pages.items()},
            "numbers": self.table.to_dicts(),
            **self.more,
        }


@dataclass(frozen=True, kw_only=True)
class Demo:
    """What a chapter of the demo is given: the phantom, opened, and the folder for its runs."""

    dataset: Dataset
    edition: str
    out: Path


def by_key(items: Sequence[Part], key: str) -> Part:
    """The headline or compared number of this key.

    >>> half = Interval(estimate=0.5, low=0.4, high=0.6)
    >>> by_key([Headline("accuracy", "accuracy", half)], "accuracy").interval.estimate
    0.5
    """
    for item in items:
        if getattr(item, "key", None) == key:
            return item
    known = ", ".join(str(getattr(item, "key", item)) for item in items)
    raise BadInput(f"number {key!r}: expected one of {known or 'none'}")


@dataclass(frozen=True, kw_only=True)
class FolderKind:
    """A kind of folder that is no run and has a page of its own, such as a training's, which is read while it runs.

    `holds(folder)` tells one, `write_page(folder, out)` writes its page, and `section(folder, out)` is about all of
    them in a folder, for its index (None: there are none). `noun` is what one is called; `to_compare` says how one
    comes to runs that can be compared.
    """

    noun: str
    to_compare: str
    holds: Callable[[Path], bool]
    write_page: Callable[[Path, Path | None], Path]
    section: Callable[[Path, Path | None], Section | None]
