"""Protocol `training`: detectors trained and tested on folds, ablations, the page of a training (ProstaTD, E and F)."""

import lazy_loader as _lazy

from surgeval.protocols.descriptor import Descriptor

DESCRIPTOR = Descriptor.of_rooms(
    __name__,
    "How well does a detector do on videos that it never saw?",
    offers=("pair", "evaluate", "run", "folders"),
    several=True,
    order=15,
)

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
__all__ += ["DESCRIPTOR"]
