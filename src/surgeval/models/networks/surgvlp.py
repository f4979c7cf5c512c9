"""SurgVLP, HecVL and PeskaVLP: a ResNet-50 and Bio_ClinicalBERT in one checkpoint file.

They see a 224-pixel centre crop of the frame resized to 640×360, which is 21.8 % of it. Prompts need the vocab.txt of
Bio_ClinicalBERT, which the user supplies.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import nn

from surgeval.models.io.checkpoint import read_torch
from surgeval.models.io.weights import build, digest
from surgeval.models.networks.resnet import resnet50
from surgeval.models.networks.two_towers import TwoTowers, unit
from surgeval.models.preparation import IMAGENET_MEAN, IMAGENET_STD, Preparation
from surgeval.models.text.tokens import WordPieces

__all__ = ["PREPARATION", "SurgVLP", "SurgVLPNetwork", "open_surgvlp"]

PREPARATION = Preparation((360, 640), (224, 224), "bilinear", mean=IMAGENET_MEAN, std=IMAGENET_STD)
WORDS = 28996  # rows of Bio_ClinicalBERT's word table
LENGTH = 77  # tokens of a padded prompt
LAYERS = 4  # hidden layers that make the sentence vector


class SurgVLPNetwork(nn.Module):
    """The two backbones under the names that the checkpoints use."""

    def __init__(self) -> None:
        super().__init__()
        from transformers import BertConfig, BertModel

        self.backbone_img = nn.ModuleDict({"model": resnet50(), "global_embedder": nn.Linear(2048, 768)})
        self.backbone_text = nn.ModuleDict({"model": BertModel(BertConfig(vocab_size=WORDS))})

    def trunk(self, pixels: torch.Tensor) -> torch.Tensor:
        """The output of layer4: (images, 2048, 7, 7)."""
        maps: torch.Tensor = self.backbone_img["model"](pixels)
        return maps

    def head(self, features: torch.Tensor) -> torch.Tensor:
        """Image vectors from layer4's maps, not normalised."""
        vectors: torch.Tensor = self.backbone_img["global_embedder"](features.mean((2, 3)))
        return vectors

    def sentence(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """Sum over the last four hidden layers and the real tokens ([CLS] and [SEP] too), over the padded length."""
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
            return self.network.trunk(self._pixels(pixels))

    def head(self, features: torch.Tensor) -> torch.Tensor:
        """Unit image vectors from those maps, inside the graph."""
        return unit(self.network.head(features))

    def _image_vectors(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.network.head(self.network.trunk(pixels))

    def _text_vectors(self, prompts: Sequence[str]) -> torch.Tensor:
        placed = {name: value.to(self.device) for name, value in self.tokens(prompts).items()}
        return self.network.sentence(**placed)


def open_surgvlp(
    file: Path, name: str, vocab: Path | None = None, family: str = "surgvlp", dtype: str = "float32"
) -> SurgVLP:
    """The model of a .pth file or of a zip that holds one."""
    network, notes = build(SurgVLPNetwork, read_torch(file), file)
    tokens = WordPieces(vocab, file, words=WORDS, length=LENGTH)
    identity = digest([file, *tokens.files], PREPARATION, family, dtype)
    return SurgVLP(network, tokens, name=name, family=family, identity=identity, dtype=dtype, notes=notes)
