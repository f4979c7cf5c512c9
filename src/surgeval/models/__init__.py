"""Model loaders with their preprocessing geometry, and chat models (`models.chat`); embedded weights are package data.

Start with `open_contrastive`, or `open_generative` for a model that answers in words. Names are imported when they are
used, so importing this package imports no torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from surgeval._lazy import lazy_exports

if TYPE_CHECKING:
    from surgeval.models._check import ModelCheck, check_model
    from surgeval.models._devices import usable_device
    from surgeval.models._embedded import (
        EMBEDDED,
        EMBEDDED_DETECTORS,
        EMBEDDED_GENERATIVE,
        embedded_detector,
        embedded_folder,
    )
    from surgeval.models._registry import PLACES, open_contrastive, open_generative, open_model
    from surgeval.models.contrastive import AttentionTower, Contrastive, ConvTower, CrossAttention, TextBank
    from surgeval.models.families import FAMILIES, ModelFamily
    from surgeval.models.generative import Generated, Generative, Replayed
    from surgeval.models.io._hub import hub_folder
    from surgeval.models.networks._clip_resnet import PhantomClipResnet
    from surgeval.models.preparation import Preparation, View

__all__ = [
    "EMBEDDED",
    "EMBEDDED_DETECTORS",
    "EMBEDDED_GENERATIVE",
    "FAMILIES",
    "PLACES",
    "AttentionTower",
    "Contrastive",
    "ConvTower",
    "CrossAttention",
    "Generated",
    "Generative",
    "ModelCheck",
    "ModelFamily",
    "PhantomClipResnet",
    "Preparation",
    "Replayed",
    "TextBank",
    "View",
    "check_model",
    "embedded_detector",
    "embedded_folder",
    "hub_folder",
    "open_contrastive",
    "open_generative",
    "open_model",
    "usable_device",
]

_HOMES = {
    "_check": "ModelCheck check_model",
    "_devices": "usable_device",
    "_embedded": "EMBEDDED EMBEDDED_DETECTORS EMBEDDED_GENERATIVE embedded_detector embedded_folder",
    "_registry": "PLACES open_contrastive open_generative open_model",
    "contrastive": "AttentionTower Contrastive ConvTower CrossAttention TextBank",
    "families": "FAMILIES ModelFamily",
    "generative": "Generated Generative Replayed",
    "io._hub": "hub_folder",
    "networks._clip_resnet": "PhantomClipResnet",
    "preparation": "Preparation View",
}
__getattr__, __dir__ = lazy_exports(__name__, _HOMES)
