"""Batches in pinned memory are the same batches."""

from __future__ import annotations

import pytest
import torch

from surgeval.detector.data import Augment, batches
from tests.unit.detector.data.small_sets import mixed_set

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="found no CUDA device, expected one")


def test_pinned_batches_are_pinned_and_the_same() -> None:
    data = mixed_set(size=64)
    plain = list(batches(data, batch=5, augment=Augment(), workers=2))
    pinned = list(batches(data, batch=5, augment=Augment(), workers=2, pin=True))
    for one, other in zip(plain, pinned, strict=True):
        assert other.images.is_pinned() and other.truth.boxes.is_pinned() and other.truth.mask.is_pinned()
        assert torch.equal(one.images, other.images.cuda(non_blocking=True).cpu())
        assert torch.equal(one.truth.boxes, other.truth.to("cuda", non_blocking=True).boxes.cpu())
