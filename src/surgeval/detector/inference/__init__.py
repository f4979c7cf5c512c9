"""Detectors at work: open one, show it frames, folders or video, and keep what it found.

Names load on first use: the network needs torch, tables need polars, video needs PyAV, and a benchmark needs only the
first.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
