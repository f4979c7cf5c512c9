"""How sure a number is: intervals over videos, paired comparisons, rankings, agreement of annotators.

Videos are what is left out, exchanged or drawn, everywhere. Start with `bootstrap_mean`, or with `rank_outcomes` for
several models; each result says its scheme, its method and whether too few videos stand behind it.
"""

from surgeval.stats import ranking
from surgeval.stats.agree import Agreement
from surgeval.stats.agreement import cohen_kappa, count_ratings, fleiss_kappa
from surgeval.stats.bootstrap import bootstrap_mean, bootstrap_slices, share_interval
from surgeval.stats.exchange import exchange_p, exchange_signs
from surgeval.stats.inputs import slices_by
from surgeval.stats.interval import FEW_CLUSTERS, FEW_QUESTIONS, Interval, Intervals, wilson
from surgeval.stats.krippendorff import krippendorff_alpha
from surgeval.stats.means import Point as Averaging
from surgeval.stats.paired import Difference, paired_difference, paired_statistic, paired_vector
from surgeval.stats.ranking import *  # noqa: F403 (the names of its `__all__`, listed once)
from surgeval.stats.resample import multiplicities, two_sided_p
from surgeval.stats.statistic import bootstrap_statistic, bootstrap_vector, with_still_parts, without_bound
from surgeval.stats.streams import stream
from surgeval.stats.wording import NOTHING, NumberUnit, gap_unit, number_text, with_ends

__all__ = [
    "FEW_CLUSTERS",
    "FEW_QUESTIONS",
    "NOTHING",
    "Agreement",
    "Averaging",
    "Difference",
    "Interval",
    "Intervals",
    "NumberUnit",
    "bootstrap_mean",
    "bootstrap_slices",
    "bootstrap_statistic",
    "bootstrap_vector",
    "cohen_kappa",
    "count_ratings",
    "exchange_p",
    "exchange_signs",
    "fleiss_kappa",
    "gap_unit",
    "krippendorff_alpha",
    "multiplicities",
    "number_text",
    "paired_difference",
    "paired_statistic",
    "paired_vector",
    "share_interval",
    "slices_by",
    "stream",
    "two_sided_p",
    "wilson",
    "with_ends",
    "with_still_parts",
    "without_bound",
]
__all__ += ranking.__all__
