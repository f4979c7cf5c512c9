"""Training TDnet: teacher, then student, in a folder that can be killed at any moment and gone on with.

`train_tdnet(train, validation, classes, out, settings)` is the whole interface; `TrainRecord.load` and `read_curves`
look at a training, also while it runs. Names load on first use; nothing here needs more than torch and the data.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
