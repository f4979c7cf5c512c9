"""Detectors at work: open one, show it frames, folders or video, and keep what it found.

Names load on first use: the network needs torch, tables need polars, video needs PyAV, and a benchmark needs only the
first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from surgeval._lazy import lazy_exports

if TYPE_CHECKING:
    from surgeval.detector.inference._network import Network, Raw

__all__ = ["Network", "Raw"]

_HOMES = {
    "_network": ("Network", "Raw"),
}
__getattr__, __dir__ = lazy_exports(__name__, _HOMES)
