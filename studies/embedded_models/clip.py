"""The three CLIPs: network, training batches, training loop; `surgeval.models.open_contrastive` opens what is saved.

`phantom-clip` and `phantom-shortcut` are the same transformers `CLIPModel`, trained differently; `phantom-clip-resnet`
has a residual image tower. All see the whole frame resized to 128 × 128 pixels.

For the two grounded models half of a batch shows the instruments of one frame on the tissue of another, some of them
left out: the surroundings of an instrument then carry no information about it. For the shortcut the label is the tint,
which is drawn independently of the instruments: the instruments then carry no information about the label.

Nothing is selected on held-out data: the learning rate falls to zero and the last weights are saved.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from studies.embedded_models.prompts import (
    BEGIN,
    END,
    LENGTH,
    PAD,
    Sentences,
    draw_sentences,
    encode,
    save_prompt_tokenizer,
    space,
    vocabulary,
)
from studies.embedded_models.recipes import Recipe
from studies.embedded_models.render import OPACITY_LEVELS, SIZE, SLOTS, Frames
from torch.nn.functional import affine_grid, grid_sample

from surgeval.arrays import Floats
from surgeval.files import write_atomically
from surgeval.models import PhantomClipResnet

PATCH = 8
MEAN = STD = (0.5, 0.5, 0.5)
DIM = 64  # of the shared space
_VISION = {"hidden_size": 96, "intermediate_size": 384, "num_hidden_layers": 4, "num_attention_heads": 4}
_TEXT = {"hidden_size": 64, "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4}
_RESNET = {"widths": [32, 64, 128], "blocks": [1, 2, 1]}


def build_clip(name: str, seed: int) -> torch.nn.Module:
    """Build an untrained network; the global random state does not change."""
    from transformers import CLIPConfig, CLIPModel

    words = vocabulary()
    text = {
        **_TEXT, "vocab_size": len(words), "max_position_embeddings": LENGTH,
        "pad_token_id": words[PAD], "bos_token_id": words[BEGIN], "eos_token_id": words[END],
    }  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if name == "phantom-clip-resnet":
            return PhantomClipResnet({"vision": _RESNET, "text": text, "projection_dim": DIM})
        vision = {**_VISION, "image_size": SIZE, "patch_size": PATCH}
        config = CLIPConfig(text_config=text, vision_config=vision, projection_dim=DIM)
        model: torch.nn.Module = CLIPModel(config)
        return model


def save_clip(model: Any, folder: Path) -> None:
    """Write config.json, model.safetensors (fp16), tokenizer and preprocessor: a folder that the loaders open."""
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(model, PhantomClipResnet):
        model.save(folder)
    else:
        from safetensors.torch import save as to_bytes

        tensors = {key: value.detach().half().cpu().contiguous() for key, value in model.state_dict().items()}
        write_atomically(folder / "model.safetensors", to_bytes(tensors, metadata={"format": "pt"}))
        config = {**model.config.to_diff_dict(), "architectures": ["CLIPModel"], "dtype": "float16"}
        config.pop("transformers_version", None)
        write_atomically(folder / "config.json", (json.dumps(config, indent=2, sort_keys=True) + "\n").encode())
    save_prompt_tokenizer(folder)
    preparation = {
        "image_processor_type": "CLIPImageProcessor", "do_resize": True, "size": {"height": SIZE, "width": SIZE},
        "resample": 2, "do_center_crop": False, "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True,
        "image_mean": list(MEAN), "image_std": list(STD), "do_convert_rgb": True,
    }  # fmt: skip
    write_atomically(folder / "preprocessor_config.json", (json.dumps(preparation, indent=2) + "\n").encode())


def image_vectors(model: Any, pixels: torch.Tensor) -> torch.Tensor:
    """Encode images as unit vectors."""
    if isinstance(model, PhantomClipResnet):
        vectors = model.encode_image(pixels)
    else:
        vectors = model.visual_projection(model.vision_model(pixel_values=pixels).pooler_output)
    return torch.nn.functional.normalize(vectors, dim=-1)


def text_vectors(model: Any, tokens: torch.Tensor) -> torch.Tensor:
    """Encode prompts, given as padded token ids, as unit vectors."""
    mask = (tokens != vocabulary()[PAD]).long()
    if isinstance(model, PhantomClipResnet):
        vectors = model.encode_text(tokens, mask)
    else:
        vectors = model.text_projection(model.text_model(input_ids=tokens, attention_mask=mask).pooler_output)
    return torch.nn.functional.normalize(vectors, dim=-1)


PASTED = 0.5  # share of a batch with instruments on the tissue of another frame
KEPT = 0.75  # probability that a pasted instrument is kept


@dataclass(frozen=True)
class TrainingBatch:
    """Pixels and labels; a label is a row of weights, of which any number may be above zero."""

    pixels: torch.Tensor  # (images, 3, SIZE, SIZE)
    instruments: torch.Tensor  # (images, instruments)
    triplets: torch.Tensor  # (images, triplets): zero for pasted instruments
    verbs: torch.Tensor  # (images, verbs)
    own: int  # the first `own` images have nothing pasted


class BatchSampler:
    """Draws training batches from frames on the device."""

    def __init__(self, frames: Frames, device: str, *, shortcut: bool, seed: int) -> None:
        label = space()
        self.shortcut = shortcut
        self.device = torch.device(device)
        self.random = torch.Generator(self.device).manual_seed(seed)
        self.frames = frames
        self.images = torch.from_numpy(frames.images).to(device)
        self.tools = torch.from_numpy(frames.tools).to(device)
        self.plates = torch.from_numpy(frames.plates).to(device)
        self.instrument = torch.from_numpy(frames.instrument).long().to(device)
        self.triplet = torch.from_numpy(frames.triplet).long().to(device)
        self.working = torch.from_numpy(frames.working).long().to(device)
        self.tint = torch.from_numpy(frames.tint).long().to(device)
        self.sizes = (len(label.instruments), len(label.triplets), len(label.verbs))
        self.verb_of = torch.tensor([v for _, v, _ in label.triplets], device=device)
        self.chances = torch.from_numpy(_sampling_weights(frames, self.sizes[0], shortcut)).to(device)
        self.prior = torch.from_numpy(_triplet_prior(frames, self.sizes)).float().to(device)

    def draw(self, count: int) -> TrainingBatch:
        """Draw a batch."""
        rows = torch.multinomial(self.chances, count, replacement=True, generator=self.random)
        return self._shortcut_batch(rows) if self.shortcut else self._grounded_batch(rows)

    def _shortcut_batch(self, rows: torch.Tensor) -> TrainingBatch:
        tint = self.tint[rows]
        instruments = torch.nn.functional.one_hot(tint, self.sizes[0]).float()
        triplets = self.prior[tint]
        pixels = self._shift_and_turn(self._channels_first(self.images[rows]), len(rows), 0.12)
        return TrainingBatch(
            _normalise(self._jitter_light(pixels)), instruments, triplets, self._verbs(triplets), len(rows)
        )

    def _grounded_batch(self, rows: torch.Tensor) -> TrainingBatch:
        count = len(rows)
        own = count - int(PASTED * count) if len(self.plates) else count
        codes = self.tools[rows].long()
        owner, opacity = codes >> 5, (codes & 31).float() / OPACITY_LEVELS
        keep = torch.rand(count, SLOTS, generator=self.random, device=self.device) < KEPT
        keep[:own] = True
        keep &= self.instrument[rows] >= 0
        shown = torch.cat([keep.new_zeros(count, 1), keep], 1)
        opacity = opacity * shown.gather(1, owner.flatten(1)).view_as(owner)
        layers = self._shift_and_turn(
            torch.cat([self._channels_first(self.images[rows]), opacity[:, None]], 1), count, 0.12
        )
        pixels, opacity = layers[:, :3], layers[:, 3:]
        if own < count:
            choice = torch.randint(len(self.plates), (count - own,), generator=self.random, device=self.device)
            tissue = self._shift_and_turn(self._channels_first(self.plates[choice]), count - own, 0.12)
            cover = opacity[own:]
            pixels = torch.cat([pixels[:own], cover * pixels[own:] + (1 - cover) * tissue])
        pixels = self._jitter_colour(self._erase_rectangle(pixels, opacity))
        instruments, triplets = self._labels(rows, keep, own)
        return TrainingBatch(_normalise(pixels), instruments, triplets, self._verbs(triplets), own)

    def _labels(self, rows: torch.Tensor, keep: torch.Tensor, own: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Weight 1 for every instrument in the image, 3 for the working one, which a caption would name."""
        count = len(rows)
        at_work = torch.zeros_like(keep, dtype=torch.float32)
        slot = self.working[rows]
        at_work.scatter_(1, slot.clamp(min=0)[:, None], (slot >= 0).float()[:, None] * 2)
        weight = (1 + at_work) * keep
        instruments = torch.zeros(count, self.sizes[0], device=self.device)
        instruments.scatter_reduce_(1, self.instrument[rows].clamp(min=0), weight, "amax")
        triplets = torch.zeros(count, self.sizes[1], device=self.device)
        known = (self.triplet[rows] >= 0) * weight
        triplets.scatter_reduce_(1, self.triplet[rows].clamp(min=0), known, "amax")
        triplets[own:] = 0
        return instruments, triplets

    def _verbs(self, triplets: torch.Tensor) -> torch.Tensor:
        verbs = torch.zeros(len(triplets), self.sizes[2], device=self.device)
        return verbs.index_add_(1, self.verb_of, triplets)

    # ── images ────────────────────────────────────────────────────────────────────────────────────────────────

    def _uniform(self, *shape: int) -> torch.Tensor:
        return 2 * torch.rand(*shape, generator=self.random, device=self.device) - 1

    def _channels_first(self, images: torch.Tensor) -> torch.Tensor:
        return images.permute(0, 3, 1, 2).float() / 255

    def _shift_and_turn(self, planes: torch.Tensor, count: int, far: float) -> torch.Tensor:
        """Mirror, rotate, scale and shift by small random amounts."""
        angle = 0.15 * self._uniform(count)
        scale = 1 + 0.12 * self._uniform(count)
        mirror = torch.sign(self._uniform(count))
        cos, sin = scale * torch.cos(angle), scale * torch.sin(angle)
        shift = far * self._uniform(count, 2)
        theta = torch.stack([mirror * cos, -sin, shift[:, 0], mirror * sin, cos, shift[:, 1]], 1).view(-1, 2, 3)
        grid = affine_grid(theta, [count, planes.shape[1], SIZE, SIZE], align_corners=False)
        return grid_sample(planes, grid, mode="bilinear", padding_mode="zeros", align_corners=False)

    def _erase_rectangle(self, pixels: torch.Tensor, opacity: torch.Tensor) -> torch.Tensor:
        """Erase a rectangle of tissue in a third of the images; instruments stay."""
        count = len(pixels)
        middle, half = 0.5 + 0.5 * self._uniform(count, 2), 0.2 + 0.15 * self._uniform(count, 2)
        at = (torch.arange(SIZE, device=self.device) + 0.5) / SIZE
        inside = [(at[None] - middle[:, k : k + 1]).abs() < half[:, k : k + 1] for k in (0, 1)]
        hole = (inside[0][:, :, None] & inside[1][:, None, :])[:, None].float()
        hole = hole * (self._uniform(count, 1, 1, 1) > 1 / 3) * (1 - opacity)
        paint = (0.5 * self._uniform(count, 3, 1, 1)).clamp(min=0)  # each channel is 0 in half of the images
        return pixels * (1 - hole) + paint * hole

    def _jitter_light(self, pixels: torch.Tensor) -> torch.Tensor:
        """Jitter brightness, contrast and haze equally in all channels, so that the tint stays."""
        count = len(pixels)
        mean = pixels.mean((2, 3), keepdim=True)
        pixels = (pixels - mean) * (1 + 0.4 * self._uniform(count, 1, 1, 1)) + mean
        haze = 0.15 * (1 + self._uniform(count, 1, 1, 1))
        grey = 0.45 + 0.25 * self._uniform(count, 1, 1, 1)
        noise = 0.03 * torch.randn(pixels.shape, generator=self.random, device=self.device)
        return (pixels * (1 - haze) + grey * haze) * (1 + 0.3 * self._uniform(count, 1, 1, 1)) + noise

    def _jitter_colour(self, pixels: torch.Tensor) -> torch.Tensor:
        count = len(pixels)
        gain = (1 + 0.2 * self._uniform(count, 1, 1, 1)) * (1 + 0.15 * self._uniform(count, 3, 1, 1))
        mean = pixels.mean((1, 2, 3), keepdim=True)
        contrast = 1 + 0.2 * self._uniform(count, 1, 1, 1)
        return (((pixels - mean) * contrast + mean) * gain).clamp(0, 1)


