"""Files that are whole or absent when written, checked when read, and named inside their folder.

Names load on first use: pydantic, for one, is imported only where a schema is used.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
