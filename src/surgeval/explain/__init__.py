"""Heatmaps, regions, optical flow, occlusion, sanity checks: where a model looks, and whether it should.

`heatmaps.heatmaps` makes the maps, `Paste` puts them on the frame, `top_regions` and `overlap` compare them with
labels, `occlusion` and `sanity` ask whether region and map mean anything. Names load on first use: most need torch.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
