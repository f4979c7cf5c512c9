"""A dataset format from outside: a text file with the name of a frame on each line."""

from pathlib import Path

from surgeval.datasets import MemoryDataset
from surgeval.records import Frame
from surgeval.vocab import LabelSpace, load_labels


class MarksFormat:
    """A file that ends in .marks."""

    name, title = "marks", "names of frames, one per line"

    def detect(self, path: Path) -> bool:
        return path.suffix == ".marks"

    def open(self, path: Path, labels: LabelSpace | None = None) -> MemoryDataset:
        frames = [
            Frame("video", name, number, None, None, 8, 8) for number, name in enumerate(path.read_text().split())
        ]
        return MemoryDataset(labels or load_labels("cholec80"), frames)
