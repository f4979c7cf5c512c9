"""The phantom: a scripted laparoscopic operation whose every label is known.

`make_procedure(seed)` decides what happens, `Footage` films it, `write_phantom` writes a dataset with labels and
questions, `write_edition("phantom-v1", folder)` the fixed one that results are quoted on.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
