"""BLIP for retrieval: image-text contrast (ITC, two towers) and image-text matching (ITM, the prompt reads the image).

ITC explains through the image tower's attentions, which is [CLS]-pooled; ITM through the text encoder's
cross-attention to the patches.
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
from surgeval.models.io.weights import build, configured, digest, read_config, read_folder
from surgeval.models.networks.clip import fitting_size, read_preparation
from surgeval.models.networks.two_towers import Adapter, PatchTowers, attended, tracked
from surgeval.models.text.tokens import FolderTokens, checked_prompts

__all__ = ["BlipItc", "BlipItm", "open_blip"]

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


class BlipItm(Adapter):
    """A `CrossAttention` head. `scores` are match probabilities; `cross` scores are their log-odds.

    The gradient of a saturated probability vanishes, that of the log-odds does not; the maps differ by a factor only.
    """

    def __init__(self, network: Any, tokens: FolderTokens, grid: tuple[int, int], **about: Any) -> None:
        super().__init__(network, **about)
        self.tokens, self.grid = tokens, grid

    def texts(self, prompts: Sequence[str]) -> TextBank:
        """Tokens of the prompts: this head has no prompt vectors."""
        checked = checked_prompts(prompts)
        unknown = self.tokens.unknown(checked)
        placed = {name: value.to(self.device) for name, value in self.tokens(checked).items()}
        return TextBank(checked, tokens=placed, unknown=unknown)

    def scores(self, pixels: torch.Tensor, texts: TextBank) -> torch.Tensor:
        """The probability that prompt and image match (images, prompts), without gradients."""
        tokens = self._tokens(texts)
        with torch.no_grad():
            states = self.network.vision_model(pixel_values=self._pixels(pixels)).last_hidden_state
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
        """Log-odds of image b and prompt `which[b]`, each layer's cross-attention in the graph, and the real words."""
        tokens = self._tokens(texts)
        rows = which.to(self.device)
        if len(rows) != len(pixels) or (len(rows) and not 0 <= int(rows.min()) <= int(rows.max()) < len(texts)):
            raise BadInput(f"which: found {tuple(which.tolist())}, expected one prompt below {len(texts)} per image")
        with torch.no_grad():
            states = self.network.vision_model(pixel_values=self._pixels(pixels)).last_hidden_state
        picked = {name: value[rows] for name, value in tokens.items()}
        attentions: list[torch.Tensor] = []
        layers = [layer.crossattention.self for layer in self.network.text_encoder.encoder.layer]
        hooks = [
            layer.register_forward_hook(lambda _module, _inputs, out: attentions.append(out[1])) for layer in layers
        ]
        try:
            with torch.enable_grad():
                odds = self._odds(tracked(states), picked)
        finally:
            for hook in hooks:
                hook.remove()
        return odds, attended(tuple(attentions), len(layers), math.prod(self.grid)), picked["attention_mask"].bool()

    def _odds(self, states: torch.Tensor, tokens: dict[str, torch.Tensor]) -> torch.Tensor:
        seen = torch.ones(states.shape[:2], dtype=torch.long, device=states.device)
        words = self.network.text_encoder(**tokens, encoder_hidden_states=states, encoder_attention_mask=seen)
        logits = self.network.itm_head(words.last_hidden_state[:, 0]).float()
        odds: torch.Tensor = logits[:, 1] - logits[:, 0]
        return odds

    def _tokens(self, texts: TextBank) -> dict[str, torch.Tensor]:
        if texts.tokens is None:
            raise BadInput(f"texts: found prompts made by another kind of model, expected those of {self.name}")
        return {name: value.to(self.device) for name, value in texts.tokens.items()}


def open_blip(folder: Path, name: str, head: str = "itc", dtype: str = "float32") -> BlipItc | BlipItm:
    """The model of a transformers folder with `model_type: blip` and retrieval weights; `head` is itc or itm."""
    from transformers import BlipConfig, BlipForImageTextRetrieval

    path = folder / "config.json"
    config = configured(BlipConfig.from_dict, read_config(path), path)
    preparation = read_preparation(folder)
    grid = fitting_size(path, config.vision_config, preparation)
    tensors, files = read_folder(folder)
    make = partial(BlipForImageTextRetrieval._from_config, config, attn_implementation="eager", dtype=torch.float32)
    network, notes = build(make, tensors, files[0])
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
    # The published files leave the trained temperature out; the configuration's start value is what remains of it.
    return BlipItc(network, tokens, grid, logit_scale=math.exp(min(float(config.logit_scale_init_value), 20)), **about)
