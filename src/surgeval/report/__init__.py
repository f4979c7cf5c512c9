"""Pages and tables that people read: dataset statistics now, and the building blocks of every later report.

`write_page` makes one self-contained HTML file from `Section`s; `save_tables` the CSV files beside it.
`write_dataset_report` does both for a dataset. Text is always shown literally, whatever a data file calls its classes.
"""

from surgeval.report._count import dataset_statistics
from surgeval.report._csv import save_tables
from surgeval.report._dataset import dataset_sections, write_dataset_report
from surgeval.report._focus import focus_sections, write_focus_report
from surgeval.report._focus_numbers import FocusReport, focus_json, judge_table
from surgeval.report._page import render_page, write_page
from surgeval.report._parts import Card, Fact, Picture, Plot, Section, Table
from surgeval.report._ranking import ranking_sections, write_ranking_report
from surgeval.report._ranking_study import RankingStudy, study_ranking
from surgeval.report._results_file import read_results, read_results_of, read_scores
from surgeval.report._statistics import DatasetStatistics, RunCounts, VideoCounts
from surgeval.report._surgxbench import surgxbench_sections, write_surgxbench_report
from surgeval.report._triplets import triplet_sections, write_triplets_report

__all__ = [
    "Card",
    "DatasetStatistics",
    "Fact",
    "FocusReport",
    "Picture",
    "Plot",
    "RankingStudy",
    "RunCounts",
    "Section",
    "Table",
    "VideoCounts",
    "dataset_sections",
    "dataset_statistics",
    "focus_json",
    "focus_sections",
    "judge_table",
    "ranking_sections",
    "read_results",
    "read_results_of",
    "read_scores",
    "render_page",
    "save_tables",
    "study_ranking",
    "surgxbench_sections",
    "triplet_sections",
    "write_dataset_report",
    "write_focus_report",
    "write_page",
    "write_ranking_report",
    "write_surgxbench_report",
    "write_triplets_report",
]
