"""Pages about several runs or a dataset: comparisons, indexes, rankings, dataset statistics.

The page of one run belongs to its protocol, the page kit to `surgeval.pages`.
"""

from surgeval.report._comparison import own_verdicts, readable_comparison, tally, write_comparison
from surgeval.report._index import write_index, write_run_pages
from surgeval.report.dataset import (
    DatasetStatistics,
    RunCounts,
    VideoCounts,
    dataset_sections,
    dataset_statistics,
    write_dataset_report,
)
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
    write_ranking_report,
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
    "write_comparison",
    "write_dataset_report",
    "write_feedback",
    "write_index",
    "write_ranking_report",
    "write_run_pages",
]
