"""An epoch in one line, for people who watch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from surgeval.detector.training.resume import Counters

__all__ = ["epoch_line"]


def epoch_line(row: Mapping[str, Any], counters: Counters, seconds: Sequence[float]) -> str:
    """An epoch in one line, with the time that the others of its stage will take."""
    known = [(name, row.get(name)) for name in ("mAP50", "mAP50:95")]
    scores = [f"{name} {value:.3f}" for name, value in known if value is not None and value == value]
    mark = " (best)" if counters.best_epoch == row["epoch"] and counters.best > 0 and scores else ""
    left = 0.0 if counters.done else (counters.epochs - counters.epoch) * median(seconds[-5:])
    told = [
        f"{row['stage']} {row['epoch']}/{counters.epochs}", f"loss {row['loss']:.4g}", " ".join(scores) + mark,
        f"{row['images_per_second']:.4g} images/s", f"{row['seconds']:.1f} s", f"{_short(left)} left" if left else "",
    ]  # fmt: skip
    return " · ".join(part for part in told if part)


def _short(seconds: float) -> str:
    """A time as one says it.

    >>> _short(50), _short(200), _short(9000)
    ('50 s', '3 min', '2.5 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
