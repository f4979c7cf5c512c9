"""What a protocol hands to the rest of surgeval beside its results: headlines, a comparison, a demo chapter."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import polars as pl

from surgeval.errors import BadInput
from surgeval.figures import Estimate, Figure, Series, estimates
from surgeval.results import Result
from surgeval.stats import FEW_CLUSTERS, Difference, Interval, Measure, NumberUnit, baseline_of, gap_unit

if TYPE_CHECKING:
    from surgeval.datasets import Dataset
    from surgeval.pages import Section

__all__ = ["DEMO_IMPORTS", "Chapter", "Compared", "Comparison", "Demo", "FolderKind", "Headline", "by_key",
           "few_video_notes", "headlines_of"]  # fmt: skip

Part = TypeVar("Part")
# What a demo chapter's worker processes need and take seconds to import; none of these starts a thread (polars does).
DEMO_IMPORTS = (
    "scipy.ndimage", "cv2", "jinja2", "torch", "transformers.models.auto", "transformers.models.clip.modeling_clip",
    "transformers.models.llava.modeling_llava",
)  # fmt: skip
_MOST_BARS = 24
# Of 100 simulated comparisons (benchmarks/calibration.py): claims between equal models, and how often a difference is
# claimed that 30 videos show in 63 to 84; by number of videos.
_MEASURED = {6: (4, 4, 17), 12: (6, 28, 43)}
_ENOUGH = 20


def few_video_notes(videos: int) -> tuple[str, ...]:
    """What a comparison over fewer than 20 videos can show, in one sentence; nothing from 20 videos on.

    >>> few_video_notes(20), few_video_notes(5)
    ((), ('only 5 videos: no test of so few can reach 0.05, so no difference is claimed',))
    >>> print(*few_video_notes(13))  # doctest: +ELLIPSIS
    only 13 videos: in simulations with 12, the next smaller number that was tried, equal models are told apart in...
    """
    if videos >= _ENOUGH:
        return ()
    if videos < FEW_CLUSTERS:
        count = "1 video" if videos == 1 else f"{videos} videos"
        return (f"only {count}: no test of so few can reach 0.05, so no difference is claimed",)
    row = max(count for count in _MEASURED if count <= videos)
    false, least, most = _MEASURED[row]
    simulated = str(row) if row == videos else f"{row}, the next smaller number that was tried"
    return (
        f"only {videos} videos: in simulations with {simulated}, equal models are told apart in at most {false} of 100 "
        f"comparisons, and a difference that 30 videos find in 63 to 84 of 100 is found in {least} to {most}",
    )


@dataclass(frozen=True, slots=True)
class Headline:
    """A number to read first: its interval, what chance reaches, and whether more is better (None: neither).

    `unseeing` is what one who never looks reaches, where a verdict asks for that and it is not `chance`.
    """

    key: str
    label: str
    interval: Interval
    _: KW_ONLY
    chance: float | None = None
    unseeing: float | None = None
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
    baselines: Mapping[str, float | None] | None = None,
    unseeing: Mapping[str, float | None] | None = None,
) -> tuple[Headline, ...]:
    """The headlines among the measures that have a number, in their order.

    `baselines` are those that the data decide, and `unseeing` what one who never looks reaches, by key.

    >>> half = Interval(estimate=0.5, low=0.4, high=0.6)
    >>> right = Measure(key="right", label="right", explanation="Share of right answers.", baseline=0.25)
    >>> headlines_of([right], {"right": half})[0].chance
    0.25
    """
    return tuple(
        Headline(measure.key, measure.label, numbers[measure.key], chance=baseline_of(measure, numbers, baselines),
                 unseeing=(unseeing or {}).get(measure.key), higher_is_better=measure.higher_is_better,
                 unit=measure.unit)
        for measure in measures
        if measure.headline and measure.key in numbers
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Compared:
    """One number of both runs, and a − b with its interval."""

    key: str
    label: str
    difference: Difference
    _: KW_ONLY
    higher_is_better: bool | None = True
    unit: NumberUnit = "score"

    @classmethod
    def of(cls, measure: Measure, difference: Difference) -> Compared:
        """A measure's difference."""
        return cls(measure.key, measure.label, difference, higher_is_better=measure.higher_is_better,
                   unit=measure.unit)  # fmt: skip


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Comparison(Result):
    """Two runs of one protocol on the same videos; p-values are not adjusted for their number.

    `sections` are chapters of the protocol's own for the page of the comparison.
    """

    protocol: str
    a: str
    b: str
    numbers: tuple[Compared, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    measures: Sequence[Measure] = ()
    notes: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """`differences`: a row per number with both values, difference, interval and p (null below six videos)."""
        rows = [
            (number.key, number.label, d.a, d.b, d.estimate, d.interval.low, d.interval.high, d.p, d.interval.clusters,
             d.interval.few_clusters, d.told_apart, d.interval.note)
            for number in self.numbers
            for d in (number.difference,)
        ]  # fmt: skip
        schema: dict[str, Any] = {
            "number": pl.String, "label": pl.String, "a": pl.Float64, "b": pl.Float64, "difference": pl.Float64,
            "low": pl.Float64, "high": pl.Float64, "p": pl.Float64, "clusters": pl.Int64, "few_clusters": pl.Boolean,
            "told_apart": pl.Boolean, "note": pl.String,
        }  # fmt: skip
        frame = pl.DataFrame(rows, schema=schema, orient="row")
        return {"differences": frame.with_columns(pl.selectors.float().fill_nan(None))}

    @property
    def figures(self) -> dict[str, Figure]:
        """`differences` of scores, `differences_shares` in points: bars with intervals, the first of each unit."""
        figures = {}
        for shares, name, axis in (
            (True, "differences_shares", "difference, points"),
            (False, "differences", "difference"),
        ):
            drawn = [
                number
                for number in self.numbers
                if (gap_unit(number.unit) == "points") is shares and math.isfinite(number.difference.estimate)
            ]
            if drawn:
                labels = tuple(number.label for number in drawn[:_MOST_BARS])
                bars = (Series("A − B", tuple(_bar(number) for number in drawn[:_MOST_BARS])),)
                title = "Differences A − B of shares" if shares else "Differences A − B"
                figures[name] = estimates(title, labels, bars, axis)
        return figures

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        head = {"protocol": self.protocol, "a": self.a, "b": self.b, "settings": dict(self.settings)}
        return {**head, "differences": self.to_frame().to_dicts(), "notes": list(self.notes)}

    @property
    def recipes(self) -> dict[str, str]:
        """By label, how each number was combined, and the settings that change it, which both runs have."""
        known = {number.key: number.label for number in self.numbers}
        return {known[measure.key]: measure.signature(self.settings)
                for measure in self.measures if measure.headline and measure.key in known}  # fmt: skip

    def difference(self, key: str = "") -> Difference:
        """The difference of a number, by its key; of the first one unless it is given."""
        return by_key(self.numbers, key or self.numbers[0].key).difference

    @property
    def clusters(self) -> int:
        """The videos both runs have."""
        return max((number.difference.interval.clusters for number in self.numbers), default=0)

    def __repr__(self) -> str:
        first = f": {self.numbers[0].label} {self.numbers[0].difference}" if self.numbers else ""
        return f"{self.a} − {self.b}{first}"


def _bar(number: Compared) -> Estimate:
    interval = number.difference.interval
    scale = 100 if gap_unit(number.unit) == "points" else 1
    return Estimate.of(interval.estimate, interval.low, interval.high, scale=scale)


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
