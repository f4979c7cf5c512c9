"""Track identity: which instance is which instrument over time. `number_tracks` gives #1, #2, … for each class."""

from surgeval.detector.inference.tracking import Tracking
from surgeval.studio.identity.instances import UNNUMBERED, Instances
from surgeval.studio.identity.number import NumberingRule, number_tracks
from surgeval.studio.identity.sector import LEVELS, SectorRule, sectors_of
from surgeval.studio.identity.statistics import TrackStatistics, track_statistics

__all__ = [
    "LEVELS",
    "UNNUMBERED",
    "Instances",
    "NumberingRule",
    "SectorRule",
    "TrackStatistics",
    "Tracking",
    "number_tracks",
    "sectors_of",
    "track_statistics",
]
