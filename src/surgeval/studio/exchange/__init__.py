"""A project and the files of other tools: it is itself a dataset, takes in others, and is written in their formats.

`StudioFormat` makes a project one of the formats that `open_dataset` knows; `import_dataset` puts labels of another
dataset into a project, `preview_import` says what that would do; `export_project` writes a folder inside the project,
`preview_export` says beforehand what the format cannot hold.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
