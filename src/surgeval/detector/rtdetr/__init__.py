"""RT-DETR as a second detector: transformers' network with ResNet backbones, trained and read as TDnet is.

The `rtdetr-l` of the ProstaTD paper has another backbone; transformers offers ResNets only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from surgeval._lazy import lazy_exports

if TYPE_CHECKING:
    from surgeval.detector.rtdetr._config import RTDETR_SIZES
    from surgeval.detector.rtdetr._folder import load_rtdetr, pretrained_rtdetr, save_rtdetr
    from surgeval.detector.rtdetr._loss import DetrLoss
    from surgeval.detector.rtdetr._network import RTDetr, build_rtdetr
    from surgeval.detector.rtdetr._train import TrainedRTDetr, rtdetr_settings, train_rtdetr

_HOMES = {
    "_config": "RTDETR_SIZES",
    "_folder": "load_rtdetr pretrained_rtdetr save_rtdetr",
    "_loss": "DetrLoss",
    "_network": "RTDetr build_rtdetr",
    "_train": "TrainedRTDetr rtdetr_settings train_rtdetr",
}

__all__ = [
    "RTDETR_SIZES",
    "DetrLoss",
    "RTDetr",
    "TrainedRTDetr",
    "build_rtdetr",
    "load_rtdetr",
    "pretrained_rtdetr",
    "rtdetr_settings",
    "save_rtdetr",
    "train_rtdetr",
]

__getattr__, __dir__ = lazy_exports(__name__, _HOMES)
