"""Ranking models in three steps: tests per bucket, Copeland over buckets, win rates for ties at the top.

`rank_outcomes` is the whole interface; `stability` and the leave-one-out functions say how far its result can be
trusted.
"""

from surgeval.stats.ranking.calibration import Calibration, calibration
from surgeval.stats.ranking.distance import Distance, distance_to_next_place
from surgeval.stats.ranking.gate import STEADY
from surgeval.stats.ranking.input import Rankable, read_outcomes
from surgeval.stats.ranking.options import (
    RESAMPLES_OF_A_RANKING,
    Collapse,
    Correction,
    RankScheme,
    Resolve,
    Sided,
    Test,
    WinTies,
)
from surgeval.stats.ranking.power import Detectable, minimum_detectable_difference
from surgeval.stats.ranking.rank import Gate, Outcomes, Ranking, RankOptions, rank_outcomes
from surgeval.stats.ranking.stability import (
    Sensitivity,
    Stability,
    gate_with_stability,
    kendall_tau,
    leave_one_bucket_out,
    leave_one_model_out,
    stability,
)
from surgeval.stats.ranking.tables import MAX_UNSCORED, shown_bucket

__all__ = [
    "MAX_UNSCORED",
    "RESAMPLES_OF_A_RANKING",
    "STEADY",
    "Calibration",
    "Collapse",
    "Correction",
    "Detectable",
    "Distance",
    "Gate",
    "Outcomes",
    "RankOptions",
    "RankScheme",
    "Rankable",
    "Ranking",
    "Resolve",
    "Sensitivity",
    "Sided",
    "Stability",
    "Test",
    "WinTies",
    "calibration",
    "distance_to_next_place",
    "gate_with_stability",
    "kendall_tau",
    "leave_one_bucket_out",
    "leave_one_model_out",
    "minimum_detectable_difference",
    "rank_outcomes",
    "read_outcomes",
    "shown_bucket",
    "stability",
]
