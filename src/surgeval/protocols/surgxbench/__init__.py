"""Protocol `surgxbench`: does a model look where it should? (SurgXBench, two papers)."""

import lazy_loader as _lazy

from surgeval.protocols.descriptor import Descriptor

DESCRIPTOR = Descriptor.of_rooms(
    __name__,
    "When it is right, is it right for the right reason?",
    offers=("evaluate", "run", "outcomes", "chapter"),
    ranks_by="top-1 right",
    several=True,
    measures="numbers:MEASURES",
    order=30,
)

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
__all__ += ["DESCRIPTOR"]
