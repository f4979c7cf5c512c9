"""surgeval: can a vision or vision-language model for surgery be trusted?

Names load on first use, so `import surgeval` stays fast and needs no torch. They are listed in `__init__.pyi`.
"""

import lazy_loader as _lazy

from surgeval._version import __version__ as __version__

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
