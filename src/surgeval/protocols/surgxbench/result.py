"""What a finished run says: its tables, its headline numbers and its figures' data, read from the run folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import polars as pl

from surgeval.engine import RunRecord, check_filled, load_cases, load_record
from surgeval.errors import BadInput, DataError, printable
from surgeval.figures import Figure
from surgeval.metrics.grounding import FLAGS, prediction_sets
from surgeval.pages import Evidence
from surgeval.protocols.contract import Headline, headlines_of
from surgeval.protocols.result import RecordedResult
from surgeval.protocols.surgxbench import tables
from surgeval.protocols.surgxbench.causal_table import CAUSAL_SCHEMA, causal_table
from surgeval.protocols.surgxbench.evidence import surgxbench_evidence
from surgeval.protocols.surgxbench.figures import surgxbench_figures
from surgeval.protocols.surgxbench.item import NO_EXTRAS, Extras, Item
from surgeval.protocols.surgxbench.numbers import MEASURES, guessing, headline_numbers, shares_shown
from surgeval.protocols.surgxbench.stored import load_page
from surgeval.protocols.surgxbench.tables import CONTROLS, MOTION_FLAGS
from surgeval.protocols.surgxbench.verdict import judge
from surgeval.protocols.verdict import Verdict
from surgeval.stats import Interval, find_measure, numbers_table

__all__ = ["SurgXScores", "join_runs", "load_surgxbench", "outcomes"]

_APART = ("split", "videos")  # in which folds differ

_CURVES = ("deletion", "insertion", "deletion_random", "insertion_random")
_SCHEMA: dict[str, pl.DataType] = {
    "task": pl.String(), "frame": pl.String(), "class": pl.String(), "score": pl.Float64(), "best": pl.Boolean(),
    "predicted": pl.Boolean(), "present": pl.Boolean(), "shown": pl.Int64(), "ac": pl.Float64(), "aa": pl.Float64(),
    "chance": pl.Float64(), "chance_class": pl.Float64(), "area": pl.Float64(), "grounded": pl.Boolean(),
    "flags": pl.String(), "excluded": pl.String(), "reference": pl.String(), "triplet": pl.String(),
    "level": pl.String(), "prompt": pl.String(), "ras": pl.Float64(), "ras_chance": pl.Float64(), "valid": pl.Boolean(),
    "ars": pl.Float64(), "check": pl.String(), "step": pl.String(), "correlation": pl.Float64(),
    "asked": pl.String(), "reply": pl.String(), "named": pl.Int64(), "unparsed": pl.Int64(),
    "unparsed_words": pl.String(), "finished": pl.Boolean(), "tokens": pl.Int64(),
    "id": pl.String(), "cluster": pl.String(), "status": pl.String(), "reason": pl.String(),
    **CAUSAL_SCHEMA,
    **{f"match_{name}": pl.Boolean() for name in ("instrument", "verb", "target", "triplet")},
    **{f"kept_{name}": pl.Boolean() for name in CONTROLS},
    **{f"matched_{name}": pl.Boolean() for name in CONTROLS},
    **{f"change_{name}": pl.Float64() for name in CONTROLS},
    **{f"{kind}_area": pl.Float64() for kind in _CURVES},
    **{kind: pl.List(pl.Float64()) for kind in _CURVES},
}  # fmt: skip


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
        every = surgxbench_figures([self])
        return {name: every[name] for name in sorted(every, key=lambda name: name != "four_way")}

    def evidence(self) -> Evidence | None:
        """A row per frame: what was named, what is labelled, right or not, grounded or not."""
        return surgxbench_evidence(self)

    def headlines(self) -> tuple[Headline, ...]:
        """Right, and right for the right reason, each with what chance reaches."""
        commonest = max(shares_shown(self.cases).values(), default=None)
        return headlines_of(MEASURES, self.numbers, baselines=self.baselines, unseeing={"accuracy": commonest})

    @cached_property
    def _verdict(self) -> Verdict | None:
        """Does it name instruments by looking at them? None for a run that did not name any."""
        return judge(self)

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
    records = [load_record(folder, "surgxbench") for folder in folders]
    if not records:
        raise BadInput("runs: found none, expected at least one folder")
    for folder, record in zip(folders, records, strict=True):
        file = Path(folder) / "run.json"
        _check_record(file, record)
        own, first = record.config, records[0].config
        other = sorted(key for key in own.keys() | first.keys() if key not in _APART and own.get(key) != first.get(key))
        if other:
            raise DataError(file, f"found other {', '.join(other)}, expected those of {folders[0]}", field="config")
    every = pl.concat([_read(Path(folder)) for folder in folders], how="diagonal_relaxed")
    if every["id"].n_unique() != every.height:
        raise DataError(Path(folders[-1]), "found frames that another run holds too, expected each frame in one run")
    failed = every.filter(pl.col("status") != "ok").group_by("status", "reason").len("cases").sort("status", "reason")
    stored = [load_page(Path(folder)) for folder in folders]
    first_page = stored[0]
    scores = _scores(
        name or first_page.name or Path(folders[0]).resolve().name,
        records[0],
        every.filter(pl.col("status") == "ok"),
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


# What the tables and the page take from run.json's config, which anybody can have edited.
_KINDS: Mapping[str, tuple[type | tuple[type, ...], tuple[str, ...]]] = {
    "text": (str, ("profile", "predict", "over", "region", "geometry")),
    "a number": ((int, float), ("delta", "keep_top", "threshold", "every")),
    "a list": (list, ("tasks", "classes")),
    "a map": (dict, ("method",)),
}


def _check_record(file: Path, record: RunRecord) -> None:
    config = record.config
    for expected, (kind, keys) in _KINDS.items():
        for key in keys:
            if not isinstance(config.get(key), kind):
                raise DataError(file, f"found {repr(config.get(key))[:60]}, expected {expected}", field=f"config.{key}")
    parts = {"model": (record.model, ("name", "family", "identity")),
             "dataset": (record.dataset, ("name", "format"))}  # fmt: skip
    names = {f"{part}.{key}": fields.get(key) if isinstance(fields, Mapping) else None
             for part, (fields, keys) in parts.items() for key in keys}  # fmt: skip
    names |= {f"config.{key}[{n}]": name for key in ("tasks", "classes") for n, name in enumerate(config[key])}
    for field, value in {**names, "config.method.name": config["method"].get("name")}.items():
        if not isinstance(value, str) or (field.startswith("config.") and printable(value) != value):
            raise DataError(file, f"found {repr(value)[:60]}, expected text", field=field)


def _read(folder: Path) -> pl.DataFrame:
    """The cases of one run with every column of the protocol."""
    file = folder / "cases.parquet"
    try:
        cases = load_cases(folder).collect()
        nested = next((name for name, dtype in cases.schema.items() if isinstance(dtype, pl.Struct | pl.Array)), None)
        if nested is not None:
            raise DataError(file, "found a column of records, expected plain values or lists of them", field=nested)
        cases = _complete(cases)
    except (pl.exceptions.PolarsError, OSError) as error:
        trouble = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise DataError(file, f"found a table that cannot be read ({trouble}), expected the cases of a run") from None
    check_filled(cases, ("task", "frame"), file)
    lengths = cases.filter(pl.col("task") == "curves").select(pl.col(name).list.len() for name in _CURVES)
    sizes = {size for row in lengths.iter_rows() for size in row}
    if len(sizes) > 1 or sizes & {None, 0, 1}:
        raise DataError(file, "found lists of other lengths, expected as many steps each", field="curves")
    return cases


def _scores(name: str, record: RunRecord, cases: pl.DataFrame) -> SurgXScores:
    config = record.config
    classes = tuple(config["classes"])
    if (config["predict"], config["over"]) == ("delta", "frames"):
        cases = _over_frames(cases, float(config["delta"]))
    table_of: dict[str, pl.DataFrame] = {}
    if "instruments" in config["tasks"]:
        table_of["classes"] = tables.classes_table(cases, classes)
        table_of["four_way"] = tables.four_way_table(cases, classes)
        table_of["references"] = tables.reference_table(cases)
        table_of["occlusion"] = tables.occlusion_table(cases, "instruments")
        table_of["curves"] = tables.curves_table(cases)
        table_of["sanity"] = tables.sanity_table(cases)
        table_of["videos"] = tables.video_table(cases)
    early = config["profile"] == "early"
    if early and "instruments" in config["tasks"]:
        table_of["table1"] = tables.early_instruments(cases)
    if "triplets" in config["tasks"]:
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


def _complete(cases: pl.DataFrame) -> pl.DataFrame:
    """Every column of the protocol, null where no case had it, and one column per flag: cases.parquet keeps them as
    words in `flags`.
    """
    full = cases.with_columns(
        pl.col(name).cast(dtype) if name in cases.columns else pl.lit(None, dtype=dtype).alias(name)
        for name, dtype in _SCHEMA.items()
    )
    raised = pl.col("flags").str.split(" ")
    return full.with_columns(raised.list.contains(name).alias(f"flag_{name}") for name in (*FLAGS, *MOTION_FLAGS))


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