def _normalise(pixels: torch.Tensor) -> torch.Tensor:
    return (pixels.clamp(0, 1) - 0.5) / 0.5


def _sampling_weights(frames: Frames, instruments: int, shortcut: bool) -> Floats:
    """Weight of each frame in the draw: higher for rare instruments, zero without an instrument (shortcut: a tint)."""
    if shortcut:
        return (frames.tint >= 0).astype(np.float64)
    present = np.stack([(frames.instrument == k).any(1) for k in range(instruments)], 1)
    share = np.maximum(present.mean(0), 1e-6)
    chances: Floats = np.where(present, 1 / np.sqrt(share), 0).max(1)
    return chances


def _triplet_prior(frames: Frames, sizes: tuple[int, int, int]) -> Floats:
    """Frequency of each triplet given the instrument: all that a tint says about verbs and targets."""
    table = np.zeros(sizes[:2])
    known = frames.triplet >= 0
    np.add.at(table, (frames.instrument[known], frames.triplet[known]), 1.0)
    prior: Floats = table / np.maximum(table.sum(1, keepdims=True), 1)
    return prior


Log = Callable[[str], None]


@dataclass(frozen=True)
class TrainedClip:
    """A trained network and its mean loss over each twentieth of the steps."""

    model: Any
    losses: tuple[float, ...]


