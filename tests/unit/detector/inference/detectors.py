"""Detectors for tests: one whose boxes are known beforehand, and a small TDnet trained on coloured rectangles.

Most tests use the embedded TDnet-p and frames of an operation that it was not taught; where those weights are too large
for what is asked, the rectangles do.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import cv2
import numpy as np
import torch
from torch import nn

from surgeval.arrays import Floats, Image
from surgeval.detector import Classes, Raw, build_tdnet, save_detector
from surgeval.detector.assign import BatchTruth
from surgeval.detector.geometry import Fit
from surgeval.detector.losses import LossSettings, teacher_loss
from surgeval.phantom import Footage, make_procedure
from surgeval.vocab import LabelSpace, load_labels

SPACE = load_labels("phantom")


@dataclass
class FindsWhite:
    """Finds the white rectangle of a picture, if there is one, and calls it by the first class; nothing is learnt."""

    space: LabelSpace = SPACE
    image_size: int = 64
    fill: int = 114
    name: str = "white"
    device = torch.device("cpu")
    calls: int = 0

    @property
    def classes(self) -> Classes:
        return Classes.of(self.space)

    def raw(self, images: torch.Tensor) -> Raw:
        self.calls += 1
        boxes = torch.zeros(len(images), 2, 4)
        counts = self.classes.counts
        probabilities = {head: torch.zeros(len(images), 2, count) for head, count in counts.items()}
        for row, white in enumerate((images > 200).all(1)):
            ys, xs = white.nonzero(as_tuple=True)
            if len(ys):
                boxes[row, 0] = torch.stack([xs.min(), ys.min(), xs.max() + 1, ys.max() + 1]).float()
                for values in probabilities.values():
                    values[row, 0, 0] = 0.75
        return Raw(boxes, probabilities)


@cache
def _footage() -> Footage:
    return Footage(make_procedure(5, 60.0), "B")


@cache
def operation(second: int, width: int = 448, height: int = 256) -> Image:
    """A frame of a phantom operation; its instruments are what the embedded detector looks for."""
    pixels = _footage().shoot(25 * second).image
    return pixels if pixels.shape == (height, width, 3) else cv2.resize(pixels, (width, height))


TINY = LabelSpace("tiny", ("grasper", "hook"), ("hold", "cut"), ("duct", "liver"), ((0, 0, 0), (0, 0, 1), (1, 1, 1)))
_COLOURS = ((230, 40, 40), (40, 230, 40), (40, 40, 230))  # of the triplets


def scene(seed: int, width: int = 96, height: int = 64) -> tuple[Image, Floats, list[int]]:
    """A picture with one or two coloured rectangles, their corners and the triplets that the colours mean."""
    chance = np.random.default_rng(seed)
    pixels = chance.integers(90, 110, (height, width, 3), dtype=np.uint8)
    boxes, kinds = [], []
    for half in chance.permutation(2)[: chance.integers(1, 3)]:
        x, y = half * width // 2 + chance.integers(0, width // 8), chance.integers(0, height // 3)
        corners = x, y, x + chance.integers(width // 5, width // 3), y + chance.integers(height // 3, height // 2)
        kinds.append(int(chance.integers(0, 3)))
        pixels[corners[1] : corners[3], corners[0] : corners[2]] = _COLOURS[kinds[-1]]
        boxes.append(corners)
    return pixels, np.array(boxes, dtype=np.float64), kinds


def train(path: Path, steps: int = 48, side: int = 64) -> None:
    """A TDnet-p that has learnt a little about such pictures."""
    torch.manual_seed(0)
    classes = Classes.of(TINY)
    model = build_tdnet("p", classes).train()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = 0.1  # so few steps; the usual 0.03 would keep the first guess
    optimiser = torch.optim.AdamW(model.parameters(), lr=4e-3)
    for step in range(steps):
        images, truth = _batch(range(8 * (step % 4), 8 * (step % 4) + 8), classes, side)
        loss = teacher_loss(model(images), truth, classes.main, LossSettings()).total
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        optimiser.step()
    save_detector(path, model.eval(), classes, size="p", image_size=side)


def _batch(seeds: range, classes: Classes, side: int) -> tuple[torch.Tensor, BatchTruth]:
    boxes, mask = torch.zeros(len(seeds), 2, 4), torch.zeros(len(seeds), 2, dtype=torch.bool)
    labels = {head: torch.zeros(len(seeds), 2, count, dtype=torch.bool) for head, count in classes.counts.items()}
    images = []
    for row, seed in enumerate(seeds):
        pixels, corners, kinds = scene(seed)
        fit = Fit.of(pixels.shape[0], pixels.shape[1], side)
        images.append(fit.image(pixels, 114))
        for place, (box, kind) in enumerate(zip(fit.forward(corners), kinds, strict=True)):
            boxes[row, place], mask[row, place] = torch.from_numpy(box).float(), True
            for head, number in zip(("ivt", "i", "v", "t"), (kind, *TINY.triplets[kind]), strict=True):
                labels[head][row, place, number] = True
    pictures = torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).float() / 255
    return pictures, BatchTruth(boxes, labels, mask)
