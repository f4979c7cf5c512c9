"""Protocol `quality`: measure every frame and propose the ones nobody can use (ProstaTD, appendix A.2)."""

import lazy_loader as _lazy

from surgeval.protocols.descriptor import Descriptor

DESCRIPTOR = Descriptor.of_rooms(
    __name__,
    "Which frames can nobody use?",
    offers=("evaluate", "run"),
    measures="tables:MEASURES",
    order=90,
)

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
__all__ += ["DESCRIPTOR"]
