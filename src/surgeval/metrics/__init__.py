"""Pure functions on arrays, never torch: recognition, detection, association, confusion, ordinal cost, tracks, maps.

`evaluate` scores a `DetectionSet` under a named convention, `evaluate_recognition` per-frame scores; the accumulator
classes collect streaming batches for both. What they return keeps the ranked detections, so that resampling videos
(`weighted_ap`) costs one pass and no new matching. `ground` scores one heatmap against the labels of its frame.
"""

from surgeval.metrics import grounding
from surgeval.metrics.accumulate import DetectionAccumulator, RecognitionAccumulator
from surgeval.metrics.ap import global_ap, pooled, video_ap, video_pooled, weighted_ap
from surgeval.metrics.association import ASSOCIATION_COUNTS, Association, associate
from surgeval.metrics.boxes import Boxes, DetectionSet
from surgeval.metrics.confusion import Confusion, confusion_matrix, match_boxes
from surgeval.metrics.detection import (
    ComponentResult,
    DetectionResult,
    PerVideo,
    Scores,
    evaluate_detection,
    score_component,
)
from surgeval.metrics.frequency import rare_classes
from surgeval.metrics.grounding import *  # noqa: F403 (the names of its `__all__`, listed once)
from surgeval.metrics.identity import (
    HOTA_LEVELS,
    Hota,
    IdScores,
    TrackIdentity,
    Tracks,
    hota,
    id_scores,
    track_identity,
)
from surgeval.metrics.mean import mean_along, mean_of
from surgeval.metrics.operating import OperatingPoint, operating_point
from surgeval.metrics.ordinal import CostAware, CostScores, cost_aware_f1
from surgeval.metrics.recognition import (
    RecognitionRanked,
    RecognitionResult,
    average_precision,
    class_max,
    component_max,
    evaluate_recognition,
    prepare_recognition,
    top_classes,
    top_k,
    video_average_precision,
    weighted_average_precision,
)
from surgeval.metrics.visit import (
    CONVENTIONS,
    TIES,
    Convention,
    Ranked,
    Ties,
    Visits,
    choose_convention,
    rank_detections,
    visits,
)

__all__ = [
    "ASSOCIATION_COUNTS",
    "CONVENTIONS",
    "HOTA_LEVELS",
    "TIES",
    "Association",
    "Boxes",
    "ComponentResult",
    "Confusion",
    "Convention",
    "CostAware",
    "CostScores",
    "DetectionAccumulator",
    "DetectionResult",
    "DetectionSet",
    "Hota",
    "IdScores",
    "OperatingPoint",
    "PerVideo",
    "Ranked",
    "RecognitionAccumulator",
    "RecognitionRanked",
    "RecognitionResult",
    "Scores",
    "Ties",
    "TrackIdentity",
    "Tracks",
    "Visits",
    "associate",
    "average_precision",
    "choose_convention",
    "class_max",
    "component_max",
    "confusion_matrix",
    "cost_aware_f1",
    "evaluate_detection",
    "evaluate_recognition",
    "global_ap",
    "hota",
    "id_scores",
    "match_boxes",
    "mean_along",
    "mean_of",
    "operating_point",
    "pooled",
    "prepare_recognition",
    "rank_detections",
    "rare_classes",
    "score_component",
    "top_classes",
    "top_k",
    "track_identity",
    "video_ap",
    "video_average_precision",
    "video_pooled",
    "visits",
    "weighted_ap",
    "weighted_average_precision",
]
__all__ += grounding.__all__
