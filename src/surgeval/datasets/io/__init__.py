"""Opening files that nobody vouches for: bounded, regular, checked; images, videos, outlines and their geometry."""

from surgeval.datasets.io.fixations import FixationReader
from surgeval.datasets.io.json import UNREAD, read_bytes, read_json, read_lines, read_text, told_json
from surgeval.datasets.io.layout import folders, names, number_of
from surgeval.datasets.io.outline import outline_fields
from surgeval.datasets.io.values import check_box
from surgeval.datasets.io.video import SUFFIXES, video_files

__all__ = [
    "SUFFIXES",
    "UNREAD",
    "FixationReader",
    "check_box",
    "folders",
    "names",
    "number_of",
    "outline_fields",
    "read_bytes",
    "read_json",
    "read_lines",
    "read_text",
    "told_json",
    "video_files",
]
