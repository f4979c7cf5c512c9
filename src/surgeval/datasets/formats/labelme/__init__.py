"""labelme's JSON, a file per frame: its reader and its writer."""

from surgeval.datasets.formats.labelme.format import LabelmeFormat

__all__ = ["LabelmeFormat"]
