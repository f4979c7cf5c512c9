"""Datasets: one interface, one file per source format, and what is done with whole datasets.

`open_dataset(path)` finds the format and gives videos, lazily read frames and questions; `check` names every problem;
`convert` writes another format and says what it lost; `frame_quality` and `propose_drops` find useless frames.
"""

from surgeval.datasets._base import Dataset, Format, OnProblem, Problem, raise_errors
from surgeval.datasets._check import CheckReport, check
from surgeval.datasets._convert import ConvertReport, convert
from surgeval.datasets._cut import clip_video, clock, cut_frames
from surgeval.datasets._draw import contact_sheet, draw_frame
from surgeval.datasets._fingerprint import dataset_fingerprint
from surgeval.datasets._images import image_size, read_image
from surgeval.datasets._intent import media_paths
from surgeval.datasets._join_boxes import JoinCounts, JoinedBoxes, join_boxes
from surgeval.datasets._letterbox import Letterbox
from surgeval.datasets._mapping import BoxMap
from surgeval.datasets._memory import MemoryDataset
from surgeval.datasets._merge import Merge, MergeMap, merged
from surgeval.datasets._outline import instance_mask
from surgeval.datasets._quality import FrameQuality, Proposal, QualityLimits, frame_quality, propose_drops
from surgeval.datasets._registry import formats, open_dataset, open_video, writers
from surgeval.datasets._video import VideoIndex, video_index
from surgeval.datasets._writing import Output, Writer

__all__ = [
    "BoxMap",
    "CheckReport",
    "ConvertReport",
    "Dataset",
    "Format",
    "FrameQuality",
    "JoinCounts",
    "JoinedBoxes",
    "Letterbox",
    "MemoryDataset",
    "Merge",
    "MergeMap",
    "OnProblem",
    "Output",
    "Problem",
    "Proposal",
    "QualityLimits",
    "VideoIndex",
    "Writer",
    "check",
    "clip_video",
    "clock",
    "contact_sheet",
    "convert",
    "cut_frames",
    "dataset_fingerprint",
    "draw_frame",
    "formats",
    "frame_quality",
    "image_size",
    "instance_mask",
    "join_boxes",
    "media_paths",
    "merged",
    "open_dataset",
    "open_video",
    "propose_drops",
    "raise_errors",
    "read_image",
    "video_index",
    "writers",
]
