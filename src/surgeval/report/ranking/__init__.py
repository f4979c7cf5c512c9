"""The report on a ranking: who is where, what supports it, and what it hangs on."""

from surgeval.report.ranking._page import ranking_sections, write_ranking_report
from surgeval.report.ranking._runs import rank, rank_runs, read_outcomes_of
from surgeval.report.ranking._study import RankingStudy, study_ranking

__all__ = [
    "RankingStudy",
    "rank",
    "rank_runs",
    "ranking_sections",
    "read_outcomes_of",
    "study_ranking",
    "write_ranking_report",
]
