"""Gaze: files of eye trackers, the fixations in them, and the words that were dictated meanwhile.

`read_gaze(path)` gives a `GazeTrack` per video or image, in seconds and in parts of the frame, from the neutral CSV or
JSONL, REFLACX, EyeGaze or Ego-Exo4D files, or any table described by a `GazeMap`. `find_fixations` turns raw samples
into fixations (I-DT).
"""

from surgeval.datasets.gaze.dictation import SpokenWord, read_dictation
from surgeval.datasets.gaze.fixation import fixation_at
from surgeval.datasets.gaze.idt import find_fixations, idt
from surgeval.datasets.gaze.map import GazeMap
from surgeval.datasets.gaze.names import match_names
from surgeval.datasets.gaze.read import read_gaze
from surgeval.datasets.gaze.track import GazeTrack

__all__ = [
    "GazeMap",
    "GazeTrack",
    "SpokenWord",
    "find_fixations",
    "fixation_at",
    "idt",
    "match_names",
    "read_dictation",
    "read_gaze",
]
