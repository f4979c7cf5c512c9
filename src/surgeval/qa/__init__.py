"""Is an answer right? Answer formats, judges, screening for attacks on judges, and what a chat model is.

Names load on first use: reading choices, for one, needs no table library.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
