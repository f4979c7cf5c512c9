"""What a finished run says: its tables, its headline numbers and its figures' data, read from the run folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl
from pydantic import Field, create_model

from surgeval.engine import RunRecord
from surgeval.errors import BadInput, DataError
from surgeval.files import check_stored
from surgeval.metrics.grounding import FLAGS, prediction_sets
from surgeval.protocols.contract import Headline, headlines_of
from surgeval.protocols.result import CaseRow, RecordedResult, RunFiles, RunSettings
from surgeval.protocols.surgxbench import tables
from surgeval.protocols.surgxbench.causal_table import CausalCase, causal_table
from surgeval.protocols.surgxbench.item import NO_EXTRAS, Extras, Item
from surgeval.protocols.surgxbench.numbers import MEASURES, guessing, headline_numbers, shares_shown
from surgeval.protocols.surgxbench.stored import load_page
from surgeval.protocols.surgxbench.tables import CONTROLS, MOTION_FLAGS
from surgeval.protocols.surgxbench.verdict import judge
from surgeval.stats import Interval, find_measure, numbers_table

if TYPE_CHECKING:
    from surgeval.figures import Figure
    from surgeval.pages import Evidence
    from surgeval.protocols.verdict import Verdict

__all__ = ["SurgXScores", "join_runs", "load_surgxbench", "outcomes"]

_APART = ("split", "videos")  # in which folds differ

_CURVES = ("deletion", "insertion", "deletion_random", "insertion_random")


class _Case(CausalCase):
    """What is known of a frame: of a class or prompt in it, of a reply, of a check. `task` says which."""

    task: str
    frame: str
    class_name: Annotated[str | None, Field(alias="class")] = None
    score: float | None = None
    best: bool | None = None
    predicted: bool | None = None
    present: bool | None = None
    shown: int | None = None
    ac: float | None = None
    aa: float | None = None
    chance: float | None = None
    chance_class: float | None = None
    area: float | None = None
    grounded: bool | None = None
    flags: str | None = None
    excluded: str | None = None
    reference: str | None = None
    triplet: str | None = None
    level: str | None = None
    prompt: str | None = None
    top: list[str] | None = None
    ras: float | None = None
    ras_chance: float | None = None
    valid: bool | None = None
    ars: float | None = None
    check_name: Annotated[str | None, Field(alias="check")] = None
    step: str | None = None
    correlation: float | None = None
    asked: str | None = None
    reply: str | None = None
    named: int | None = None
    unparsed: int | None = None
    unparsed_words: str | None = None
    finished: bool | None = None
    tokens: int | None = None


_FLAG, _NUMBER, _STEPS = (bool | None, None), (float | None, None), (list[float] | None, None)
SurgXCase: type[CaseRow] = create_model(
    "SurgXCase",
    __base__=_Case,
    __doc__="A case, with the values that there is one of for each control and each curve.",
    **{f"match_{name}": _FLAG for name in ("instrument", "verb", "target", "triplet")},
    **{f"{kind}_{name}": _FLAG for kind in ("kept", "matched") for name in CONTROLS},
    **{f"change_{name}": _NUMBER for name in CONTROLS},
    **{f"{kind}_area": _NUMBER for kind in _CURVES},
    **dict.fromkeys(_CURVES, _STEPS),
)  # type: ignore[call-overload]


Share = Annotated[float, Field(ge=0, le=1)]


class _Named(RunSettings):
    name: str


class SurgXRunSettings(RunSettings):
    """What tables and page take from the settings in run.json."""

    profile: str
    predict: str
    over: str
    region: str
    geometry: str
    delta: Share
    keep_top: Share
    threshold: Share
    grounded_at: Share
    every: Annotated[float, Field(gt=0)]
    tasks: tuple[str, ...]
    classes: tuple[str, ...]
    method: _Named


class _RunModel(_Named):
    family: str
    identity: str


class _RunDataset(_Named):
    format: str


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SurgXScores(RecordedResult):
    """One model on one dataset: `numbers` to read first, `tables`, `figures`, and pictures (`items`, `extras`)."""

    name: str
    record: RunRecord
    classes: tuple[str, ...]
    cases: pl.DataFrame
    numbers: Mapping[str, Interval]
    detail_tables: Mapping[str, pl.DataFrame]  # all tables but that of the numbers
    items: tuple[Item, ...] = ()
    extras: Extras = NO_EXTRAS
    notes: tuple[str, ...] = ()

    protocol = "surgxbench"
    measures = MEASURES

    @property
    def failed(self) -> int:
        """Frames and records that could not be used; table `failures` says why."""
        return int(self.detail_tables["failures"]["cases"].sum()) if "failures" in self.detail_tables else 0

    @property
    def tables(self) -> Mapping[str, pl.DataFrame]:
        """`headline` has the numbers to read first, a row each; then the tables of the papers and of the checks."""
        if not self.numbers:
            return self.detail_tables
        table = numbers_table(MEASURES, self.numbers, baselines=self.baselines, settings=self.settings)
        return {"headline": table, **self.detail_tables}

    @cached_property
    def baselines(self) -> Mapping[str, float | None]:
        """The baselines that the frames decide: of top-1 a guess among the instruments."""
        return {"accuracy": guessing(self.cases, len(self.classes))}

    @property
    def figures(self) -> Mapping[str, Figure]:
        """The figures of the page; `four_way` (right or wrong, grounded or not) stands first."""
        from surgeval.protocols.surgxbench.figures import surgxbench_figures

        every = surgxbench_figures([self])
        return {name: every[name] for name in sorted(every, key=lambda name: name != "four_way")}

    def evidence(self) -> Evidence | None:
        """A row per frame: what was named, what is labelled, right or not, grounded or not."""
        from surgeval.protocols.surgxbench.evidence import surgxbench_evidence

        return surgxbench_evidence(self)

    def headlines(self) -> tuple[Headline, ...]:
        """Right, and right for the right reason, each with what chance reaches."""
        commonest = max(shares_shown(self.cases).values(), default=None)
        return headlines_of(MEASURES, self.numbers, chances=self.baselines, baselines={"accuracy": commonest})

    @cached_property
    def _verdict(self) -> Verdict | None:
        """Does it name instruments by looking at them? None for a run that did not name any."""
        return judge(self)

    def to_json(self) -> dict[str, Any]:
        """The verdict, the settings, the headline numbers and every table."""
        verdict = self.verdict()
        numbers = {
            key: {"estimate": one.estimate, "low": _plain(one.low), "high": _plain(one.high), "videos": one.clusters}
            for key, one in self.numbers.items()
        }
        return {
            "model": self.name, "verdict": None if verdict is None else verdict.to_json(),
            "settings": dict(self.settings), "headline": numbers,
            "tables": {key: table.to_dicts() for key, table in self.detail_tables.items()},
        }  # fmt: skip

    def __str__(self) -> str:
        verdict = [] if self._verdict is None else [f"  {self._verdict}"]
        numbers = (f"  {find_measure(MEASURES, key).label}: {interval}" for key, interval in self.numbers.items())
        return "\n".join([self.name, *verdict, *numbers])


def load_surgxbench(folder: str | Path, *, name: str | None = None) -> SurgXScores:
    """Read a finished run folder; what is not given is as its page was made.

    The example of `run_surgxbench` loads one.

    >>> load_surgxbench("runs/clip")
    Traceback (most recent call last):
    surgeval.errors.DataError: runs/clip: no such folder
    """
    return join_runs([folder], name=name)


def join_runs(folders: Sequence[str | Path], *, name: str | None = None) -> SurgXScores:
    """Several runs as one, for instance the folds of a cross-validation: same settings and classes, other videos.

    The example of `run_surgxbench` joins two.

    >>> join_runs([])
    Traceback (most recent call last):
    surgeval.errors.BadInput: runs: found none, expected at least one folder
    """
    if not folders:
        raise BadInput("runs: found none, expected at least one folder")
    runs = [RunFiles.open(folder, "surgxbench", SurgXRunSettings) for folder in folders]
    for run in runs:
        file = run.folder / run.record.file_name
        check_stored(_RunModel, run.record.model, file, "model")
        check_stored(_RunDataset, run.record.dataset, file, "dataset")
        own, first = run.record.config, runs[0].record.config
        other = sorted(key for key in own.keys() | first.keys() if key not in _APART and own.get(key) != first.get(key))
        if other:
            raise DataError(file, f"found other {', '.join(other)}, expected those of {folders[0]}", field="config")
    every = pl.concat([_read(run.folder) for run in runs])
    if every["id"].n_unique() != every.height:
        raise DataError(Path(folders[-1]), "found frames that another run holds too, expected each frame in one run")
    failed = every.filter(pl.col("status") != "ok").group_by("status", "reason").len("cases").sort("status", "reason")
    stored = [load_page(run.folder) for run in runs]
    scores = _scores(
        name or stored[0].name or runs[0].folder.resolve().name, runs[0], every.filter(pl.col("status") == "ok")
    )
    flow = next((page.extras.flow for page in stored if page.extras.flow is not None), None)
    return replace(
        scores,
        detail_tables={**scores.detail_tables, **({"failures": failed} if failed.height else {})},
        items=tuple(item for page in stored for item in page.items),
        extras=Extras(tuple(hiding for page in stored for hiding in page.extras.hidings), flow),
        notes=tuple(note for page in stored for note in page.notes),
    )


def outcomes(scores: SurgXScores) -> pl.DataFrame:
    """What `rank` takes: of each frame that shows an instrument, whether the best prompt names one that is there.

    >>> from types import SimpleNamespace
    >>> best = {"task": "instruments", "best": True, "shown": 1, "present": True}
    >>> outcomes(SimpleNamespace(cases=pl.DataFrame([best | {"cluster": "VID01", "frame": "000016"}]))).rows()
    [('VID01/000016', 'VID01', 'instruments', False, True)]
    """
    best = scores.cases.filter((pl.col("task") == "instruments") & pl.col("best") & (pl.col("shown") > 0))
    if best.is_empty():
        raise BadInput(f"{scores.name}: found no frame with an instrument, expected a run of task instruments")
    return best.select(
        pl.concat_str("cluster", pl.lit("/"), "frame").alias("qID"), pl.col("cluster").alias("video"),
        pl.lit("instruments").alias("group"), pl.lit(False).alias("ood"), pl.col("present").alias("correctness"),
    )  # fmt: skip


def _read(folder: Path) -> pl.DataFrame:
    """The cases of one run."""
    cases = SurgXCase.load(folder)
    lengths = cases.filter(pl.col("task") == "curves").select(pl.col(name).list.len() for name in _CURVES)
    sizes = {size for row in lengths.iter_rows() for size in row}
    if len(sizes) > 1 or sizes & {None, 0, 1}:
        sentence = "expected lists of the same length, at least 2, in all cases of task curves"
        raise DataError(folder / SurgXCase.file_name, sentence, field=_CURVES[0], code="wrong-shape")
    return with_flags(cases)


def with_flags(cases: pl.DataFrame) -> pl.DataFrame:
    """The cases with a column per flag; cases.parquet keeps them as words in `flags`."""
    raised = pl.col("flags").str.split(" ")
    return cases.with_columns(raised.list.contains(name).alias(f"flag_{name}") for name in (*FLAGS, *MOTION_FLAGS))


def _scores(name: str, run: RunFiles[SurgXRunSettings], cases: pl.DataFrame) -> SurgXScores:
    record, config, classes = run.record, run.settings, run.settings.classes
    if (config.predict, config.over) == ("delta", "frames"):
        cases = _over_frames(cases, config.delta)
    table_of: dict[str, pl.DataFrame] = {}
    if "instruments" in config.tasks:
        table_of["classes"] = tables.classes_table(cases, classes)
        table_of["four_way"] = tables.four_way_table(cases, classes)
        table_of["references"] = tables.reference_table(cases)
        table_of["occlusion"] = tables.occlusion_table(cases, "instruments")
        table_of["curves"] = tables.curves_table(cases)
        table_of["sanity"] = tables.sanity_table(cases)
        table_of["videos"] = tables.video_table(cases)
    early = config.profile == "early"
    if early and "instruments" in config.tasks:
        table_of["table1"] = tables.early_instruments(cases)
    if "triplets" in config.tasks:
        if early:
            table_of["table2"] = tables.early_triplets(cases)
        else:
            table_of["matches"] = tables.match_table(cases)
            table_of["occlusion_triplets"] = tables.occlusion_table(cases, "triplets")
    table_of["replies"] = tables.reply_table(cases)
    table_of["unparsed"] = tables.unparsed_table(cases)
    table_of["causal"] = causal_table(cases)
    table_of["flags"] = _flag_table(cases)
    details = {key: table for key, table in table_of.items() if not table.is_empty()}
    numbers = headline_numbers(cases)
    return SurgXScores(name=name, record=record, classes=classes, cases=cases, numbers=numbers, detail_tables=details)


def _over_frames(cases: pl.DataFrame, delta: float) -> pl.DataFrame:
    """`over="frames"`: a class is said where its score is above the class's own quantile over all frames."""
    rows = cases.filter(pl.col("task") == "instruments")
    predicted = []
    for part in rows.partition_by("class", maintain_order=True):
        in_set = prediction_sets(part["score"].to_numpy()[:, None], delta, "frames")[:, 0]
        predicted.append(part.select("id").with_columns(pl.Series("said", in_set)))
    if not predicted:
        return cases
    return (
        cases.join(pl.concat(predicted), on="id", how="left")
        .with_columns(pl.coalesce("said", "predicted").alias("predicted"))
        .drop("said")
    )


def _flag_table(cases: pl.DataFrame) -> pl.DataFrame:
    """How often each flag was raised, by task: nothing is left out silently."""
    rows = cases.filter(pl.col("task").is_in(["instruments", "triplets", "ars"]) & (pl.col("flags") != ""))
    return (
        rows.select("task", pl.col("flags").str.split(" ").alias("flag"))
        .explode("flag")
        .group_by("task", "flag")
        .len("cases")
        .sort("task", "flag")
    )


def _plain(value: float) -> float | None:
    return None if value != value else value
