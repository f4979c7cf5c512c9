"""Two runs of one protocol, compared: are they comparable, which cases do they share, and how do their numbers differ?

A protocol names one function, `pair(a, b)`, that refuses runs which cannot be compared and gives what both share as
`Pair`; the rest is the same for all. A protocol whose result has a record and `cases` needs none: `pair_runs` takes the
cases of the videos that both have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from surgeval.errors import BadInput, visible
from surgeval.protocols.contract import Compared, Comparison, few_video_notes
from surgeval.protocols.registry import PROTOCOLS, load_run
from surgeval.protocols.result import FinishedRun, RunResult
from surgeval.results import counted
from surgeval.stats import Difference, Measure, measure_differences

if TYPE_CHECKING:
    from surgeval.pages import Section

__all__ = ["Pair", "compare", "compare_pair", "pair_runs", "refuse_different"]

RESAMPLES = 2000


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


def compare(
    a: RunResult | FinishedRun | str | Path,
    b: RunResult | FinishedRun | str | Path,
    *,
    resamples: int | None = None,
    seed: int = 0,
) -> Comparison:
    """Paired differences a − b on the same videos, with intervals and a test, for two runs of any protocol.

    Runs are folders or results. `resamples` is how many exchanges of videos are drawn at most (where there are no
    more, all are used); the default is the protocol's own.

    >>> from surgeval import score_recognition
    >>> labels, videos = [[1, 0], [0, 1]] * 2, ["v1", "v1", "v2", "v2"]
    >>> right, wrong = (score_recognition(scores, labels, videos) for scores in (labels, [[0, 1], [1, 0]] * 2))
    >>> compare(right, wrong).numbers[0].difference.estimate
    0.5
    >>> compare("no/such/run", right)
    Traceback (most recent call last):
    surgeval.errors.DataError: no/such/run: no such folder
    """
    first, second = _result(a), _result(b)
    if first.protocol != second.protocol:
        raise BadInput(f"{first.name} is a run of {first.protocol}, {second.name} one of {second.protocol}: compare "
                       "two runs of one protocol.")  # fmt: skip
    protocol = PROTOCOLS[first.protocol]
    pair: Pair = protocol.part("pair")(first, second) if protocol.pair else pair_runs(first, second)
    return compare_pair(first, second, pair, resamples=resamples, seed=seed)


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
    return Pair(measures=measures, cases=shared, settings={}, notes=lambda _numbers: notes)


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


def _result(run: RunResult | FinishedRun | str | Path) -> RunResult:
    if isinstance(run, str | Path):
        return load_run(run)
    return run.loaded if isinstance(run, FinishedRun) else run
