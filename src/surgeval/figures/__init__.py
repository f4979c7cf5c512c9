"""Arrays to figures: each kind is one small frozen object that draws itself twice, for the page and for the paper.

`to_plotly()` gives a plain dictionary for plotly.js, `to_matplotlib()` a figure that `save_figure` writes as SVG and
PNG, byte for byte the same each time. Labels come from data files, so both drawings show them literally: no markup,
no mathematics. A new kind is a new file with the same four members (`Figure`).
"""

from surgeval.figures._bars import Bars
from surgeval.figures._base import Figure, Series
from surgeval.figures._blobs import RankBlobs
from surgeval.figures._boxes import BoxGroup, BoxPlot
from surgeval.figures._curves import Curve, Curves
from surgeval.figures._estimates import Estimate, EstimateBars, EstimateGroup
from surgeval.figures._flow import FlowPipeline
from surgeval.figures._heatmap import Heatmap
from surgeval.figures._histogram import Histogram, bin_labels
from surgeval.figures._lines import Lines
from surgeval.figures._palette import PALETTE, colour, ink_on
from surgeval.figures._podium import Podium
from surgeval.figures._print import save_figure
from surgeval.figures._scatter import Cloud, Scatter
from surgeval.figures._significance import SignificanceMap
from surgeval.figures._stability import StabilityLines
from surgeval.figures._stacked import StackedBars
from surgeval.figures._timeline import Timeline, TimelineSpan

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
