"""Protocol `focus`: answers to surgical questions, scored and ranked as the FOCUS challenge does."""

import lazy_loader as _lazy

from surgeval.protocols.descriptor import Descriptor

DESCRIPTOR = Descriptor.of_rooms(
    __name__,
    "Does it answer questions about the operation better than a blind baseline?",
    offers=("evaluate", "run", "score", "outcomes", "chapter"),
    ranks_by="pre-evaluation score",
    order=20,
)

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
__all__ += ["DESCRIPTOR"]
