"""The report on a dataset: one pass over its labels, the tables and figures of the papers, one page."""

from surgeval.report.dataset.count import dataset_statistics
from surgeval.report.dataset.page import dataset_sections, write_dataset_page
from surgeval.report.dataset.statistics import DatasetStatistics, RunCounts, VideoCounts

__all__ = [
    "DatasetStatistics",
    "RunCounts",
    "VideoCounts",
    "dataset_sections",
    "dataset_statistics",
    "write_dataset_page",
]
