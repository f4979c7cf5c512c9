"""`AblationScores`: configurations by seeds, loaded from their folder.

Two kinds of chance are kept apart. The standard deviation over seeds says how much the same configuration differs from
itself; the interval over videos, paired, says how much a difference depends on which videos were tested. A difference
that is not larger than the first is nothing that a single training could show.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from surgeval.arrays import Floats, Ints
from surgeval.errors import DataError
from surgeval.figures import Estimate, Figure, Series, estimates
from surgeval.files import safe_name
from surgeval.protocols.comparison import few_video_notes
from surgeval.protocols.contract import Headline
from surgeval.protocols.result import RunResult
from surgeval.protocols.training.published import PaperRow, published
from surgeval.protocols.training.stored import SCORES, AblationFile, AblationName
from surgeval.protocols.training.tables import PaperTable, convention_notes, own_rows
from surgeval.protocols.triplets import TripletScores, load_triplets
from surgeval.stats import Difference, paired_vector

__all__ = [
    "ABLATIONS",
    "AblationScores",
    "Configuration",
    "ablation_home",
    "label_of",
    "load_ablation",
]

RUNS = "runs"
_METRICS = ("mAP50", "mAP50:95")
_COMPONENTS = {"i": "I", "v": "V", "t": "T", "ivt": "IVT"}


@dataclass(frozen=True, slots=True)
class Configuration:
    """A row: what differs from the settings that all rows share."""

    name: str
    changes: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Ablation:
    """A table of the paper as configurations; `reference` is TDnet as it is."""

    number: int
    configurations: tuple[Configuration, ...]
    reference: str


def _fused(teacher: float) -> Configuration:
    return Configuration(f"teacher {teacher:g} : labels {round(1 - teacher, 6):g}", {"fusion": teacher})


ABLATIONS: Mapping[AblationName, Ablation] = {
    "components": Ablation(9, (
        Configuration("TDnet w/o self-distill", {"student_epochs": 0}),
        Configuration("TDnet w/o MTL", {"aux": False}),
        Configuration("TDnet", {}),
    ), "TDnet"),
    "fusion": Ablation(11, tuple(_fused(teacher) for teacher in (0.0, 0.2, 0.5, 0.8, 1.0)), _fused(0.8).name),
}  # fmt: skip


def ablation_home(folder: str | Path, configuration: str, seed: int) -> Path:
    """Where the folds of one configuration and seed live."""
    return Path(folder) / RUNS / safe_name(configuration) / f"seed-{seed}"


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class AblationScores(RunResult):
    """Configurations by seeds: means, their spread over seeds, and paired differences to the reference."""

    name: str
    table: AblationName
    notes: tuple[str, ...]
    seeds: tuple[int, ...]
    runs: Mapping[str, tuple[TripletScores, ...]]  # by configuration, in the order of the seeds
    folder: Path | None = None
    protocol: str = field(default="training", init=False)

    @property
    def reference(self) -> str:
        """The configuration that all others are compared with."""
        return ABLATIONS[self.table].reference

    @property
    def videos(self) -> tuple[str, ...]:
        """The tested videos."""
        return tuple(self.runs[self.reference][0].settings["videos"])

    def values(self, configuration: str, component: str, metric: str) -> Floats:
        """A number by seed."""
        return np.array([run.number(component, metric).estimate for run in self.runs[configuration]], dtype=np.float64)

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        """Components and metrics that all runs have, in the order of the paper."""
        known = self.runs[self.reference][0].settings["components"]
        return tuple((component, metric) for component in _COMPONENTS if component in known for metric in _METRICS)

    @cached_property
    def differences(self) -> dict[str, dict[tuple[str, str], Difference]]:
        """Every other configuration − the reference, mean over seeds, each video left out of both in turn."""
        return {name: self.difference(name, self, self.reference) for name in self.runs if name != self.reference}

    def difference(self, name: str, other: AblationScores, of_other: str) -> dict[tuple[str, str], Difference]:
        """A configuration − one of an ablation of the same data, each the mean over its seeds; by column."""
        sides = [self.mean_over_seeds(name), other.mean_over_seeds(of_other)]
        count = len(self.videos)

        def statistic(m: Ints) -> Floats:
            return sides[0](m[:count]) if m[:count].any() else sides[1](m[count:])

        labels = [f"{component} {metric}" for component, metric in self.columns]
        sizes = self.runs[self.reference][0].settings["sizes"]
        differences = paired_vector(statistic, self.videos, labels, sizes=sizes, mixed=False, bounds=(-1.0, 1.0))
        return dict(zip(self.columns, differences, strict=True))

    def mean_over_seeds(self, name: str) -> Callable[[Ints], Floats]:
        """Every column of a configuration as a function of how often each video counts."""
        keys = [("global", *column) for column in self.columns]
        columns = [[run.replicates.keys.index(key) for key in keys] for run in self.runs[name]]

        def value(multiplicity: Ints) -> Floats:
            draw = tuple(multiplicity.tolist())
            rows = [run.replicates.values[draw][at] for run, at in zip(self.runs[name], columns, strict=True)]
            return np.asarray(np.mean(rows, axis=0), dtype=np.float64)

        return value

    def headlines(self) -> tuple[Headline, ...]:
        """The differences of triplets' (or instruments') mAP50."""
        main = self.columns[-2]
        return tuple(
            Headline(f"{name}|{main[0]}|{main[1]}", f"{name} − {self.reference}: {label_of(main)}",
                     by_column[main].interval, higher_is_better=None)
            for name, by_column in self.differences.items()
        )  # fmt: skip

    @property
    def spread(self) -> tuple[float, float]:
        """How far apart the means of the main mAP50 lie, and the pooled std over seeds (nan where there is one)."""
        main = self.columns[-2]
        values = [self.values(name, *main) for name in self.runs]
        means = [float(np.mean(row)) for row in values]
        within = [float(np.var(row, ddof=1)) for row in values] if len(self.seeds) > 1 else []
        return max(means) - min(means), math.sqrt(sum(within) / len(within)) if within else math.nan

    @property
    def finding(self) -> str:
        """What the table carries, in a sentence."""
        apart, within = self.spread
        claim = (
            f"The {len(self.runs)} configurations lie {100 * apart:.1f} points of {label_of(self.columns[-2])} apart"
        )
        if math.isnan(within):
            return f"{claim}; one seed cannot separate that from chance."
        size = f"the same configuration differs from itself by {100 * within:.1f} (std over {len(self.seeds)} seeds)"
        if apart <= _noise(len(self.runs), len(self.seeds)) * within / math.sqrt(len(self.seeds)):
            return f"{claim}, {size}: within noise, as far as {len(self.seeds)} seeds can tell."
        clear = [name for name, by_column in self.differences.items() if by_column[self.columns[-2]].significant]
        if not clear:
            return f"{claim}, more than seeds explain ({size}), but not significantly over {len(self.videos)} videos."
        return f"{claim}, {size}; significantly different from {self.reference} over videos: {', '.join(clear)}."

    def paper(self) -> PaperTable:
        """The paper's table with ours above; ± is over seeds here, over folds there."""
        theirs = published(ABLATIONS[self.table].number)
        order = [tuple(column.split(" ", 1)) for column in theirs.columns]
        names = {(_COMPONENTS[component], metric): (component, metric) for component, metric in self.columns}
        scores = self.runs[self.reference][0].settings
        seeds = f"{len(self.seeds)} seed{'' if len(self.seeds) == 1 else 's'}"
        data = f"ours ({scores['label_space']}, {len(self.videos)} videos, {seeds})"
        ours = []
        for name in self.runs:
            by_seed = [self.values(name, *names[column]) if column in names else None for column in order]
            values = tuple(None if row is None else 100 * float(np.mean(row)) for row in by_seed)
            spreads = tuple(
                None if row is None or len(row) < 2 else 100 * float(np.std(row, ddof=1)) for row in by_seed
            )
            ours.append(PaperRow(name, data, scores["convention"], values, spreads))
        return PaperTable(theirs, tuple(ours), first="configuration")

    def sentences(self) -> tuple[str, ...]:
        """Where the rows were scored under another convention than the paper's."""
        return convention_notes(self.own_tables())

    def own_tables(self) -> tuple[PaperTable, ...]:
        """The paper's tables with our rows only."""
        return own_rows([self.paper()])

    def to_json(self) -> dict[str, Any]:
        """The notes and the tables."""
        shown = {key: table.to_dicts() for key, table in self.tables.items() if not key.startswith("scores_")}
        return {**super().to_json(), "tables": shown}

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """`configurations` with mean and std over seeds, `differences` with intervals over videos, `seeds`."""
        rows, each = [], []
        for name in self.runs:
            cells: dict[str, Any] = {"configuration": name, "seeds": len(self.seeds)}
            for column in self.columns:
                values = self.values(name, *column)
                cells[label_of(column)] = float(np.mean(values))
                cells[f"{label_of(column)} std"] = float(np.std(values, ddof=1)) if len(values) > 1 else None
            rows.append(cells)
            each += [{"configuration": name, "seed": seed,
                      **{label_of(column): float(self.values(name, *column)[k]) for column in self.columns}}
                     for k, seed in enumerate(self.seeds)]  # fmt: skip
        tables = {"configurations": pl.DataFrame(rows, infer_schema_length=None),
                  "differences": self._difference_table(), "seeds": pl.DataFrame(each)}  # fmt: skip
        return {name: table.with_columns(pl.selectors.float().fill_nan(None)) for name, table in tables.items()}

    def _difference_table(self) -> pl.DataFrame:
        rows = []
        for name, by_column in self.differences.items():
            for column, d in reversed(by_column.items()):  # triplets first
                by_seed = self.values(name, *column) - self.values(self.reference, *column)
                rows.append({
                    "configuration": name, "minus": self.reference, "number": label_of(column),
                    "difference": d.estimate, "low": d.interval.low, "high": d.interval.high, "p": d.p,
                    "videos": d.interval.clusters,
                    "std over seeds": float(np.std(by_seed, ddof=1)) if len(by_seed) > 1 else None,
                })  # fmt: skip
        floats = dict.fromkeys(("difference", "low", "high", "p", "std over seeds"), pl.Float64)
        return pl.DataFrame(rows, schema_overrides=floats, infer_schema_length=None)

    @property
    def figures(self) -> dict[str, Figure]:
        """`differences` to the reference with their intervals."""
        shown = self.columns[-2:]
        names = tuple(self.differences)
        groups = tuple(
            Series(label_of(column), tuple(_bar(self.differences[name][column]) for name in names)) for column in shown
        )
        title = f"Difference to {self.reference}, mean over {len(self.seeds)} seeds, interval over videos"
        return {"differences": estimates(title, names, groups, "difference")} if names else {}


