"""Batches in pinned memory are the same batches."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from surgeval.detector import Classes
from surgeval.detector.data import Augment, TrainingSet, batches
from surgeval.records import Box, Frame, Instance, Triplet
from surgeval.vocab import load_labels

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="found no CUDA device, expected one")


def test_pinned_batches_are_pinned_and_the_same() -> None:
    frames = [Frame("V", str(k), k, None, None, 96, 64, (Instance(Triplet(k % 7), Box(8 + k, 9, 30, 20)),))
              for k in range(12)]  # fmt: skip
    noise = np.random.default_rng(0).integers(0, 256, (12, 64, 96, 3), dtype=np.uint8)
    data = TrainingSet.of(
        frames, Classes.of(load_labels("cholec80")), image_size=64, read=lambda frame: noise[frame.index]
    )
    plain = list(batches(data, batch=5, augment=Augment(), workers=2))
    pinned = list(batches(data, batch=5, augment=Augment(), workers=2, pin=True))
    for one, other in zip(plain, pinned, strict=True):
        assert other.images.is_pinned() and other.truth.boxes.is_pinned() and other.truth.mask.is_pinned()
        assert torch.equal(one.images, other.images.cuda(non_blocking=True).cpu())
        assert torch.equal(one.truth.boxes, other.truth.to("cuda", non_blocking=True).boxes.cpu())
