"""What `scores.json` must say, and what must stand beside it, for a page and a comparison to be made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl

from surgeval.errors import DataError
from surgeval.metrics import CONVENTIONS, TIES
from surgeval.protocols.triplets.figures import TITLES
from surgeval.protocols.triplets.metrics import NAMES, Key
from surgeval.protocols.triplets.scoring.numbers import ScoreNumber, StoredReplicates
from surgeval.protocols.triplets.stored import expect, is_number
from surgeval.stats import Interval

__all__ = ["check_scores"]

_Columns: TypeAlias = dict[str, type[pl.DataType]]
METHODS = ("t", "bound", "none")  # of intervals over videos


def check_scores(
    folder: Path,
    data: Mapping[str, Any],
    schema: int,
    sheets: Mapping[str, pl.DataFrame],
    drawn: Sequence[str],
    replicates: StoredReplicates,
) -> tuple[ScoreNumber, ...]:
    """The numbers of a scored folder whose files fit together; `drawn` are the components of curves and matrices."""
    path = folder / "scores.json"
    expect(data.get("schema") == schema, path, "schema", data.get("schema"),
           f"{schema} (score the predictions again)")  # fmt: skip
    kinds: dict[str, type] = {"name": str, "task": str, "settings": dict, "thresholds": dict, "notes": list,
                              "numbers": list}  # fmt: skip
    for key, kind in kinds.items():
        expect(isinstance(data.get(key), kind), path, key, data.get(key), f"a {kind.__name__}")
    expect(data["task"] in ("detection", "recognition"), path, "task", data["task"], "detection or recognition")
    expect(all(isinstance(note, str) for note in data["notes"]), path, "notes", data["notes"], "texts")
    for component, value in data["thresholds"].items():
        expect(is_number(value), path, f"thresholds: {component}", value, "a finite number")
    _check_settings(path, data["task"], data["settings"])
    numbers = tuple(_number(path, number, data["settings"]) for number in data["numbers"])
    keys = [number.key for number in numbers]
    if sorted(keys) != sorted(replicates.keys):
        raise DataError(folder / "replicates.parquet", "found other numbers, expected those of scores.json")
    _check_sheets(folder / "details.json", data["task"], data["settings"], sheets, set(keys))
    for component in drawn:
        expect(component in TITLES, folder / "details.json", "curves", component, f"one of {', '.join(TITLES)}")
    return numbers


def _check_settings(path: Path, task: str, settings: Mapping[str, Any]) -> None:
    def require(key: str, fits: bool, expected: str) -> None:
        expect(fits, path, f"settings: {key}", settings.get(key), expected)

    for key in ("data", "label_space", "rare_from"):
        require(key, isinstance(settings.get(key), str), "a text")
    for key in ("rare", "frames"):
        require(key, type(settings.get(key)) is int and settings[key] >= 0, "a whole number")
    for key in ("videos", "components"):
        names = settings.get(key)
        require(key, isinstance(names, list) and bool(names) and all(isinstance(name, str) for name in names), "names")
        require(key, len(set(settings[key])) == len(settings[key]), "each name once")
    sizes = settings.get("sizes")
    whole = isinstance(sizes, list) and all(type(size) is int and 0 <= size < 2**53 for size in sizes)
    require("sizes", whole and len(settings["sizes"]) == len(settings["videos"]), "a number for each video")
    require("sizes", any(settings["sizes"]), "some above 0")
    require("components", set(settings["components"]) <= set(TITLES), f"some of {', '.join(TITLES)}")
    scheme = settings.get("scheme")
    kind = scheme.get("kind") if isinstance(scheme, dict) else None
    require("scheme", kind in ("all", "folds", "sources"), "a kind: all, folds or sources")
    if task == "detection":
        require("convention", settings.get("convention") in CONVENTIONS, f"one of {', '.join(CONVENTIONS)}")
        require("ties", settings.get("ties") in TIES, f"one of {', '.join(TIES)}")


def _number(path: Path, row: Any, settings: Mapping[str, Any]) -> ScoreNumber:
    expect(isinstance(row, dict), path, "numbers", row, "a number")
    texts = [row.get(key) for key in ("scope", "component", "metric", "note")]
    expect(all(isinstance(text, str) and "|" not in text for text in texts), path, "numbers", row, "its names")
    expect(row["component"] in NAMES, path, "numbers", row["component"], f"one of {', '.join(NAMES)}")
    ends = [row.get(key, "") for key in ("estimate", "low", "high")]
    expect(all(end is None or is_number(end) for end in ends), path, "numbers", row, "estimate, low and high")
    clusters = row.get("clusters")
    expect(type(clusters) is int and clusters >= 0, path, "numbers", clusters, "the number of videos")
    method = row.get("method")
    expect(method in METHODS, path, "numbers", method, f"a method: {', '.join(METHODS)}")
    estimate, low, high = (float("nan") if end is None else float(end) for end in ends)
    key = Key(row["scope"], row["component"], row["metric"])
    interval = Interval(
        estimate=estimate, low=low, high=high, method=method, point="statistic", n=clusters, clusters=clusters,
        name=key.text, note=row["note"],
    )  # fmt: skip
    return ScoreNumber(key, interval)


def _check_sheets(
    path: Path, task: str, settings: Mapping[str, Any], sheets: Mapping[str, pl.DataFrame], keys: set[Key]
) -> None:
    """The tables that the page reads by column, and the numbers it leads with."""
    detection = task == "detection"
    metric, metrics = ("AP50", ("mAP50", "mAP50:95", "F1")) if detection else ("AP", ("mAP",))
    wanted: dict[str, _Columns] = {"components": {"component": pl.String}}
    if not detection:
        wanted["components"]["constant mAP"] = pl.Float64
    for component in settings["components"]:
        numbers = {"class": pl.Int64, "instances": pl.Int64, metric: pl.Float64}
        wanted[f"classes_{component}"] = {"name": pl.String, **numbers}
    main = "ivt" if "ivt" in settings["components"] else settings["components"][0]
    if "rare" in sheets:
        wanted[f"classes_{main}"]["rare"] = pl.Boolean
    if detection:
        names = dict.fromkeys((*CONVENTIONS, "difference"), pl.Float64)
        wanted["conventions"] = {"component": pl.String, "metric": pl.String, **names}
    if "constant mAP50" in sheets.get("components", pl.DataFrame()).columns:
        wanted["components"]["constant mAP50"] = pl.Float64
    if f"constant {metric}" in sheets.get(f"classes_{main}", pl.DataFrame()).columns:
        wanted[f"classes_{main}"][f"constant {metric}"] = pl.Float64
    if "videos" in sheets:
        wanted["videos"] = {"video": pl.String, "alone": pl.Float64, "without": pl.Float64}
    if "ties" in sheets:
        numbers = dict.fromkeys(("reference", "order-free", "difference"), pl.Float64)
        wanted["ties"] = {"component": pl.String, "class": pl.String, "metric": pl.String, **numbers}
    if "association" in sheets:
        shares = dict.fromkeys(("share", "share_low", "share_high"), pl.Float64)
        wanted["association"] = {"outcome": pl.String, "meaning": pl.String, "count": pl.Int64, **shares}
    if settings["scheme"]["kind"] != "all":
        wanted[settings["scheme"]["kind"]] = {"component": pl.String, "group": pl.String, "videos": pl.Int64}
    for name, columns in wanted.items():
        expect(name in sheets, path, "sheets", ", ".join(sheets), f"a sheet {name}")
        for column, kind in columns.items():
            dtype = sheets[name].schema.get(column)
            expect(dtype == kind, path, f"sheets.{name}.{column}", str(dtype), kind.__name__)
            whole = kind == pl.Float64 or column == "videos" or not sheets[name][column].null_count()
            expect(whole, path, f"sheets.{name}.{column}", "an empty cell", "a value in every row")
    for wanted_metric in metrics:
        key = Key("global", main, wanted_metric)
        expect(key in keys, path.with_name("scores.json"), "numbers", f"no {key.label}", "it among the numbers")
