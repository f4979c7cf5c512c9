"""Model loaders with their preprocessing geometry, and chat models (`models.chat`); embedded weights are package data.

Start with `open_contrastive`, or `open_generative` for a model that answers in words. Names are imported when they are
used, so importing this package imports no torch.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
