"""The fixed edition, sketched; and one thread for small networks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.unit.phantom.sketches import Sketched, sketch_videos

from surgeval.phantom import EDITIONS


@pytest.fixture(scope="session")
def sketched() -> tuple[Sketched, ...]:
    """All videos of phantom-v1."""
    fixed = EDITIONS["phantom-v1"]
    return sketch_videos(fixed.seed, fixed.videos, fixed.seconds)


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Networks this small cost ten times the work where several threads wait for each other."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
