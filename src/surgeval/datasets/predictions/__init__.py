"""Predictions made elsewhere: read them, check them against a dataset, join them to its frames, write them.

`read_detections` and `read_recognition` give the two tables that flow; `join` and `join_recognition` turn a table and a
dataset into the arrays that `surgeval.metrics` reads. Frames are joined by video and frame name; a frame without
predictions is a miss, anything that fits no frame or class is an error that names the record.
"""

from surgeval.datasets.predictions.detections import COLUMNS, HEADS, Detections
from surgeval.datasets.predictions.join import JoinedDetections, join
from surgeval.datasets.predictions.read import FORMATS, detect_format, read_detections
from surgeval.datasets.predictions.recognition import (
    JoinedRecognition,
    RecognitionTable,
    join_recognition,
    read_recognition,
)
from surgeval.datasets.predictions.truth import GroundTruth, ground_truth
from surgeval.datasets.predictions.write import WriteReport, write_detections, write_recognition

__all__ = [
    "COLUMNS",
    "FORMATS",
    "HEADS",
    "Detections",
    "GroundTruth",
    "JoinedDetections",
    "JoinedRecognition",
    "RecognitionTable",
    "WriteReport",
    "detect_format",
    "ground_truth",
    "join",
    "join_recognition",
    "read_detections",
    "read_recognition",
    "write_detections",
    "write_recognition",
]
