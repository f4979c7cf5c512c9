"""Protocol `intent`: multiple-choice questions about what the clinician does and why, traps among them."""

import lazy_loader as _lazy

from surgeval.protocols.descriptor import Descriptor

DESCRIPTOR = Descriptor.of_rooms(
    __name__,
    "Does it understand what the surgeon is doing and why, and can it be talked into seeing what is not there?",
    offers=("pair", "evaluate", "run", "score", "outcomes", "chapter"),
    ranks_by="mean over dimensions and traps",
    several=True,
    measures="numbers:MEASURES",
    order=25,
)

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
__all__ += ["DESCRIPTOR"]
