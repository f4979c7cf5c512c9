"""Datasets: one interface, one file per source format, and what is done with whole datasets.

`open_dataset(path)` finds the format and gives videos, lazily read frames and questions; `check` names every problem;
`convert` writes another format and says what it lost (`export_losses` says it beforehand); `frame_quality` and
`propose_drops` find useless frames.
"""

from surgeval.datasets.base import Dataset, Format, Holds, held_by
from surgeval.datasets.formats.focus import RowsFile, focus_rows, has_focus_columns, read_focus_pair, row_files
from surgeval.datasets.formats.intent import check_media, intent_record, media_paths
from surgeval.datasets.formats.intent_items import SKILLS, read_intent_items
from surgeval.datasets.formats.mapping import BoxMap
from surgeval.datasets.formats.writing import Output, Writer
from surgeval.datasets.io.images import image_size, read_image
from surgeval.datasets.io.letterbox import Letterbox
from surgeval.datasets.io.outline import instance_mask
from surgeval.datasets.io.video import VideoIndex, video_index
from surgeval.datasets.join_boxes import JoinCounts, JoinedBoxes, join_boxes
from surgeval.datasets.memory import MemoryDataset
from surgeval.datasets.registry import (
    dataset_formats,
    fits,
    is_dataset,
    open_dataset,
    open_images,
    open_video,
    writers,
)
from surgeval.datasets.sources import Sources, name_sources
from surgeval.datasets.tools.check import CheckReport, check
from surgeval.datasets.tools.convert import ConvertReport, convert, export_losses
from surgeval.datasets.tools.cut import clip_video, clock, cut_frames, with_clock
from surgeval.datasets.tools.draw import contact_sheet, draw_frame
from surgeval.datasets.tools.fingerprint import dataset_fingerprint
from surgeval.datasets.tools.merge import Merge, MergeMap, merged
from surgeval.datasets.tools.quality import DropProposal, FrameQuality, QualityLimits, frame_quality, propose_drops
from surgeval.files import PROBLEM_KINDS, OnProblem, Problem, keep_warnings, raise_errors

__all__ = [
    "PROBLEM_KINDS",
    "SKILLS",
    "BoxMap",
    "CheckReport",
    "ConvertReport",
    "Dataset",
    "DropProposal",
    "Format",
    "FrameQuality",
    "Holds",
    "JoinCounts",
    "JoinedBoxes",
    "Letterbox",
    "MemoryDataset",
    "Merge",
    "MergeMap",
    "OnProblem",
    "Output",
    "Problem",
    "QualityLimits",
    "RowsFile",
    "Sources",
    "VideoIndex",
    "Writer",
    "check",
    "check_media",
    "clip_video",
    "clock",
    "contact_sheet",
    "convert",
    "cut_frames",
    "dataset_fingerprint",
    "dataset_formats",
    "draw_frame",
    "export_losses",
    "fits",
    "focus_rows",
    "frame_quality",
    "has_focus_columns",
    "held_by",
    "image_size",
    "instance_mask",
    "intent_record",
    "is_dataset",
    "join_boxes",
    "keep_warnings",
    "media_paths",
    "merged",
    "name_sources",
    "open_dataset",
    "open_images",
    "open_video",
    "propose_drops",
    "raise_errors",
    "read_focus_pair",
    "read_image",
    "read_intent_items",
    "row_files",
    "video_index",
    "with_clock",
    "writers",
]
