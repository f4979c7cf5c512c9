"""Ranking models in three steps: tests per bucket, Copeland over buckets, win rates for ties at the top.

`rank` is the whole interface; `stability` and the leave-one-out functions say how far its result can be trusted.
"""

from surgeval.stats.ranking._calibration import Calibration, calibration
from surgeval.stats.ranking._power import Detectable, minimum_detectable_difference
from surgeval.stats.ranking._rank import (
    Gate,
    Outcomes,
    Ranking,
    RankOptions,
    rank,
)
from surgeval.stats.ranking._stability import (
    Sensitivity,
    Stability,
    gate_with_stability,
    kendall_tau,
    leave_one_bucket_out,
    leave_one_model_out,
    stability,
)

__all__ = [
    "Calibration",
    "Detectable",
    "Gate",
    "Outcomes",
    "RankOptions",
    "Ranking",
    "Sensitivity",
    "Stability",
    "calibration",
    "gate_with_stability",
    "kendall_tau",
    "leave_one_bucket_out",
    "leave_one_model_out",
    "minimum_detectable_difference",
    "rank",
    "stability",
]
