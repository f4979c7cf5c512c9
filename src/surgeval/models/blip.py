"""BLIP for retrieval: image-text contrast (ITC, two towers) and image-text matching (ITM, prompt and image together).

ITC is explained by the attention of its [CLS]-pooled image tower, ITM by the text encoder's cross-attention to the
patches.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from surgeval.errors import BadInput
from surgeval.models.contrastive import TextBank
from surgeval.models.preparation import read_preparation
from surgeval.models.tokenizers import FolderTokens, check_prompts
from surgeval.models.towers import PatchTowers, PromptModel, as_leaf, check_attentions, read_patch_grid
from surgeval.models.weights import build_network, digest, make_config, read_config, read_folder

__all__ = [
    "BlipItc",
    "BlipItm",
    "open_blip",
]

_PAIRS = 64  # image-prompt pairs that the matching head reads at a time


class BlipItc(PatchTowers):
    """An `AttentionTower` whose scores are cosines."""

    def _vectors_and_attentions(self, pixels: torch.Tensor) -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
        out = self.network.vision_model(pixel_values=pixels, output_attentions=True)
        return self.network.vision_proj(out.last_hidden_state[:, 0]), out.attentions

    def _image_vectors(self, pixels: torch.Tensor) -> torch.Tensor:
        states = self.network.vision_model(pixel_values=pixels).last_hidden_state
        vectors: torch.Tensor = self.network.vision_proj(states[:, 0])
        return vectors

    def _text_vectors(self, prompts: Sequence[str]) -> torch.Tensor:
        placed = {name: value.to(self.device) for name, value in self.tokens(prompts).items()}
        vectors: torch.Tensor = self.network.text_proj(self.network.text_encoder(**placed).last_hidden_state[:, 0])
        return vectors


class BlipItm(PromptModel):
    """A `CrossAttention` head. `scores` are probabilities of a match, `cross` returns their log-odds.

    The gradient of a saturated probability vanishes, that of the log-odds does not; the maps differ only by a factor.
    """

    def __init__(self, network: Any, tokens: FolderTokens, grid: tuple[int, int], **about: Any) -> None:
        super().__init__(network, **about)
        self.tokens, self.grid = tokens, grid

    def texts(self, prompts: Sequence[str]) -> TextBank:
        """Tokenise prompts: this head has no prompt vectors."""
        checked = check_prompts(prompts)
        unknown = self.tokens.unknown(checked)
        placed = {name: value.to(self.device) for name, value in self.tokens(checked).items()}
        return TextBank(checked, tokens=placed, unknown=unknown)

    def scores(self, pixels: torch.Tensor, texts: TextBank) -> torch.Tensor:
        """Probabilities (images, prompts) that prompt and image match, without gradients."""
        tokens = self._tokens(texts)
        with torch.no_grad():
            states = self.network.vision_model(pixel_values=self._place_pixels(pixels)).last_hidden_state
            image, prompt = torch.meshgrid(torch.arange(len(states)), torch.arange(len(texts)), indexing="ij")
            image, prompt = image.flatten().to(self.device), prompt.flatten().to(self.device)
            odds = [
                self._odds(states[image[part]], {name: value[prompt[part]] for name, value in tokens.items()})
                for part in (slice(start, start + _PAIRS) for start in range(0, len(image), _PAIRS))
            ]
        return torch.cat(odds).reshape(len(states), len(texts)).sigmoid()

    def cross(
        self, pixels: torch.Tensor, texts: TextBank, which: torch.Tensor
    ) -> tuple[torch.Tensor, tuple[torch.Tensor, ...], torch.Tensor]:
        """Log-odds of image b and prompt `which[b]`, each layer's cross-attention with gradients, the mask of words."""
        tokens = self._tokens(texts)
        rows = which.to(self.device)
        if len(rows) != len(pixels) or (len(rows) and not 0 <= int(rows.min()) <= int(rows.max()) < len(texts)):
            raise BadInput(f"which={tuple(which.tolist())} must name one of {len(texts)} prompts for each of "
                           f"{len(pixels)} images.")  # fmt: skip
        with torch.no_grad():
            states = self.network.vision_model(pixel_values=self._place_pixels(pixels)).last_hidden_state
        picked = {name: value[rows] for name, value in tokens.items()}
        attentions: list[torch.Tensor] = []
        layers = [layer.crossattention.self for layer in self.network.text_encoder.encoder.layer]
        hooks = [
            layer.register_forward_hook(lambda _module, _inputs, out: attentions.append(out[1])) for layer in layers
        ]
        try:
            with torch.enable_grad():
                odds = self._odds(as_leaf(states), picked)
        finally:
            for hook in hooks:
                hook.remove()
        return (
            odds,
            check_attentions(tuple(attentions), len(layers), math.prod(self.grid)),
            picked["attention_mask"].bool(),
        )

    def _odds(self, states: torch.Tensor, tokens: dict[str, torch.Tensor]) -> torch.Tensor:
        seen = torch.ones(states.shape[:2], dtype=torch.long, device=states.device)
        words = self.network.text_encoder(**tokens, encoder_hidden_states=states, encoder_attention_mask=seen)
        logits = self.network.itm_head(words.last_hidden_state[:, 0]).float()
        odds: torch.Tensor = logits[:, 1] - logits[:, 0]
        return odds

    def _tokens(self, texts: TextBank) -> dict[str, torch.Tensor]:
        if texts.tokens is None:
            raise BadInput(f"These prompts were encoded by another kind of model. Encode them with {self.name}.texts.")
        return {name: value.to(self.device) for name, value in texts.tokens.items()}


def open_blip(folder: Path, name: str, head: str = "itc", dtype: str = "float32") -> BlipItc | BlipItm:
    """Load a transformers folder with `model_type: blip` and retrieval weights; `head` is itc or itm."""
    from transformers import BlipConfig, BlipForImageTextRetrieval

    path = folder / "config.json"
    config = make_config(BlipConfig.from_dict, read_config(path), path)
    preparation = read_preparation(folder)
    grid = read_patch_grid(path, config.vision_config, preparation)
    tensors, files = read_folder(folder)
    make = partial(BlipForImageTextRetrieval._from_config, config, attn_implementation="eager", dtype=torch.float32)
    network, notes = build_network(make, tensors, files[0])
    text, family = config.text_config, f"blip-{head}"
    tokens = FolderTokens(folder, longest=text.max_position_embeddings, words=text.vocab_size)
    about = {
        "name": name,
        "family": family,
        "identity": digest([*files, path, *tokens.files], preparation, family, dtype),
        "preparation": preparation,
        "dtype": dtype,
        "notes": notes,
    }
    if head == "itm":
        return BlipItm(network, tokens, grid, logit_scale=1.0, **about)
    # The published files lack the trained temperature; only its initial value is in the configuration.
    return BlipItc(network, tokens, grid, logit_scale=math.exp(min(float(config.logit_scale_init_value), 20)), **about)
