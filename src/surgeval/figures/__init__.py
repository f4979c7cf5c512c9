"""Plain values to figures: charts as Vega-Lite specifications, and words, boxes and maps on images.

A chart is a function (`bars`, `estimates`, `heatmap` …) that returns a `Figure`, which a page draws in the browser, a
notebook shows and `save` writes as SVG, PNG or PDF. Labels come from data files and are shown literally.
"""

from surgeval.figures.charts import TimelineSpan, bars, bin_labels, heatmap, histogram, image_figure, stacked, timeline
from surgeval.figures.encodings import Series
from surgeval.figures.intervals import Estimate, box, estimates
from surgeval.figures.line_charts import Cloud, Curve, curves, lines, scatter
from surgeval.figures.optical_flow import FlowPipeline
from surgeval.figures.ranking import podium, rank_blobs, significance_map, stability_lines
from surgeval.figures.theme import PALETTE, Figure, chart_config, colour, ink_on

__all__ = [
    "PALETTE",
    "Cloud",
    "Curve",
    "Estimate",
    "Figure",
    "FlowPipeline",
    "Series",
    "TimelineSpan",
    "bars",
    "bin_labels",
    "box",
    "chart_config",
    "colour",
    "curves",
    "estimates",
    "heatmap",
    "histogram",
    "image_figure",
    "ink_on",
    "lines",
    "podium",
    "rank_blobs",
    "scatter",
    "significance_map",
    "stability_lines",
    "stacked",
    "timeline",
]