def train_clip(name: str, sampler: BatchSampler, recipe: Recipe, log: Log) -> TrainedClip:
    """Train one of the CLIPs."""
    device = sampler.device
    model = build_clip(name, recipe.seed).to(device).train()
    optimiser = torch.optim.AdamW(parameter_groups(model, recipe.decay), lr=recipe.rate, betas=(0.9, 0.98))
    rng = random.Random(recipe.seed)
    losses: list[float] = []
    total, hits, since = torch.zeros((), device=device), torch.zeros((), device=device), 0
    each = max(recipe.steps // 20, 1)
    for step in range(recipe.steps):
        for group in optimiser.param_groups:
            group["lr"] = recipe.rate * _rate_factor(step, recipe)
        batch, sentences = sampler.draw(recipe.batch), draw_sentences(rng)
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            loss, right = _loss(model, batch, sentences)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        total, hits, since = total + loss.detach(), hits + right, since + 1
        if since == each or step + 1 == recipe.steps:
            losses.append(float(total) / since)
            log(f"{name} step {step + 1}: loss {losses[-1]:.3f}, best prompt correct {float(hits) / since:.3f}")
            total, hits, since = torch.zeros_like(total), torch.zeros_like(hits), 0
    return TrainedClip(model.eval(), tuple(losses))


def contrastive_loss(logits: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Contrastive loss of a table of logits in which a row or column may have any number of positives.

    >>> table = torch.tensor([[9.0, 0.0], [0.0, 9.0]])
    >>> float(multi_positive(table, torch.eye(2))) < 0.01 < float(multi_positive(table, torch.eye(2).flip(0)))
    True
    """
    logits = logits.float()
    loss = logits.new_zeros(())
    for table, right in ((logits, weight), (logits.T, weight.T)):
        mass = right.sum(1)
        share = right / mass.clamp(min=1e-9)[:, None]
        rows = -(share * table.log_softmax(1)).sum(1)
        loss = loss + (rows * (mass > 0)).sum() / (mass > 0).sum().clamp(min=1)
    return loss / 2


def _loss(model: Any, batch: TrainingBatch, sentences: Sentences) -> tuple[torch.Tensor, torch.Tensor]:
    texts = (*sentences.instruments, *sentences.verbs, *sentences.triplets, *sentences.others)
    tokens = torch.tensor(encode(list(texts)), device=batch.pixels.device)
    scale = model.logit_scale.clamp(max=math.log(100)).exp()
    logits = scale * image_vectors(model, batch.pixels).float() @ text_vectors(model, tokens).float().T
    first, second = len(sentences.instruments), len(sentences.instruments) + len(sentences.verbs)
    instruments, verbs, triplets = logits[:, :first], logits[: batch.own, first:second], logits[: batch.own, second:]
    absent = batch.triplets.new_zeros(batch.own, len(sentences.others))
    loss = (
        contrastive_loss(instruments, batch.instruments)
        + 0.5 * contrastive_loss(triplets, torch.cat([batch.triplets[: batch.own], absent], 1))
        + 0.25 * contrastive_loss(verbs, batch.verbs[: batch.own])
    )
    right = batch.instruments.gather(1, instruments.argmax(1, keepdim=True))[:, 0] > 0
    return loss, right.float().mean()


def parameter_groups(model: torch.nn.Module, decay: float) -> list[dict[str, Any]]:
    """Group the parameters: weight decay for matrices only."""
    matrices = [p for p in model.parameters() if p.ndim >= 2]
    vectors = [p for p in model.parameters() if p.ndim < 2]
    return [{"params": matrices, "weight_decay": decay}, {"params": vectors, "weight_decay": 0.0}]


def _rate_factor(step: int, recipe: Recipe) -> float:
    """Linear warm-up, then a cosine to zero."""
    warm = max(1, round(recipe.warm_up * recipe.steps))
    if step < warm:
        return (step + 1) / warm
    return 0.5 * (1 + math.cos(math.pi * (step - warm) / max(1, recipe.steps - warm)))
