"""SurgVLP, HecVL and PeskaVLP: a ResNet-50 and Bio_ClinicalBERT in one checkpoint file.

They see a 224-pixel centre crop of the frame resized to 640×360, which is 21.8 % of a 16:9 frame. Prompts need the
vocab.txt of Bio_ClinicalBERT, which the user supplies.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import nn

from surgeval.models.preparation import IMAGENET_MEAN, IMAGENET_STD, Preparation
from surgeval.models.resnet import resnet50
from surgeval.models.tokenizers import WordPieces
from surgeval.models.towers import TwoTowers, unit
from surgeval.models.weights import build_network, digest, read_torch

__all__ = [
    "PREPARATION",
    "SurgVLP",
    "SurgVLPNetwork",
    "open_surgvlp",
]

PREPARATION = Preparation((360, 640), (224, 224), "bilinear", mean=IMAGENET_MEAN, std=IMAGENET_STD)
WORDS = 28996  # rows of Bio_ClinicalBERT's word table
LENGTH = 77  # tokens of a padded prompt
LAYERS = 4  # last hidden layers that are added to the sentence vector


class SurgVLPNetwork(nn.Module):
    """Both backbones, with the parameter names of the checkpoints."""

    def __init__(self) -> None:
        super().__init__()
        from transformers import BertConfig, BertModel

        self.backbone_img = nn.ModuleDict({"model": resnet50(), "global_embedder": nn.Linear(2048, 768)})
        self.backbone_text = nn.ModuleDict({"model": BertModel(BertConfig(vocab_size=WORDS))})

    def trunk(self, pixels: torch.Tensor) -> torch.Tensor:
        """The output of layer4 (images, 2048, 7, 7)."""
        maps: torch.Tensor = self.backbone_img["model"](pixels)
        return maps

    def head(self, features: torch.Tensor) -> torch.Tensor:
        """Image vectors of layer4's maps, not normalised."""
        vectors: torch.Tensor = self.backbone_img["global_embedder"](features.mean((2, 3)))
        return vectors

    def sentence(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """Sum the last four hidden layers over the tokens ([CLS] and [SEP] too, padding not), divided by `LENGTH`."""
        out = self.backbone_text["model"](input_ids, attention_mask=attention_mask, output_hidden_states=True)
        layers = torch.stack(out.hidden_states[-LAYERS:]).sum(0)
        real = attention_mask.to(layers.dtype).unsqueeze(-1)
        vectors: torch.Tensor = (layers * real).sum(1) / LENGTH
        return vectors


class SurgVLP(TwoTowers):
    """A `ConvTower` whose scores are cosines."""

    network: SurgVLPNetwork

    def __init__(self, network: SurgVLPNetwork, tokens: WordPieces, *, name: str, family: str, identity: str,
                 dtype: str, notes: tuple[str, ...] = ()) -> None:  # fmt: skip
        super().__init__(network, name=name, family=family, identity=identity, preparation=PREPARATION,
                         logit_scale=100.0, dtype=dtype, notes=notes)  # fmt: skip
        self.tokens = tokens

    def trunk(self, pixels: torch.Tensor) -> torch.Tensor:
        """The last feature maps, without gradients."""
        with torch.no_grad():
            return self.network.trunk(self._place_pixels(pixels))

    def head(self, features: torch.Tensor) -> torch.Tensor:
        """Unit image vectors of those maps, with gradients."""
        return unit(self.network.head(features))

    def _image_vectors(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.network.head(self.network.trunk(pixels))

    def _text_vectors(self, prompts: Sequence[str]) -> torch.Tensor:
        placed = {name: value.to(self.device) for name, value in self.tokens(prompts).items()}
        return self.network.sentence(**placed)


def open_surgvlp(
    file: Path, name: str, vocab: Path | None = None, family: str = "surgvlp", dtype: str = "float32"
) -> SurgVLP:
    """Load a .pth file or a zip that holds one."""
    network, notes = build_network(SurgVLPNetwork, read_torch(file), file)
    tokens = WordPieces(vocab, file, words=WORDS, length=LENGTH)
    identity = digest([file, *tokens.files], PREPARATION, family, dtype)
    return SurgVLP(network, tokens, name=name, family=family, identity=identity, dtype=dtype, notes=notes)
