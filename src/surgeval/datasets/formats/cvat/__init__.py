"""CVAT's XML, tracks and images: its reader and its writer."""

from surgeval.datasets.formats.cvat.format import CvatFormat

__all__ = ["CvatFormat"]
