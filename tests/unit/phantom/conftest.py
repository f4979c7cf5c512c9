"""The fixed edition, sketched."""

from __future__ import annotations

import pytest
from tests.unit.phantom.sketches import Sketched, sketch_videos

from surgeval.phantom import EDITIONS


@pytest.fixture(scope="session")
def sketched() -> tuple[Sketched, ...]:
    """All videos of phantom-v1."""
    fixed = EDITIONS["phantom-v1"]
    return sketch_videos(fixed.seed, fixed.videos, fixed.seconds)
