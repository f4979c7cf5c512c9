"""Protocol `triplets`: action triplets ⟨instrument, verb, target⟩ that a model detected or recognised (ProstaTD)."""

import lazy_loader as _lazy

from surgeval.protocols.descriptor import Descriptor

DESCRIPTOR = Descriptor.of_rooms(
    __name__,
    "How well does it detect and recognise ⟨instrument, verb, target⟩?",
    offers=("pair", "score", "chapter"),
    measures="metrics:MEASURES",
    order=10,
)

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
__all__ += ["DESCRIPTOR"]
