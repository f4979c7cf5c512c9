"""Does a heatmap lie on what the labels say matters? AC, AA, ARS and RAS of one map, and the tables of many."""

from surgeval.metrics.grounding.ground import (
    EXCLUDED,
    FLAGS,
    Grounding,
    ars,
    attention_accuracy,
    attention_coverage,
    ground,
    ground_counts,
    ground_region,
    ras,
)
from surgeval.metrics.grounding.region import FLAT, Region, fixed_region, kept_pixels, top_region
from surgeval.metrics.grounding.tables import (
    FOUR_WAY,
    ars_columns,
    f1_parts,
    four_way_cells,
    grounded,
    lift,
    prediction_sets,
)
from surgeval.metrics.grounding.triplets import MATCH_LEVELS, Match, match_breakdown, match_ras, triplet_match
from surgeval.metrics.grounding.truth import Label, Truth, Window, box_mask, pixel_window

__all__ = [
    "EXCLUDED",
    "FLAGS",
    "FLAT",
    "FOUR_WAY",
    "MATCH_LEVELS",
    "Grounding",
    "Label",
    "Match",
    "Region",
    "Truth",
    "Window",
    "ars",
    "ars_columns",
    "attention_accuracy",
    "attention_coverage",
    "box_mask",
    "f1_parts",
    "fixed_region",
    "four_way_cells",
    "ground",
    "ground_counts",
    "ground_region",
    "grounded",
    "kept_pixels",
    "lift",
    "match_breakdown",
    "match_ras",
    "pixel_window",
    "prediction_sets",
    "ras",
    "top_region",
    "triplet_match",
]
