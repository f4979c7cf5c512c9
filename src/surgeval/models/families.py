"""The model families: what stands before the colon in `KIND:PLACE`, and which function opens such a model.

A package adds a family by an entry point of the group `surgeval.models` that names its `ModelFamily`. Openers are named
as text, so importing this module imports no torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from surgeval.errors import BadInput, code_of_others
from surgeval.models.contrastive import Contrastive
from surgeval.models.generative import Generative
from surgeval.registry import Registry

__all__ = ["FAMILIES", "ModelFamily", "family_of_type"]


@dataclass(frozen=True)
class ModelFamily:
    """A family of models, such as CLIP.

    `opener` is `module:function`, called as `function(place, name, dtype=…, **options)`: `place` is the folder for a
    family with a `model_type` (the word in config.json), else what stands after the colon; `name` is the whole text.
    It returns a `Contrastive` or a `Generative`.

    >>> FAMILIES["blip-itm"].model_type, FAMILIES["surgvlp"].model_type
    ('blip', None)
    """

    name: str
    summary: str
    opener: str
    model_type: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    def open(self, place: str | Path, name: str, dtype: str, **options: Any) -> Contrastive | Generative:
        """Load the model at a place; what the opener of another package raises is `BadInput`."""
        module, _, function = self.opener.partition(":")
        where = f"model family {self.name!r}: opener {self.opener}"
        with nullcontext() if FAMILIES.is_builtin(self.name) else code_of_others(where):
            opener = getattr(import_module(module), function)
            model = opener(place, name, dtype=dtype, **self.options, **options)
        if not isinstance(model, Contrastive | Generative):
            raise BadInput(f"{where}: expected a Contrastive or a Generative model, got a {type(model).__name__}")
        return model


CLIP = ModelFamily("clip", "CLIP, a transformers folder or hub name", "surgeval.models.networks.clip:open_clip", "clip")
BLIP_ITC = ModelFamily(
    "blip-itc", "BLIP image-text contrast, a transformers folder or hub name",
    "surgeval.models.networks.blip:open_blip", "blip", {"head": "itc"},
)  # fmt: skip
BLIP_ITM = ModelFamily(
    "blip-itm", "BLIP image-text matching, a transformers folder or hub name",
    "surgeval.models.networks.blip:open_blip", "blip", {"head": "itm"},
)  # fmt: skip
SURGVLP = ModelFamily(
    "surgvlp", "SurgVLP checkpoint (.pth or zip), with FILE?vocab=VOCAB or vocab.txt beside it",
    "surgeval.models.networks.surgvlp:open_surgvlp", options={"family": "surgvlp"},
)  # fmt: skip
HECVL = ModelFamily("hecvl", "HecVL checkpoint, as surgvlp", SURGVLP.opener, options={"family": "hecvl"})
PESKAVLP = ModelFamily("peskavlp", "PeskaVLP checkpoint, as surgvlp", SURGVLP.opener, options={"family": "peskavlp"})
LLAVA = ModelFamily(
    "llava", "LLaVA (it answers in words), a transformers folder or hub name",
    "surgeval.models.networks.llava:open_llava", "llava",
)  # fmt: skip
CLIP_RESNET = ModelFamily(
    "clip-resnet", "a CLIP with a residual image tower, as phantom-clip-resnet, a folder",
    "surgeval.models.networks.clip:open_clip_resnet", "surgeval-clip-resnet",
)  # fmt: skip

FAMILIES = Registry(
    "surgeval.models",
    {
        "clip": "surgeval.models.families:CLIP",
        "blip-itc": "surgeval.models.families:BLIP_ITC",
        "blip-itm": "surgeval.models.families:BLIP_ITM",
        "surgvlp": "surgeval.models.families:SURGVLP",
        "hecvl": "surgeval.models.families:HECVL",
        "peskavlp": "surgeval.models.families:PESKAVLP",
        "llava": "surgeval.models.families:LLAVA",
        "clip-resnet": "surgeval.models.families:CLIP_RESNET",
    },
    ModelFamily,
    "model family",
)


def family_of_type(model_type: object) -> ModelFamily | None:
    """The first family whose folders have this `model_type` in config.json.

    >>> family = family_of_type("blip")
    >>> family and family.name
    'blip-itc'
    """
    return next((one for one in FAMILIES.load_all().values() if one.model_type and one.model_type == model_type), None)
