"""Two quality runs over the same videos, for instance before and after cleaning; the frames themselves may differ."""

from __future__ import annotations

from dataclasses import asdict

from surgeval.protocols.comparison import Pair, keep_shared_videos, refuse_different
from surgeval.protocols.quality.result import QualityScores
from surgeval.protocols.quality.tables import MEASURES

__all__ = ["pair_quality"]


def pair_quality(first: QualityScores, second: QualityScores) -> Pair:
    """Two runs with the same limits, over the videos that both have; the example of `run_quality` compares two."""
    limits = ({f"limit of {name}": value for name, value in asdict(run.limits).items()} for run in (first, second))
    refuse_different(first, second, *limits)
    cases, notes = keep_shared_videos(*(run.cases.rename({"video": "cluster"}) for run in (first, second)))
    if first.record.dataset != second.record.dataset:
        notes = (*notes, "the runs are of different data: videos are paired by their names alone")
    videos = sorted(cases[0]["cluster"].unique())
    return Pair(measures=MEASURES, cases=cases, settings={"videos": videos}, notes=lambda _numbers: notes)
