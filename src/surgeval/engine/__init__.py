"""Run a worker over units of work, in a folder that can be killed at any moment and resumed.

`run(units, worker, folder=…, manifest=…)` is the whole interface; `load_cases(folder)` reads the cases. These must
follow from a unit's payload alone (seeds included): then a resumed run ends with the bytes of an uninterrupted one,
whatever the executor.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
