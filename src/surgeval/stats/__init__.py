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
from surgeval.stats.measures import (
    Combine,
    Measure,
    Question,
    baseline_of,
    find_measure,
    glossary_entries,
    measure_differences,
    measure_intervals,
    measures_table,
    numbers_table,
    task_cases,
)
from surgeval.stats.paired import Difference, paired_difference, paired_statistic, paired_vector
from surgeval.stats.ranking import *  # noqa: F403 (the names of its `__all__`, listed once)
from surgeval.stats.ratios import (
    EITHER_WAY,
    POSITIVE,
    UNBOUNDED,
    MacroMean,
    Parts,
    Ratio,
    VideoSums,
    gap_bounds,
    mean_ratio,
    ratio_intervals,
    share_ratio,
)
from surgeval.stats.resample import multiplicities, two_sided_p
from surgeval.stats.statistic import bootstrap_statistic, bootstrap_vector, drop_bound, widen_for_constant_parts
from surgeval.stats.streams import stream
from surgeval.stats.wording import NOTHING, NumberUnit, gap_unit, number_text, with_ends

__all__ = [
    "EITHER_WAY",
    "FEW_CLUSTERS",
    "FEW_QUESTIONS",
    "NOTHING",
    "POSITIVE",
    "UNBOUNDED",
    "Agreement",
    "Averaging",
    "Combine",
    "Difference",
    "Interval",
    "Intervals",
    "MacroMean",
    "Measure",
    "NumberUnit",
    "Parts",
    "Question",
    "Ratio",
    "VideoSums",
    "baseline_of",
    "bootstrap_mean",
    "bootstrap_slices",
    "bootstrap_statistic",
    "bootstrap_vector",
    "cohen_kappa",
    "count_ratings",
    "drop_bound",
    "exchange_p",
    "exchange_signs",
    "find_measure",
    "fleiss_kappa",
    "gap_bounds",
    "gap_unit",
    "glossary_entries",
    "krippendorff_alpha",
    "mean_ratio",
    "measure_differences",
    "measure_intervals",
    "measures_table",
    "multiplicities",
    "number_text",
    "numbers_table",
    "paired_difference",
    "paired_statistic",
    "paired_vector",
    "ratio_intervals",
    "share_interval",
    "share_ratio",
    "slices_by",
    "stream",
    "task_cases",
    "two_sided_p",
    "widen_for_constant_parts",
    "wilson",
    "with_ends",
]
__all__ += ranking.__all__
