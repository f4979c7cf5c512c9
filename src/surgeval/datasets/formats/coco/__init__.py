"""COCO JSON: its reader, the index of its tables, and its writer."""

from surgeval.datasets.formats.coco.format import CocoFormat

__all__ = ["CocoFormat"]
