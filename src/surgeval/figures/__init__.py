"""Plain values to figures: charts as Vega-Lite specifications, and words, boxes and maps on images.

A chart is a function (`bars`, `estimates`, `heatmap` …) that returns a `Figure`, which a page draws in the browser, a
notebook shows and `save` writes as SVG, PNG or PDF. Labels come from data files and are shown literally.
"""

from surgeval.figures.charts import (
    Cloud,
    Curve,
    Estimate,
    Series,
    Span,
    bars,
    bin_labels,
    box,
    curves,
    estimates,
    heatmap,
    histogram,
    lines,
    picture,
    scatter,
    stacked,
    timeline,
)
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
    "Span",
    "bars",
    "bin_labels",
    "box",
    "chart_config",
    "colour",
    "curves",
    "estimates",
    "heatmap",
    "histogram",
    "ink_on",
    "lines",
    "picture",
    "podium",
    "rank_blobs",
    "scatter",
    "significance_map",
    "stability_lines",
    "stacked",
    "timeline",
]
