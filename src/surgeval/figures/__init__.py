"""Arrays to figures: each kind is one small frozen object that draws itself twice, for the page and for the paper.

`to_plotly()` gives a plain dictionary for plotly.js, `to_matplotlib()` a figure that `save_figure` writes as SVG and
PNG, byte for byte the same each time. Labels come from data files, so both drawings show them literally: no markup,
no mathematics. A new kind is a new file with the same four members (`Figure`).
"""

from surgeval.figures.bars import Bars
from surgeval.figures.base import Figure, Series
from surgeval.figures.blobs import RankBlobs
from surgeval.figures.boxes import BoxGroup, BoxPlot
from surgeval.figures.curves import Curve, Curves
from surgeval.figures.estimates import Estimate, EstimateBars, EstimateGroup
from surgeval.figures.flow import FlowPipeline
from surgeval.figures.heatmap import Heatmap
from surgeval.figures.histogram import Histogram, bin_labels
from surgeval.figures.lines import Lines
from surgeval.figures.palette import PALETTE, colour, ink_on
from surgeval.figures.podium import Podium
from surgeval.figures.print import save_figure
from surgeval.figures.scatter import Cloud, Scatter
from surgeval.figures.significance import SignificanceMap
from surgeval.figures.stability import StabilityLines
from surgeval.figures.stacked import StackedBars
from surgeval.figures.timeline import Timeline, TimelineSpan

__all__ = [
    "PALETTE",
    "Bars",
    "BoxGroup",
    "BoxPlot",
    "Cloud",
    "Curve",
    "Curves",
    "Estimate",
    "EstimateBars",
    "EstimateGroup",
    "Figure",
    "FlowPipeline",
    "Heatmap",
    "Histogram",
    "Lines",
    "Podium",
    "RankBlobs",
    "Scatter",
    "Series",
    "SignificanceMap",
    "StabilityLines",
    "StackedBars",
    "Timeline",
    "TimelineSpan",
    "bin_labels",
    "colour",
    "ink_on",
    "save_figure",
]
