"""Surgical triplet detectors: TDnet and its parts; names load on first use, as most need torch.

`build_tdnet` makes a network for the `Classes` of a label space, `save_detector` and `load_detector` keep it in one
file, `student_of` makes the copy that self-distillation trains; `train_tdnet` does all of it in a folder.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
