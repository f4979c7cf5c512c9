"""The tables of a score, as polars frames with full precision; each is one CSV file of the same name.

Numbers of several groups (folds, sources) are means over the groups, their spread the standard deviation with
ddof = 1. A class without ground truth in a group is left out of that group's mean, never counted as 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from surgeval.arrays import Floats, Ints
from surgeval.metrics import ASSOCIATION_COUNTS, Confusion, mean_along, weighted_average_precision
from surgeval.protocols.triplets.metrics import OUTCOMES, SCOPES, Key, detection_metrics
from surgeval.protocols.triplets.scoring.detection import DetectionPart
from surgeval.protocols.triplets.scoring.numbers import ScoreNumber
from surgeval.protocols.triplets.scoring.recognition import FrameScores, RecognitionPart
from surgeval.vocab import LabelSpace

__all__ = ["association_table", "class_labels", "component_table", "confusion_table", "convention_table",
           "detection_classes", "frame_labels", "group_table", "headline_table", "plain",
           "recognition_classes", "tie_table"]  # fmt: skip


def class_labels(space: LabelSpace | None, component: str, n_classes: int) -> tuple[str, ...]:
    """What the classes of a component are called; pairs and triplets with a comma between their parts."""
    if space is None:
        return tuple(str(k) for k in range(n_classes))
    parts = {"i": space.instruments, "v": space.verbs, "t": space.targets}
    if component in parts:
        return parts[component]
    ids = space.component_ids(component)
    names = [""] * n_classes
    for triplet, k in zip(space.triplets, ids.tolist(), strict=True):
        id_of = dict(zip("ivt", triplet, strict=True))
        names[k] = ",".join(parts[letter][id_of[letter]] for letter in component)
    return tuple(names)


def frame_labels(frames: FrameScores, component: str, n_classes: int) -> tuple[str, ...]:
    """What the classes of a component of scored frames are called, also where their space has no triplets."""
    if frames.space is None and frames.names and component == frames.main:
        return frames.names
    return class_labels(frames.space, component, n_classes)


def headline_table(numbers: Sequence[ScoreNumber]) -> pl.DataFrame:
    """One row per number with its interval."""
    schema = {"estimate": pl.Float64, "low": pl.Float64, "high": pl.Float64}
    return pl.DataFrame([number.to_json() for number in numbers], schema_overrides=schema)


def component_table(numbers: Sequence[ScoreNumber], scope: str) -> pl.DataFrame:
    """One row per component; every metric with the ends of its interval beside it."""
    rows: dict[str, dict[str, Any]] = {}
    for number in numbers:
        if number.key.scope == scope:
            row, metric = rows.setdefault(number.key.component, {}), number.key.metric
            row[metric] = number.interval.estimate
            row[f"{metric}_low"], row[f"{metric}_high"] = number.interval.low, number.interval.high
    return plain(pl.DataFrame([{"component": component, **row} for component, row in rows.items()]))


def group_table(
    keys: Sequence[Key], names: Sequence[str], videos: Sequence[int], vectors: Sequence[Floats]
) -> pl.DataFrame:
    """One row per group and component with its global and video-wise numbers; then mean and std over groups."""
    values = np.stack(vectors)
    lines: list[tuple[str, int | None, Floats]] = [
        *zip(names, videos, values, strict=True), ("mean", None, mean_along(values, 0)), ("std", None, spread(values)),
    ]  # fmt: skip
    components = dict.fromkeys(key.component for key in keys if key.scope in SCOPES)
    rows = []
    for component in components:
        for name, count, vector in lines:
            row: dict[str, Any] = {"component": component, "group": name, "videos": count}
            for key, value in zip(keys, vector.tolist(), strict=True):
                if key.component == component and key.scope in SCOPES[:2]:
                    row[key.metric if key.scope == SCOPES[0] else f"video-wise {key.metric}"] = value
            rows.append(row)
    return plain(pl.DataFrame(rows, infer_schema_length=None))


def spread(values: Floats) -> Floats:
    """Standard deviation over groups with ddof = 1, of the groups where a number is defined; nan below two."""
    defined = (~np.isnan(values)).sum(axis=0)
    gap = np.nan_to_num(values - mean_along(values, 0)) ** 2
    return np.asarray(np.sqrt(np.where(defined > 1, gap.sum(axis=0) / np.maximum(defined - 1, 1), np.nan)))


def detection_classes(
    parts: Sequence[DetectionPart], component: str, names: Sequence[str], totals: Ints | None, floor: Floats
) -> pl.DataFrame:
    """One row per class that occurs or is predicted: counts in the scored videos, AP and P/R/F1 (as in Table 13).

    `floor` is the AP50 of each class's median box said in every frame.
    """
    rankeds = [part.components[component].ranked for part in parts]
    instances = sum((ranked.truths.sum(axis=0) for ranked in rankeds), np.zeros(len(names), np.int64))
    predictions = sum((np.diff(ranked.start) for ranked in rankeds), np.zeros(len(names), np.int64))
    overall, by_video = ([part.by_class(component) for part in parts], [part.video_wise(component) for part in parts])
    columns: dict[str, Any] = {
        "class": np.arange(len(names)),
        "name": list(names),
        "instances": instances,
        "predictions": predictions,
        "videos": sum(((ranked.truths > 0).sum(axis=0) for ranked in rankeds), np.zeros(len(names), np.int64)),
    }
    metrics = detection_metrics(component)
    for metric in metrics:
        columns[_of_class(metric.key)] = mean_along(np.stack([values[metric.key] for values in overall]), 0)
        columns |= {"constant AP50": floor} if metric.key == "mAP50" else {}
    for metric in (metric for metric in metrics if metric.by_video):
        means = mean_along(np.stack([values[metric.key] for values in by_video]), 0)
        columns[f"video-wise {_of_class(metric.key)}"] = means
    if totals is not None:
        columns["instances in dataset"] = totals
        columns["rare"] = np.isin(np.arange(len(names)), np.concatenate([part.rare for part in parts]))
    return _occurring(plain(pl.DataFrame(columns)))


def recognition_classes(
    parts: Sequence[RecognitionPart], component: str, names: Sequence[str], totals: Ints | None
) -> pl.DataFrame:
    """One row per class that occurs: frames, AP, video-wise AP, and what a constant score gets."""
    rankings = [part.rankings[component] for part in parts]
    pairs = [(ranking, np.ones(ranking.ranked.n_videos)) for ranking in rankings]
    columns: dict[str, Any] = {
        "class": np.arange(len(names)),
        "name": list(names),
        "instances": sum((ranking.positives for ranking in rankings), np.zeros(len(names), np.int64)),
        "AP": mean_along(np.stack([weighted_average_precision(r.ranked, m) for r, m in pairs]), 0),
        "video-wise AP": mean_along(np.stack([mean_along(ranking.per_video, 0) for ranking in rankings]), 0),
        "constant AP": mean_along(np.stack([ranking.prevalence for ranking in rankings]), 0),
    }
    if totals is not None:
        columns["instances in dataset"] = totals
        columns["rare"] = np.isin(np.arange(len(names)), np.concatenate([part.rare for part in parts]))
    return _occurring(plain(pl.DataFrame(columns)))


def association_table(parts: Sequence[DetectionPart], numbers: Sequence[ScoreNumber]) -> pl.DataFrame:
    """What became of every box: counts over all scored videos, and from `numbers` their share and its interval."""
    counts = sum(
        (part.association.counts.sum(axis=0) for part in parts if part.association is not None), np.zeros(7, np.int64)
    )
    shares = {number.key.metric: number.interval for number in numbers if number.key.scope == "association"}
    rows = [
        {"outcome": name, "meaning": OUTCOMES[name], "count": int(counts[k]), "share": shares[name].estimate,
         "share_low": shares[name].low, "share_high": shares[name].high}
        for k, name in enumerate(ASSOCIATION_COUNTS)
    ]  # fmt: skip
    return plain(pl.DataFrame(rows))


def convention_table(keys: Sequence[Key], values: Mapping[str, Floats]) -> pl.DataFrame:
    """Global numbers under every convention, and how far apart they are."""
    rows = []
    for k, key in enumerate(keys):
        if key.scope == SCOPES[0]:
            by_convention = {convention: float(vector[k]) for convention, vector in values.items()}
            difference = max(by_convention.values()) - min(by_convention.values())
            rows.append({"component": key.component, "metric": key.metric, **by_convention, "difference": difference})
    return plain(pl.DataFrame(rows))


def tie_table(
    parts: Sequence[DetectionPart],
    order_free: Sequence[DetectionPart],
    names: Mapping[str, Sequence[str]],
    least: float,
) -> pl.DataFrame:
    """Global numbers that differ by more than `least` between the reference's order of equal scores and any order.

    One row per number: first the means over classes (no class), then those of single classes.
    """
    rows: list[dict[str, Any]] = []
    for component, classes in names.items():
        known = [[part.by_class(component) for part in group] for group in (parts, order_free)]
        for metric in (metric.key for metric in detection_metrics(component)):
            by_class = [np.stack([values[metric] for values in group]) for group in known]
            means = [float(mean_along(mean_along(values, 1), 0)) for values in by_class]
            single = [mean_along(values, 0).tolist() for values in by_class]
            heads = [("", metric), *((name, _of_class(metric)) for name in classes)]
            columns = [[mean, *values] for mean, values in zip(means, single, strict=True)]
            for (name, label), reference, free in zip(heads, *columns, strict=True):
                rows.append({"component": component, "class": name, "metric": label, "reference": reference,
                             "order-free": free, "difference": abs(reference - free)})  # fmt: skip
    table = plain(pl.DataFrame(rows)).filter(pl.col("difference") > least)
    return table.sort(pl.col("class") != "", maintain_order=True)


def confusion_table(confusion: Confusion, names: Sequence[str]) -> pl.DataFrame:
    """Counts and shares of true classes, one row per pair that occurs."""
    rows, columns = confusion.labels(names)
    shares = confusion.normalised()
    pairs = np.argwhere(confusion.counts > 0).tolist()
    schema = {"predicted": pl.String, "true": pl.String, "count": pl.Int64, "share of true": pl.Float64}
    cells = [(rows[p], columns[t], int(confusion.counts[p, t]), float(shares[p, t])) for p, t in pairs]
    return pl.DataFrame(cells, schema=schema, orient="row")


def _of_class(metric: str) -> str:
    """What a metric is called for one class: AP of a class, mAP of several."""
    return metric.removeprefix("m")


def _occurring(table: pl.DataFrame) -> pl.DataFrame:
    seen = [pl.col(name) > 0 for name in ("instances", "predictions", "instances in dataset") if name in table.columns]
    return table.filter(pl.any_horizontal(seen))


def plain(table: pl.DataFrame) -> pl.DataFrame:
    """The table with null where a number is not defined."""
    return table.with_columns(pl.selectors.float().fill_nan(None))
