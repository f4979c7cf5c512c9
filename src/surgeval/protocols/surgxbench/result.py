"""What a finished run says: its tables, its headline numbers and its figures' data, read from the run folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from surgeval.engine import RunRecord, load_cases, load_record
from surgeval.errors import BadInput, DataError
from surgeval.metrics.grounding import FLAGS, prediction_sets
from surgeval.protocols.surgxbench import tables
from surgeval.protocols.surgxbench.tables import CONTROLS, MOTION_FLAGS
from surgeval.stats import Interval

__all__ = ["RESAMPLES", "SurgXScores", "join_runs", "load_surgxbench"]

RESAMPLES = 2000
_APART = ("split", "videos")  # in which folds differ

_CURVES = ("deletion", "insertion", "deletion_random", "insertion_random")
_SCHEMA: dict[str, pl.DataType] = {
    "task": pl.String(), "frame": pl.String(), "class": pl.String(), "score": pl.Float64(), "best": pl.Boolean(),
    "predicted": pl.Boolean(), "present": pl.Boolean(), "shown": pl.Int64(), "ac": pl.Float64(), "aa": pl.Float64(),
    "chance": pl.Float64(), "chance_class": pl.Float64(), "area": pl.Float64(), "grounded": pl.Boolean(),
    "flags": pl.String(), "excluded": pl.String(), "reference": pl.String(), "triplet": pl.String(),
    "level": pl.String(), "prompt": pl.String(), "ras": pl.Float64(), "ras_chance": pl.Float64(), "valid": pl.Boolean(),
    "ars": pl.Float64(), "check": pl.String(), "step": pl.String(), "correlation": pl.Float64(),
    "id": pl.String(), "cluster": pl.String(), "status": pl.String(), "reason": pl.String(),
    **{f"match_{name}": pl.Boolean() for name in ("instrument", "verb", "target", "triplet")},
    **{f"kept_{name}": pl.Boolean() for name in CONTROLS},
    **{f"change_{name}": pl.Float64() for name in CONTROLS},
    **{f"{kind}_area": pl.Float64() for kind in _CURVES},
    **{kind: pl.List(pl.Float64()) for kind in _CURVES},
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class SurgXScores:
    """One model on one dataset. `headline` holds the numbers to read first, `tables` everything else."""

    name: str
    record: RunRecord
    classes: tuple[str, ...]
    cases: pl.DataFrame
    headline: Mapping[str, Interval]
    tables: Mapping[str, pl.DataFrame]

    @property
    def settings(self) -> Mapping[str, Any]:
        """As run.json holds them."""
        return self.record.manifest.config

    @property
    def failed(self) -> int:
        """Frames and records that could not be used; table `failures` says why."""
        return int(self.tables["failures"]["cases"].sum()) if "failures" in self.tables else 0

    def to_frame(self) -> pl.DataFrame:
        """The headline numbers, a row each."""
        rows = [(key, one.estimate, one.low, one.high, one.clusters) for key, one in self.headline.items()]
        names = ("number", "estimate", "low", "high", "videos")
        return pl.DataFrame(rows, schema=names, orient="row").with_columns(
            pl.col("estimate", "low", "high").fill_nan(None)
        )

    def __str__(self) -> str:
        return "\n".join([self.name, *(f"  {key}: {one}" for key, one in self.headline.items())])

    def _repr_html_(self) -> str:
        return str(self.to_frame()._repr_html_())


def load_surgxbench(
    folder: str | Path, *, name: str | None = None, resamples: int = RESAMPLES, seed: int = 0
) -> SurgXScores:
    """Read a finished run folder."""
    return join_runs([folder], name=name or Path(folder).resolve().name, resamples=resamples, seed=seed)


def join_runs(folders: Sequence[str | Path], *, name: str, resamples: int = RESAMPLES, seed: int = 0) -> SurgXScores:
    """Several runs as one, for instance the folds of a cross-validation: same settings and classes, other videos."""
    records = [load_record(Path(folder)) for folder in folders]
    if not records:
        raise BadInput("runs: found none, expected at least one folder")
    for folder, record in zip(folders, records, strict=True):
        place = Path(folder) / "run.json"
        if record.manifest.protocol != "surgxbench":
            raise DataError(place, field="protocol", found=record.manifest.protocol, expected="surgxbench")
        _check_record(place, record)
        own, first = record.manifest.config, records[0].manifest.config
        other = sorted(key for key in own.keys() | first.keys() if key not in _APART and own.get(key) != first.get(key))
        if other:
            raise DataError(place, field="config", found=f"other {', '.join(other)}", expected=f"those of {folders[0]}")
    every = pl.concat([_read(Path(folder)) for folder in folders], how="diagonal_relaxed")
    if every["id"].n_unique() != every.height:
        raise DataError(Path(folders[-1]), found="frames that another run holds too", expected="each frame in one run")
    failed = every.filter(pl.col("status") != "ok").group_by("status", "reason").len("cases").sort("status", "reason")
    cases = every.filter(pl.col("status") == "ok")
    scores = _scores(name, records[0], cases, resamples, seed)
    return replace(scores, tables={**scores.tables, **({"failures": failed} if failed.height else {})})


# What the tables and the page take from run.json's config, which anybody can have edited.
_KINDS: Mapping[str, tuple[type | tuple[type, ...], tuple[str, ...]]] = {
    "text": (str, ("profile", "predict", "over", "region", "geometry")),
    "a number": ((int, float), ("delta", "keep_top", "threshold", "every")),
    "a list": (list, ("tasks", "classes")),
    "a map": (dict, ("method",)),
}


def _check_record(place: Path, record: RunRecord) -> None:
    config = record.manifest.config
    for expected, (kind, keys) in _KINDS.items():
        for key in keys:
            if not isinstance(config.get(key), kind):
                raise DataError(place, field=f"config.{key}", found=repr(config.get(key))[:60], expected=expected)
    parts = {"model": (record.manifest.model, ("name", "family", "identity")),
             "dataset": (record.manifest.dataset, ("name", "format"))}  # fmt: skip
    names = {f"{part}.{key}": one.get(key) if isinstance(one, Mapping) else None
             for part, (one, keys) in parts.items() for key in keys}  # fmt: skip
    names |= {f"config.{key}[{n}]": one for key in ("tasks", "classes") for n, one in enumerate(config[key])}
    for field, value in {**names, "config.method.name": config["method"].get("name")}.items():
        if not isinstance(value, str):
            raise DataError(place, field=field, found=repr(value)[:60], expected="text")


def _read(folder: Path) -> pl.DataFrame:
    """The cases of one run with every column of the protocol."""
    place = folder / "cases.parquet"
    try:
        cases = _complete(load_cases(folder).collect())
    except (pl.exceptions.PolarsError, OSError) as error:
        said = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise DataError(place, found=f"a table that cannot be read ({said})", expected="the cases of a run") from None
    lengths = cases.filter(pl.col("task") == "curves").select(pl.col(name).list.len() for name in _CURVES)
    sizes = {size for row in lengths.iter_rows() for size in row}
    if len(sizes) > 1 or sizes & {None, 0, 1}:
        raise DataError(place, field="curves", found="lists of other lengths", expected="as many steps each")
    return cases


def _scores(name: str, record: RunRecord, cases: pl.DataFrame, resamples: int, seed: int) -> SurgXScores:
    config = record.manifest.config
    classes = tuple(config["classes"])
    if (config["predict"], config["over"]) == ("delta", "frames"):
        cases = _over_frames(cases, float(config["delta"]))
    made: dict[str, pl.DataFrame] = {}
    options = {"resamples": resamples, "seed": seed}
    if "instruments" in config["tasks"]:
        made["classes"] = tables.classes_table(cases, classes, **options)
        made["four_way"] = tables.four_way_table(cases, classes, **options)
        made["references"] = tables.reference_table(cases, **options)
        made["occlusion"] = tables.occlusion_table(cases, "instruments", **options)
        made["curves"] = tables.curves_table(cases, **options)
        made["sanity"] = tables.sanity_table(cases, **options)
        made["videos"] = tables.video_table(cases)
    early = config["profile"] == "early"
    if early and "instruments" in config["tasks"]:
        made["table1"] = tables.early_instruments(cases, **options)
    if "triplets" in config["tasks"]:
        if early:
            made["table2"] = tables.early_triplets(cases, **options)
        else:
            made["matches"] = tables.match_table(cases, **options)
            made["occlusion_triplets"] = tables.occlusion_table(cases, "triplets", **options)
    made["flags"] = _flag_table(cases)
    kept = {key: table for key, table in made.items() if not table.is_empty()}
    headline = tables.headline(cases, **options) if "instruments" in config["tasks"] else {}
    return SurgXScores(name, record, classes, cases, headline, kept)


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
    said = []
    for part in rows.partition_by("class", maintain_order=True):
        chosen = prediction_sets(part["score"].to_numpy()[:, None], delta, "frames")[:, 0]
        said.append(part.select("id").with_columns(pl.Series("said", chosen)))
    if not said:
        return cases
    return (
        cases.join(pl.concat(said), on="id", how="left")
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
