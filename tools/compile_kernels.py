"""Compile the kernels of `surgeval.metrics` into numba's cache: the first scoring, and every test process, finds them.

Scores a few frames, so that every kernel meets the types it is called with.
"""

from __future__ import annotations

import numpy as np

import surgeval
from surgeval.datasets import MemoryDataset
from surgeval.phantom import simulate_detector
from surgeval.protocols.triplets import score_triplets
from surgeval.records import Box, Frame, Instance, Triplet
from surgeval.vocab import LabelSpace

SPACE = LabelSpace("toy", ("grasper", "hook"), ("grasp",), ("liver",), ((0, 0, 0), (1, 0, 0)))


def main() -> None:
    """Detection and recognition, once each."""
    frames = [
        Frame(f"v{k % 3}", f"{k:06d}", k, None, None, 100, 100, (Instance(Triplet(k % 2, 0, 0), Box(9, 9, 50, 50)),))
        for k in range(12)
    ]
    dataset = MemoryDataset(SPACE, frames)
    score_triplets(dataset, simulate_detector(dataset, "poor"), resamples=2)  # its last table is by every convention
    dice = np.random.default_rng(0)
    surgeval.score_recognition(dice.random((12, 3)) < 0.4, dice.random((12, 3)), ["v0", "v1"] * 6, resamples=2)


if __name__ == "__main__":
    main()
