"""How sure a number is: video-clustered bootstrap intervals, paired comparisons, rankings, agreement of annotators.

Videos are the unit of resampling everywhere. Start with `bootstrap_mean`, or with `rank` for several models; each
result says its scheme, its method and whether too few videos stand behind it.
"""

from surgeval.stats._agree import Agreement
from surgeval.stats._inputs import slices_by
from surgeval.stats._interval import FEW_CLUSTERS, Interval, Intervals, wilson
from surgeval.stats._resample import multiplicities, two_sided_p
from surgeval.stats._streams import stream
from surgeval.stats.agreement import cohen_kappa, count_ratings, fleiss_kappa
from surgeval.stats.bootstrap import bootstrap_mean, bootstrap_slices
from surgeval.stats.krippendorff import krippendorff_alpha
from surgeval.stats.paired import Difference, paired_difference, paired_statistic
from surgeval.stats.ranking import Gate, Outcomes, Ranking, RankOptions, rank
from surgeval.stats.ranking._power import Detectable, minimum_detectable_difference
from surgeval.stats.ranking._stability import (
    Sensitivity,
    Stability,
    kendall_tau,
    leave_one_bucket_out,
    leave_one_model_out,
    stability,
)
from surgeval.stats.statistic import bootstrap_statistic, bootstrap_vector

__all__ = [
    "FEW_CLUSTERS",
    "Agreement",
    "Detectable",
    "Difference",
    "Gate",
    "Interval",
    "Intervals",
    "Outcomes",
    "RankOptions",
    "Ranking",
    "Sensitivity",
    "Stability",
    "bootstrap_mean",
    "bootstrap_slices",
    "bootstrap_statistic",
    "bootstrap_vector",
    "cohen_kappa",
    "count_ratings",
    "fleiss_kappa",
    "kendall_tau",
    "krippendorff_alpha",
    "leave_one_bucket_out",
    "leave_one_model_out",
    "minimum_detectable_difference",
    "multiplicities",
    "paired_difference",
    "paired_statistic",
    "rank",
    "slices_by",
    "stability",
    "stream",
    "two_sided_p",
    "wilson",
]
