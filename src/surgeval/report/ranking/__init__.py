"""The report on a ranking: who is where, what supports it, and what it hangs on."""

from surgeval.report.ranking.feedback import write_feedback
from surgeval.report.ranking.findings import findings, leading
from surgeval.report.ranking.page import ranking_sections, write_ranking_page
from surgeval.report.ranking.results_file import read_results
from surgeval.report.ranking.runs import Entrants, rank, read_entrants, read_outcomes_of, verdicts_of
from surgeval.report.ranking.study import RankingStudy, study_ranking
from surgeval.report.ranking.tables import terminal_tables

__all__ = ["Entrants", "RankingStudy", "findings", "leading", "rank", "ranking_sections", "read_entrants",
           "read_outcomes_of", "read_results", "study_ranking", "terminal_tables", "verdicts_of",
           "write_feedback", "write_ranking_page"]  # fmt: skip
