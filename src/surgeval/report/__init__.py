"""Pages and tables that people read: dataset statistics now, and the building blocks of every later report.

`write_page` makes one self-contained HTML file from `Section`s; `save_tables` the CSV files beside it.
`write_dataset_report` does both for a dataset. Text is always shown literally, whatever a data file calls its classes.
"""

from surgeval.report._count import dataset_statistics
from surgeval.report._csv import save_tables
from surgeval.report._dataset import dataset_sections, write_dataset_report
from surgeval.report._page import render_page, write_page
from surgeval.report._parts import Fact, Picture, Plot, Section, Table
from surgeval.report._statistics import DatasetStatistics, RunCounts, VideoCounts
from surgeval.report._triplets import triplet_sections, write_triplets_report

__all__ = [
    "DatasetStatistics",
    "Fact",
    "Picture",
    "Plot",
    "RunCounts",
    "Section",
    "Table",
    "VideoCounts",
    "dataset_sections",
    "dataset_statistics",
    "render_page",
    "save_tables",
    "triplet_sections",
    "write_dataset_report",
    "write_page",
    "write_triplets_report",
]
