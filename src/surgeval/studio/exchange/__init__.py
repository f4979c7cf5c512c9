"""A project and the files of other tools: it is itself a dataset, takes in others, and is written in their formats.

`StudioFormat` makes a project one of the formats that `open_dataset` knows; `import_dataset` puts labels of another
dataset into a project, `preview_import` says what that would do; `export_project` writes a folder inside the project,
`preview_export` says beforehand what the format cannot hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from surgeval._lazy import lazy_exports

if TYPE_CHECKING:
    from surgeval.studio.exchange._dataset import Selection, StudioDataset, main_group
    from surgeval.studio.exchange._export import EXPORT_FORMATS, Export, export_project, preview_export, zipped
    from surgeval.studio.exchange._format import StudioFormat
    from surgeval.studio.exchange._import import ImportReport, import_dataset, preview_import
    from surgeval.studio.exchange._offers import Offer, look, offered_imports, offered_path
    from surgeval.studio.exchange._space import packaged_space
    from surgeval.studio.exchange._unpack import unpack

# Loaded on first use: who lists the formats of datasets needs no database.
_HOMES = {
    "_dataset": "Selection StudioDataset main_group",
    "_export": "EXPORT_FORMATS Export export_project preview_export zipped",
    "_format": "StudioFormat",
    "_import": "ImportReport import_dataset preview_import",
    "_offers": "Offer look offered_imports offered_path",
    "_space": "packaged_space",
    "_unpack": "unpack",
}
__getattr__, __dir__ = lazy_exports(__name__, _HOMES)

__all__ = [
    "EXPORT_FORMATS",
    "Export",
    "ImportReport",
    "Offer",
    "Selection",
    "StudioDataset",
    "StudioFormat",
    "export_project",
    "import_dataset",
    "look",
    "main_group",
    "offered_imports",
    "offered_path",
    "packaged_space",
    "preview_export",
    "preview_import",
    "unpack",
    "zipped",
]
