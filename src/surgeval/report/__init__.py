"""Pages about several runs or a dataset: comparisons, indexes, rankings, dataset statistics.

The page of one run belongs to its protocol, the page kit to `surgeval.pages`.
"""

from surgeval.report.comparison import own_verdicts, readable_comparison, tally, write_comparison_page
from surgeval.report.dataset import (
    DatasetStatistics,
    RunCounts,
    VideoCounts,
    dataset_sections,
    dataset_statistics,
    write_dataset_page,
)
from surgeval.report.index import write_index, write_run_pages
from surgeval.report.ranking import (
    Entrants,
    RankingStudy,
    findings,
    leading,
    rank,
    ranking_sections,
    read_entrants,
    read_outcomes_of,
    read_results,
    study_ranking,
    terminal_tables,
    verdicts_of,
    write_feedback,
    write_ranking_page,
)

__all__ = [
    "DatasetStatistics",
    "Entrants",
    "RankingStudy",
    "RunCounts",
    "VideoCounts",
    "dataset_sections",
    "dataset_statistics",
    "findings",
    "leading",
    "own_verdicts",
    "rank",
    "ranking_sections",
    "read_entrants",
    "read_outcomes_of",
    "read_results",
    "readable_comparison",
    "study_ranking",
    "tally",
    "terminal_tables",
    "verdicts_of",
    "write_comparison_page",
    "write_dataset_page",
    "write_feedback",
    "write_index",
    "write_ranking_page",
    "write_run_pages",
]
