"""RT-DETR as a second detector: transformers' network with ResNet backbones, trained and read as TDnet is.

The `rtdetr-l` of the ProstaTD paper has another backbone; transformers offers ResNets only.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
