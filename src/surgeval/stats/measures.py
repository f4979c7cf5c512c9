"""What a number is, declared once: its name, meaning, unit, direction and baseline, and how it is computed.

A protocol lists its `Measure`s; intervals, paired differences, tables, glossary entries and the short recipe printed
beside a number all derive from that list. A measure is a ratio of sums over cases (`surgeval.stats.ratios`), a mean of
several, or any function of how often each video was drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, TypeVar, get_args

import polars as pl

from surgeval._version import __version__
from surgeval.errors import BadInput, did_you_mean
from surgeval.stats.interval import Interval
from surgeval.stats.paired import Difference, paired_statistic
from surgeval.stats.ratios import RESAMPLES, MacroMean, Parts, Ratio, VideoSums, gap_bounds
from surgeval.stats.replicates import Statistic
from surgeval.stats.statistic import bootstrap_statistic
from surgeval.stats.student import Bounds
from surgeval.stats.wording import NumberUnit

__all__ = ["Combine", "Measure", "Question", "baseline_of", "find_measure", "glossary_entries", "measure_differences",
           "measure_intervals", "measures_table", "numbers_table", "task_cases"]  # fmt: skip

Question: TypeAlias = Literal["right", "reason", "fooled", "stable"]
AnyMeasure = TypeVar("AnyMeasure", bound="Measure")


@dataclass(frozen=True, slots=True)
class Combine:
    """How a number combines over frames, videos and classes, in the words of its signature; "" where it has none.

    `classes` says what absent classes do, as in `mean of present`.

    >>> Combine(classes="mean of present").text
    'frames:pooled|videos:pooled|classes:mean of present'
    """

    frames: str = "pooled"
    videos: str = "pooled"
    classes: str = ""

    @property
    def text(self) -> str:
        """The parts of a signature."""
        parts = {"frames": self.frames, "videos": self.videos, "classes": self.classes}
        return "|".join(f"{name}:{how}" for name, how in parts.items() if how)


@dataclass(frozen=True, kw_only=True)
class Measure:
    """One number of a protocol.

    `ratio` is one `Ratio`, or several whose mean it is, or a function of the cases that gives those (None: undefined)
    where they depend on which kinds of cases there are; or else `statistic(cases)` gives a function of how often each
    video was drawn (resamples × videos in sorted order → one value per resample). All see the cases whose column
    `task` is `task`, or all cases. `bounds` are the possible values, by default those of the ratio.

    `baseline` is a value, or the key of the measure that says what a model without skill reaches on the same cases.
    `headline` puts it among the numbers to read first. `question` is what it answers: is the model right, right for
    the right reason, can it be fooled, is it stable. `settings` names the settings that change what the number means;
    `signature` prints them. `term` is what the glossary calls it, where that is not the label, and `also` further
    spellings. A label has at most 36 letters: figures shorten longer ones.
    """

    key: str
    label: str
    explanation: str
    unit: NumberUnit = "score"
    higher_is_better: bool | None = True
    bounds: Bounds | None = None
    baseline: str | float | None = None
    headline: bool = True
    question: Question = "right"
    combine: Combine = Combine()
    convention: str = ""
    settings: tuple[str, ...] = ()
    task: str = ""
    term: str = ""
    also: tuple[str, ...] = ()
    ratio: Parts | Callable[[pl.DataFrame], Parts | None] | None = None
    statistic: Callable[[pl.DataFrame], Statistic] | None = None

    def __post_init__(self) -> None:
        if not self.key or not self.label or not self.explanation:
            raise BadInput(f"Measure {self.key!r} needs a key, a label and an explanation.")
        if self.ratio is not None and self.statistic is not None:
            raise BadInput(f"Measure {self.key!r} has a ratio and a statistic. Give one of them.")
        if self.question not in get_args(Question):
            raise BadInput(f"Measure {self.key!r}: question {self.question!r} is not one of "
                           f"{', '.join(get_args(Question))}.")  # fmt: skip

    @property
    def limits(self) -> Bounds:
        """The possible values."""
        if isinstance(self.ratio, Ratio | MacroMean):
            return self.bounds or self.ratio.bounds
        if isinstance(self.ratio, Sequence):
            return self.bounds or self.ratio[0].bounds
        return self.bounds or (0.0, 1.0)

    def signature(self, settings: Mapping[str, Any] | None = None, interval: Interval | None = None) -> str:
        """The recipe of the number in one line: how it combines, its convention, the settings that matter, the version.

        It begins with the label, up to a comma. `interval` says how its ends were computed: leaving out each video in
        turn, unless it is given.

        >>> mAP = Measure(key="mAP", label="mAP", explanation="Mean of AP over classes.", convention="coco",
        ...               combine=Combine(classes="mean of present"), settings=("ties",))
        >>> mAP.signature({"ties": "free", "name": "net"}).rpartition("|version:")[0]
        'mAP|frames:pooled|videos:pooled|classes:mean of present|convention:coco|ties:free|interval:leave-one-video-out'
        """
        known = settings or {}
        chosen = [f"{name}:{_written(known[name])}" for name in self.settings if known.get(name) is not None]
        recipe = [f"convention:{self.convention}"] if self.convention else []
        end = [f"interval:{_interval_recipe(interval)}", f"version:{known.get('version') or __version__}"]
        return "|".join([self.label.partition(",")[0], self.combine.text, *recipe, *chosen, *end])


def find_measure(measures: Sequence[AnyMeasure], key: str) -> AnyMeasure:
    """The measure of a key.

    >>> find_measure([Measure(key="f1", label="F1", explanation="2PR / (P + R)")], "f1").label
    'F1'
    """
    known = {measure.key: measure for measure in measures}
    if key not in known:
        raise BadInput(f"No measure {key!r}. Choose one of {', '.join(known)}{did_you_mean(key, known)}.")
    return known[key]


def task_cases(measures: Sequence[Measure], cases: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """The cases of each task that the measures are about, if it has cases; "" is all of them.

    >>> about = [Measure(key="ac", label="AC", explanation="Attention coverage.", task="instruments")]
    >>> task_cases(about, pl.DataFrame({"task": ["ars", "instruments"]}))["instruments"].height
    1
    """
    tasks = dict.fromkeys(measure.task for measure in measures)
    parts = {task: cases.filter(pl.col("task") == task) if task else cases for task in tasks}
    return {task: part for task, part in parts.items() if not part.is_empty()}


def measure_intervals(measures: Sequence[Measure], cases: pl.DataFrame) -> dict[str, Interval]:
    """Every measure that the cases define, with its interval over videos (column `cluster`), in their order.

    >>> from surgeval.stats import share_ratio
    >>> right = Measure(key="right", label="right", explanation="Share of right answers.", unit="share",
    ...                 ratio=share_ratio(pl.col("right")))
    >>> cases = pl.DataFrame({"cluster": list("aabb"), "right": [True, False, True, True]})
    >>> measure_intervals([right], cases)["right"].estimate
    0.75
    """
    intervals: dict[str, Interval] = {}
    for task, part in task_cases(measures, cases).items():
        own = [measure for measure in measures if measure.task == task]
        if wanted := _ratios_of(own, part):
            intervals |= VideoSums.of(part, wanted).intervals()
        for measure in own:
            if measure.statistic is not None:
                videos = part["cluster"].cast(pl.String)
                names = sorted(videos.unique().to_list())
                counted = dict(videos.value_counts().iter_rows())
                intervals[measure.key] = bootstrap_statistic(
                    measure.statistic(part), names, batched=True, sizes=[counted[name] for name in names],
                    bounds=measure.limits, name=measure.key,
                )  # fmt: skip
    known = {measure.key: intervals.get(measure.key) for measure in measures}
    return {key: found for key, found in known.items() if found is not None and not math.isnan(found.estimate)}


def measure_differences(
    measures: Sequence[Measure], a: pl.DataFrame, b: pl.DataFrame, *, resamples: int = RESAMPLES, seed: int = 0
) -> dict[str, Difference]:
    """Every measure of the cases `a` minus that of `b`, paired over videos, which must be the same in both.

    >>> from surgeval.stats import share_ratio
    >>> right = Measure(key="right", label="right", explanation="Share of right answers.", unit="share",
    ...                 ratio=share_ratio(pl.col("right")))
    >>> good = pl.DataFrame({"cluster": list("abcdef"), "right": [True] * 6})
    >>> poor = good.with_columns(right=pl.Series([True, False, False, True, False, False]))
    >>> print(measure_differences([right], good, poor)["right"])
    1.000 − 0.333 = 0.667 [0.000, 1.000], p = 0.1250
    """
    differences: dict[str, Difference] = {}
    first, second = task_cases(measures, a), task_cases(measures, b)
    for task in (task for task in first if task in second):
        own = [measure for measure in measures if measure.task == task]
        if wanted := _ratios_of(own, first[task]):
            sums = [VideoSums.of(part[task], wanted) for part in (first, second)]
            for key in wanted:
                differences[key] = sums[0].difference(sums[1], key, resamples=resamples, seed=seed)
        for measure in own:
            if measure.statistic is not None:
                differences[measure.key] = _statistic_difference(measure, first[task], second[task], resamples, seed)
    return {measure.key: differences[measure.key] for measure in measures if measure.key in differences}


def numbers_table(
    measures: Sequence[Measure],
    intervals: Mapping[str, Interval],
    *,
    baselines: Mapping[str, float | None] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> pl.DataFrame:
    """A row per number that is known: key, label, estimate, low, high, videos, baseline and signature.

    `baselines` are those that the data decide, by the key of the measure they belong to.

    >>> known = {"f1": Interval(estimate=0.5, low=0.4, high=0.6, clusters=8)}
    >>> table = numbers_table([Measure(key="f1", label="F1", explanation="2PR / (P + R)")], known)
    >>> table.drop("signature").row(0)
    ('f1', 'F1', 0.5, 0.4, 0.6, 8, None)
    """
    known = {measure.key: measure for measure in measures if measure.key in intervals}
    rows = [
        (key, measure.label, intervals[key].estimate, intervals[key].low, intervals[key].high, intervals[key].clusters,
         baseline_of(measure, intervals, baselines), measure.signature(settings, intervals[key]))
        for key, measure in known.items()
    ]  # fmt: skip
    schema = {"number": pl.String, "label": pl.String, "estimate": pl.Float64, "low": pl.Float64, "high": pl.Float64,
              "videos": pl.Int64, "baseline": pl.Float64, "signature": pl.String}  # fmt: skip
    table = pl.DataFrame(rows, schema=schema, orient="row")
    return table.with_columns(pl.selectors.float().fill_nan(None))


def baseline_of(
    measure: Measure, intervals: Mapping[str, Interval], baselines: Mapping[str, float | None] | None = None
) -> float | None:
    """What the baseline of a measure reaches: given with the data, fixed, or the estimate of another measure.

    >>> right = Measure(key="right", label="right", explanation="Share of right answers.", baseline="chance")
    >>> baseline_of(right, {"chance": Interval(estimate=0.25, low=0.2, high=0.3)})
    0.25
    """
    if baselines is not None and measure.key in baselines:
        return baselines[measure.key]
    if not isinstance(measure.baseline, str):
        return measure.baseline
    other = intervals.get(measure.baseline)
    return None if other is None or math.isnan(other.estimate) else other.estimate


def glossary_entries(measures: Sequence[Measure]) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """What the glossary says of each measure: its term, further spellings, and the explanation; each term once.

    >>> list(glossary_entries([Measure(key="f1", label="F1 of triplets", term="F1", explanation="2PR / (P + R)")]))
    [('F1', (), '2PR / (P + R)')]
    """
    seen = set()
    for measure in measures:
        term = measure.term or measure.label
        if term not in seen:
            seen.add(term)
            yield term, measure.also, measure.explanation


def measures_table(measures: Sequence[Measure]) -> pl.DataFrame:
    """The declarations as a table for readers.

    >>> measures_table([Measure(key="f1", label="F1", explanation="2PR / (P + R)")]).row(0)
    ('f1', 'F1', '2PR / (P + R)', 'score', 'higher', None, 'right', 'frames:pooled|videos:pooled')
    """
    better = {True: "higher", False: "lower", None: "neither"}
    rows = [
        (measure.key, measure.label, measure.explanation, measure.unit, better[measure.higher_is_better],
         None if measure.baseline is None else str(measure.baseline), measure.question, measure.combine.text)
        for measure in measures
    ]  # fmt: skip
    names = ("key", "label", "explanation", "unit", "better", "baseline", "question", "combine")
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")


def _ratios_of(measures: Sequence[Measure], cases: pl.DataFrame) -> dict[str, Parts]:
    known = [(measure, measure.ratio(cases) if callable(measure.ratio) else measure.ratio) for measure in measures]
    return {measure.key: _within(parts, measure.bounds) for measure, parts in known if parts is not None}


def _within(parts: Parts, bounds: Bounds | None) -> Parts:
    """The ratios, with the bounds of their measure where it has its own."""
    if bounds is None:
        return parts
    if isinstance(parts, Ratio):
        return replace(parts, bounds=bounds)
    if isinstance(parts, MacroMean):
        return replace(parts, ratios=tuple(replace(ratio, bounds=bounds) for ratio in parts.ratios))
    return [replace(ratio, bounds=bounds) for ratio in parts]


def _statistic_difference(measure: Measure, a: pl.DataFrame, b: pl.DataFrame, resamples: int, seed: int) -> Difference:
    """The difference of a statistic, computed anew for every exchange of videos."""
    videos = sorted(a["cluster"].cast(pl.String).unique().to_list())
    if videos != sorted(b["cluster"].cast(pl.String).unique().to_list()):
        raise BadInput("The two runs have different videos: keep the cases of those that both have.")
    if measure.statistic is None:
        raise BadInput(f"Measure {measure.key!r} has no statistic.")
    # Sorted by name, the videos of b come after all of those of a.
    run_of = ((f"{number} ", cases) for number, cases in enumerate((a, b)))
    both = pl.concat(
        [cases.with_columns((pl.lit(prefix) + pl.col("cluster")).alias("cluster")) for prefix, cases in run_of]
    )
    counted = dict(a["cluster"].cast(pl.String).value_counts().iter_rows())
    return paired_statistic(
        measure.statistic(both), videos, batched=True, sizes=[counted[video] for video in videos],
        bounds=gap_bounds(measure.limits), resamples=resamples, seed=seed, name=measure.key,
    )  # fmt: skip


def _interval_recipe(interval: Interval | None) -> str:
    if interval is None or (interval.scheme, interval.method) == ("cluster", "t"):
        return "leave-one-video-out"
    if interval.scheme == "cluster":
        return "leave-one-video-out with Wilson" if interval.method == "wilson t" else interval.method
    return f"{interval.scheme} {interval.method}"


def _written(value: object) -> str:
    """A setting as a signature shows it."""
    if isinstance(value, Mapping):
        return str(value.get("name", "")) or ",".join(f"{key}={part}" for key, part in value.items())
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