def _noise(configurations: int, seeds: int) -> float:
    """How many standard errors the means of equal configurations lie apart in all but 5 of 100 cases (Tukey)."""
    from scipy.stats import studentized_range

    return float(studentized_range.ppf(0.95, configurations, configurations * (seeds - 1)))


def label_of(column: tuple[str, str]) -> str:
    """A component and a metric as the paper writes them.

    >>> label_of(("ivt", "mAP50"))
    'IVT mAP50'
    """
    return f"{_COMPONENTS[column[0]]} {column[1]}"


def _bar(d: Difference) -> Estimate:
    low, high = d.interval.low, d.interval.high
    if math.isnan(d.estimate):
        return Estimate(None)
    return Estimate(d.estimate) if math.isnan(low) else Estimate(d.estimate, low, high)


def load_ablation(folder: str | Path) -> AblationScores:
    """A finished ablation; the example of `run_ablation` loads one.

    >>> load_ablation("no/such/folder")
    Traceback (most recent call last):
    surgeval.errors.DataError: no/such/folder/ablation.json: no such file
    """
    run_folder = Path(folder)
    plan = AblationFile.load(run_folder)
    table, seeds = plan.table, plan.seeds
    names = [configuration.name for configuration in ABLATIONS[table].configurations]
    runs = {
        name: tuple(load_triplets(ablation_home(run_folder, name, seed) / SCORES) for seed in seeds) for name in names
    }
    first = runs[ABLATIONS[table].reference][0]
    for name, several in runs.items():
        for run in several:
            other = [
                key for key in ("data", "scheme", "convention", "ties") if run.settings[key] != first.settings[key]
            ]
            if other:
                found = f"scores of another {' and '.join(other)}"
                raise DataError(run_folder / RUNS, f"found {found}, expected the same for all", record=name)
    return AblationScores(
        name=f"Ablation: {table}", table=table, seeds=seeds, runs=runs, folder=run_folder,
        notes=few_video_notes(len(first.settings["videos"])),
    )  # fmt: skip
