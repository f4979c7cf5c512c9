"""Training and examination of the embedded models: `train_embedded({"phantom-clip": recipe}, "out")`.

Training needs torch and transformers (`surgeval[models]`), nothing else beyond the renderer; names load on first use,
so that rendering processes stay without torch. `python -m surgeval.phantom.training all --out DIR` is the command for
a machine with little more than torch on it. Training never sees a test video; `examine_embedded` is a step of its own.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
