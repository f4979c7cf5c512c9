"""Figures of trained detectors: curves by epoch, every fold's number, AP of every class, differences between runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import polars as pl

from surgeval.figures import Curve, Estimate, Figure, Series, estimates, lines
from surgeval.protocols.training.curves import Epoch, Training

if TYPE_CHECKING:
    from surgeval.protocols.comparison import Comparison
    from surgeval.protocols.training.result import TrainingScores

__all__ = ["class_bars", "difference_forest", "fold_figures", "loss_lines", "metric_lines", "placed"]

_MOST_CLASSES = 30
_METRICS = ("mAP50", "mAP50:95")
_FOREST = ("mAP50", "mAP50:95", "F1")
_NAMES = {"i": "I", "v": "V", "t": "T", "ivt": "IVT"}


def placed(training: Training) -> list[tuple[float, Epoch]]:
    """Every epoch with its place on one axis: a later stage goes on where the one before ended."""
    rows: list[tuple[float, Epoch]] = []
    for stage in training.stages:
        epochs = training.of(stage)
        last = rows[-1][0] if rows else 0.0
        offset = last if rows and epochs[0].number <= last else 0.0
        rows += [(offset + epoch.number, epoch) for epoch in epochs]
    return rows


def _line(rows: Sequence[tuple[float, Epoch]], name: str, value: Callable[[Epoch], float | None]) -> Curve | None:
    points = [(x, y) for x, epoch in rows if (y := value(epoch)) is not None]
    return Curve(name, tuple(x for x, _ in points), tuple(y for _, y in points)) if points else None


def _marks(training: Training) -> tuple[tuple[float, str], ...]:
    """Where the student begins."""
    rows = placed(training)
    begun = {epoch.stage: x for x, epoch in reversed(rows)}
    return tuple((begun[stage], stage) for stage in training.stages[1:])


def loss_lines(training: Training) -> dict[str, Figure]:
    """The losses of each stage, on axes of their own: a student's are other sums than a teacher's."""
    losses = {}
    for stage in training.stages:
        rows = [(x, epoch) for x, epoch in placed(training) if epoch.stage == stage]
        names = dict.fromkeys(name for _, epoch in rows for name in epoch.losses)
        found = [_line(rows, name, lambda epoch, name=name: epoch.losses.get(name)) for name in names]  # type: ignore[misc]
        drawn = tuple(line for line in found if line is not None)
        if drawn:
            losses[f"losses_{stage}"] = lines(f"Losses of the {stage}", "epoch", "loss", drawn)
    return losses


def metric_lines(training: Training, metrics: Sequence[str] = _METRICS) -> Figure | None:
    """The mAP on the validation videos by epoch; None where no epoch was validated."""
    rows = placed(training)
    found = [_line(rows, name, lambda epoch, name=name: epoch.numbers.get(name)) for name in metrics]  # type: ignore[misc]
    drawn = tuple(line for line in found if line is not None)
    return lines("mAP on the validation videos", "epoch", "mAP", drawn, marks=_marks(training)) if drawn else None


def fold_figures(result: TrainingScores) -> dict[str, Figure]:
    """What the page of one detector draws of its folds and classes."""
    figures: dict[str, Figure] = {}
    found = [_line(placed(training), name, lambda epoch: epoch.numbers.get("mAP50"))
             for name, training in result.trainings.items()]  # fmt: skip
    drawn = tuple(line for line in found if line is not None)
    if drawn:
        title = "mAP50 on the validation videos of each fold, by epoch"
        figures["folds_by_epoch"] = lines(title, "epoch", "mAP50", drawn)
    figures["folds"] = _fold_bars(result)
    figures["classes"] = class_bars([result])
    return figures


def _fold_bars(result: TrainingScores) -> Figure:
    table = result.scores.sheets[result.scheme].filter(
        pl.col("component") == result.scores.main, pl.col("videos").is_not_null()
    )
    labels = tuple(str(name) for name in table["group"].to_list())
    groups = tuple(Series(metric, tuple(Estimate(value) for value in table[metric].to_list()))
                   for metric in _METRICS)  # fmt: skip
    subject = f"{_NAMES.get(result.scores.main, result.scores.main)} of each {result.scheme[:-1]}"
    return estimates(f"mAP of {subject}", labels, groups, "mAP", span=(0, 1))


def class_bars(results: Sequence[TrainingScores]) -> Figure:
    """AP50 of the most frequent classes, detectors side by side."""
    first = results[0].scores
    sheet = f"classes_{first.main}"
    order = first.sheets[sheet].filter(pl.col("instances") > 0).sort("instances", descending=True, maintain_order=True)
    names = tuple(order["name"].to_list()[:_MOST_CLASSES])
    groups = []
    for result in results:
        known = dict(result.scores.sheets[sheet].select("name", "AP50").iter_rows())
        groups.append(Series(result.name, tuple(Estimate(known.get(name)) for name in names)))
    more = order.height - len(names)
    title = f"AP50 of each class, the most frequent first{f' ({more} rarer ones are in the table)' if more > 0 else ''}"
    return estimates(title, names, tuple(groups), "AP50", span=(0, 1))


def difference_forest(comparisons: Mapping[str, Comparison]) -> Figure | None:
    """Paired differences of the main numbers with their intervals over videos, a colour per pair."""
    keys = [f"global|{component}|{metric}" for component in _NAMES for metric in _FOREST]
    known = {title: {number.key: number for number in comparison.numbers} for title, comparison in comparisons.items()}
    shown = [key for key in keys if any(key in numbers for numbers in known.values())]
    if not shown:
        return None
    labels = tuple(next(numbers[key].label for numbers in known.values() if key in numbers) for key in shown)
    groups = tuple(
        Series(title, tuple(_difference(numbers[key].difference.interval) if key in numbers else Estimate(None)
                                   for key in shown))
        for title, numbers in known.items()
    )  # fmt: skip
    return estimates("Paired differences over the same videos", labels, groups, "difference")


def _difference(interval: object) -> Estimate:
    return Estimate.of(*(float(getattr(interval, name)) for name in ("estimate", "low", "high")))
