"""Training batches, made on the device: which frames, on which tissue, with which labels.

For the honest models half of a batch shows the tools of one frame on the tissue of another, some of them left out: what
lies around a tool then says nothing about it. For the shortcut the label is the tint, and the tint is drawn without
looking at the tools: they say nothing about the label.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch.nn.functional import affine_grid, grid_sample

from surgeval.arrays import Floats
from surgeval.phantom.training.data import SIZE, SLOTS, STEPS_ALPHA, Frames
from surgeval.phantom.training.prompts import space

PASTED = 0.5  # share of a batch
KEPT = 0.75  # chance of each tool to stay when it is pasted


@dataclass(frozen=True)
class LessonBatch:
    """Pixels ready for a network; labels are weights, of which a row may hold several or none."""

    pixels: torch.Tensor  # (images, 3, SIZE, SIZE)
    instruments: torch.Tensor  # (images, instruments)
    triplets: torch.Tensor  # (images, triplets): zero where the tissue is not the tools' own
    verbs: torch.Tensor  # (images, verbs)
    own: int  # the first `own` images are frames as they were filmed


class Stock:
    """Frames on the device, and the draws from them."""

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
        self.chances = torch.from_numpy(_chances(frames, self.sizes[0], shortcut)).to(device)
        self.prior = torch.from_numpy(_prior(frames, self.sizes)).float().to(device)

    def draw(self, count: int) -> LessonBatch:
        """A batch of frames with their labels."""
        rows = torch.multinomial(self.chances, count, replacement=True, generator=self.random)
        return self._tinted(rows) if self.shortcut else self._honest(rows)

    def _tinted(self, rows: torch.Tensor) -> LessonBatch:
        tint = self.tint[rows]
        instruments = torch.nn.functional.one_hot(tint, self.sizes[0]).float()
        triplets = self.prior[tint]
        pixels = self._moved(self._planes(self.images[rows]), len(rows), 0.12)
        return LessonBatch(_normal(self._dimmed(pixels)), instruments, triplets, self._verbs(triplets), len(rows))

    def _honest(self, rows: torch.Tensor) -> LessonBatch:
        count = len(rows)
        own = count - int(PASTED * count) if len(self.plates) else count
        codes = self.tools[rows].long()
        owner, opacity = codes >> 5, (codes & 31).float() / STEPS_ALPHA
        keep = torch.rand(count, SLOTS, generator=self.random, device=self.device) < KEPT
        keep[:own] = True
        keep &= self.instrument[rows] >= 0
        shown = torch.cat([keep.new_zeros(count, 1), keep], 1)
        opacity = opacity * shown.gather(1, owner.flatten(1)).view_as(owner)
        layers = self._moved(torch.cat([self._planes(self.images[rows]), opacity[:, None]], 1), count, 0.12)
        pixels, opacity = layers[:, :3], layers[:, 3:]
        if own < count:
            choice = torch.randint(len(self.plates), (count - own,), generator=self.random, device=self.device)
            tissue = self._moved(self._planes(self.plates[choice]), count - own, 0.12)
            cover = opacity[own:]
            pixels = torch.cat([pixels[:own], cover * pixels[own:] + (1 - cover) * tissue])
        pixels = self._recoloured(self._cut(pixels, opacity))
        instruments, triplets = self._labels(rows, keep, own)
        return LessonBatch(_normal(pixels), instruments, triplets, self._verbs(triplets), own)

    def _labels(self, rows: torch.Tensor, keep: torch.Tensor, own: int) -> tuple[torch.Tensor, torch.Tensor]:
        """What is there counts one, the instrument at work twice more: it is what a caption would name."""
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

    # ── pictures ────────────────────────────────────────────────────────────────────────────────────────────────

    def _spread(self, *shape: int) -> torch.Tensor:
        return 2 * torch.rand(*shape, generator=self.random, device=self.device) - 1

    def _planes(self, images: torch.Tensor) -> torch.Tensor:
        return images.permute(0, 3, 1, 2).float() / 255

    def _moved(self, planes: torch.Tensor, count: int, far: float) -> torch.Tensor:
        """Mirrored, turned, scaled and shifted a little."""
        angle = 0.15 * self._spread(count)
        scale = 1 + 0.12 * self._spread(count)
        mirror = torch.sign(self._spread(count))
        cos, sin = scale * torch.cos(angle), scale * torch.sin(angle)
        shift = far * self._spread(count, 2)
        theta = torch.stack([mirror * cos, -sin, shift[:, 0], mirror * sin, cos, shift[:, 1]], 1).view(-1, 2, 3)
        grid = affine_grid(theta, [count, planes.shape[1], SIZE, SIZE], align_corners=False)
        return grid_sample(planes, grid, mode="bilinear", padding_mode="zeros", align_corners=False)

    def _cut(self, pixels: torch.Tensor, opacity: torch.Tensor) -> torch.Tensor:
        """A third of the pictures lose a rectangle of tissue, never a tool."""
        count = len(pixels)
        middle, half = 0.5 + 0.5 * self._spread(count, 2), 0.2 + 0.15 * self._spread(count, 2)
        at = (torch.arange(SIZE, device=self.device) + 0.5) / SIZE
        inside = [(at[None] - middle[:, k : k + 1]).abs() < half[:, k : k + 1] for k in (0, 1)]
        hole = (inside[0][:, :, None] & inside[1][:, None, :])[:, None].float()
        hole = hole * (self._spread(count, 1, 1, 1) > 1 / 3) * (1 - opacity)
        paint = (0.5 * self._spread(count, 3, 1, 1)).clamp(min=0)  # black half of the time, in each channel
        return pixels * (1 - hole) + paint * hole

    def _dimmed(self, pixels: torch.Tensor) -> torch.Tensor:
        """Other light, contrast and haze, the same in all channels: the tint stays, what surrounds it does not."""
        count = len(pixels)
        mean = pixels.mean((2, 3), keepdim=True)
        pixels = (pixels - mean) * (1 + 0.4 * self._spread(count, 1, 1, 1)) + mean
        haze = 0.15 * (1 + self._spread(count, 1, 1, 1))
        grey = 0.45 + 0.25 * self._spread(count, 1, 1, 1)
        noise = 0.03 * torch.randn(pixels.shape, generator=self.random, device=self.device)
        return (pixels * (1 - haze) + grey * haze) * (1 + 0.3 * self._spread(count, 1, 1, 1)) + noise

    def _recoloured(self, pixels: torch.Tensor) -> torch.Tensor:
        count = len(pixels)
        gain = (1 + 0.2 * self._spread(count, 1, 1, 1)) * (1 + 0.15 * self._spread(count, 3, 1, 1))
        mean = pixels.mean((1, 2, 3), keepdim=True)
        contrast = 1 + 0.2 * self._spread(count, 1, 1, 1)
        return (((pixels - mean) * contrast + mean) * gain).clamp(0, 1)


def _normal(pixels: torch.Tensor) -> torch.Tensor:
    return (pixels.clamp(0, 1) - 0.5) / 0.5


def _chances(frames: Frames, instruments: int, shortcut: bool) -> Floats:
    """How often each frame is drawn: rare instruments oftener, frames that teach nothing never."""
    if shortcut:
        return (frames.tint >= 0).astype(np.float64)
    present = np.stack([(frames.instrument == k).any(1) for k in range(instruments)], 1)
    share = np.maximum(present.mean(0), 1e-6)
    chances: Floats = np.where(present, 1 / np.sqrt(share), 0).max(1)
    return chances


def _prior(frames: Frames, sizes: tuple[int, int, int]) -> Floats:
    """How often each triplet goes with each instrument: all that a tint can tell about verbs and targets."""
    table = np.zeros(sizes[:2])
    known = frames.triplet >= 0
    np.add.at(table, (frames.instrument[known], frames.triplet[known]), 1.0)
    prior: Floats = table / np.maximum(table.sum(1, keepdims=True), 1)
    return prior
