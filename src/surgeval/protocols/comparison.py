"""Two runs of one protocol, compared: are they comparable, which cases do they share, and how do their numbers differ?

A protocol names one function, `pair(a, b)`, that refuses runs which cannot be compared and gives what both share as
`Pair`; the rest is the same for all. A protocol whose result has a record and `cases` needs none: `pair_runs` takes the
cases of the videos that both have.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl

from surgeval.errors import BadInput, visible
from surgeval.figures import Estimate, Figure, Series, estimates
from surgeval.protocols.contract import by_key
from surgeval.protocols.result import RunResult
from surgeval.results import Result, counted
from surgeval.stats import FEW_CLUSTERS, Difference, Measure, NumberUnit, gap_unit, measure_differences

if TYPE_CHECKING:
    from surgeval.pages import Section

__all__ = ["Compared", "Comparison", "Pair", "compare_pair", "few_video_notes", "keep_shared_videos", "pair_runs",
           "refuse_different", "shared_settings"]  # fmt: skip

RESAMPLES = 2000
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
    only 13 videos: in simulations with 12, the next smaller number that was tried, equal models differ significantly...
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
        f"only {videos} videos: in simulations with {simulated}, equal models differ significantly in at most {false} "
        f"of 100 comparisons, and a difference that 30 videos find in 63 to 84 of 100 is found in {least} to {most}",
    )


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
             d.interval.few_clusters, d.significant, d.interval.note)
            for number in self.numbers
            for d in (number.difference,)
        ]  # fmt: skip
        schema: dict[str, Any] = {
            "number": pl.String, "label": pl.String, "a": pl.Float64, "b": pl.Float64, "difference": pl.Float64,
            "low": pl.Float64, "high": pl.Float64, "p": pl.Float64, "clusters": pl.Int64, "few_clusters": pl.Boolean,
            "significant": pl.Boolean, "note": pl.String,
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
        known = {number.key: number for number in self.numbers}
        return {known[measure.key].label: measure.signature(self.settings, known[measure.key].difference.interval)
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
class Pair:
    """What two runs share: the measures that both have, and the cases of each, of the same videos.

    `differences(resamples, seed)` replaces the cases where a protocol has better data to compare. `names` are what the
    runs are called, where not by their own names. `settings` are printed with the comparison, `notes` gives sentences
    from the compared numbers, and `sections` are chapters of the protocol's own for the page.
    """

    measures: Sequence[Measure]
    cases: tuple[pl.DataFrame, pl.DataFrame] | None = None
    differences: Callable[[int, int], Mapping[str, Difference]] | None = None
    names: tuple[str, str] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    notes: Callable[[Sequence[Compared]], Sequence[str]] = lambda _numbers: ()
    sections: Sequence[Section] = ()
    resamples: int = RESAMPLES


def compare_pair(
    first: RunResult, second: RunResult, pair: Pair, *, resamples: int | None = None, seed: int = 0
) -> Comparison:
    """The differences of every measure of a pair; the examples of `compare` make one."""
    draws = pair.resamples if resamples is None else resamples
    if pair.differences is not None:
        differences = pair.differences(draws, seed)
    elif pair.cases is not None:
        differences = measure_differences(pair.measures, *pair.cases, resamples=draws, seed=seed)
    else:
        raise BadInput(f"Protocol {first.protocol!r} pairs no cases of its runs.")
    numbers = [Compared.of(measure, differences[measure.key])
               for measure in pair.measures if measure.key in differences]  # fmt: skip
    if not numbers:
        raise BadInput(visible(f"{first.name} and {second.name} share no number. Compare runs of the same kind."))
    videos = max(number.difference.interval.clusters for number in numbers)
    names = pair.names or (first.name, second.name)
    return Comparison(
        protocol=first.protocol, a=names[0], b=names[1], numbers=tuple(numbers), measures=pair.measures,
        settings={**pair.settings, "resamples": draws, "seed": seed},
        notes=(*few_video_notes(videos), *pair.notes(numbers)), sections=tuple(pair.sections),
    )  # fmt: skip


def pair_runs(first: RunResult, second: RunResult, *, apart: Sequence[str] = ()) -> Pair:
    """Two runs with the same settings (but those `apart`) on the same data, over the videos that both have.

    Both need `cases` with a column `cluster`; the toy protocol of the documentation is paired like this.
    """
    refuse_different(first, second, *(_settings_of(run, apart) for run in (first, second)))
    shared, notes = keep_shared_videos(_cases_of(first), _cases_of(second))
    known = [{headline.key for headline in run.headlines()} for run in (first, second)]
    measures = [measure for measure in first.measures if measure.key in known[0] & known[1]]
    settings = shared_settings(first, second)
    return Pair(measures=measures, cases=shared, settings=settings, notes=lambda _numbers: notes)


def shared_settings(first: RunResult, second: RunResult) -> dict[str, Any]:
    """The settings that are the same in both runs: the recipes of compared numbers may name them."""
    theirs = second.recipe_settings
    return {key: value for key, value in first.recipe_settings.items() if key in theirs and theirs[key] == value}


def keep_shared_videos(
    first: pl.DataFrame, second: pl.DataFrame
) -> tuple[tuple[pl.DataFrame, pl.DataFrame], tuple[str, ...]]:
    """The cases of the videos that both tables have, and a note on the others.

    >>> one, two = pl.DataFrame({"cluster": ["a", "b"]}), pl.DataFrame({"cluster": ["b", "c"]})
    >>> cases, notes = keep_shared_videos(one, two)
    >>> [part["cluster"].to_list() for part in cases], notes
    ([['b'], ['b']], ('2 videos are in one run only and left out',))
    """
    videos = [set(table["cluster"].unique()) for table in (first, second)]
    both, alone = videos[0] & videos[1], len(videos[0] ^ videos[1])
    if not both:
        raise BadInput("The runs share no video. Compare runs over the same videos.")
    noun = f"{counted(alone, 'video')} {'is' if alone == 1 else 'are'}"
    notes = (f"{noun} in one run only and left out",) if alone else ()
    kept = pl.col("cluster").is_in(sorted(both))
    return (first.filter(kept), second.filter(kept)), notes


def refuse_different(
    first: RunResult, second: RunResult, ours: Mapping[str, object], theirs: Mapping[str, object], *, advice: str = ""
) -> None:
    """Refuse runs that differ in something that changes what their numbers mean, by name and value.

    Values longer than a line, such as fingerprints of data, are left out of the sentence.
    """
    names = [name for name in dict.fromkeys((*ours, *theirs)) if ours.get(name) != theirs.get(name)]
    if names:
        found = [f"{name}{_both(ours.get(name), theirs.get(name))}" for name in names]
        ending = advice or "Compare runs of the same data and settings."
        raise BadInput(visible(f"{first.name} and {second.name} differ in {', '.join(found)[:400]}. {ending}"))


def _both(a: object, b: object) -> str:
    texts = ["none" if value is None else ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
             for value in (a, b)]  # fmt: skip
    return f" ({texts[0]} and {texts[1]})" if max(map(len, texts)) <= 60 else ""


def _cases_of(run: RunResult) -> pl.DataFrame:
    cases = getattr(run, "cases", None)
    if not isinstance(cases, pl.DataFrame) or "cluster" not in cases.columns:
        raise BadInput(
            f"{run.name}: a run of {run.protocol!r} has no table `cases` with a column `cluster` to compare."
        )
    return cases


def _settings_of(run: RunResult, apart: Sequence[str]) -> dict[str, object]:
    """Everything that must be the same: the settings of the run and its data."""
    record = getattr(run, "record", None)
    if record is None:
        return {"data": run.data_identity}
    settings = {key: value for key, value in record.config.items() if key not in apart}
    return {**settings, "data": run.data_identity or record.dataset}
