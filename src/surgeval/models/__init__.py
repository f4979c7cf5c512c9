"""Load models with their image preprocessing, and ask chat models (`models.chat`).

Start with `open_contrastive`, or `open_generative` for a model that generates text. Names are imported on first use, so
importing this package imports no torch.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
