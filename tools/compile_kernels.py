"""Compile the kernels into numba's cache: the first command that needs them, and every test process, finds them.

Without an argument those of `surgeval.metrics`: it scores a few frames, so that every kernel meets the types it is
called with. With `causal` those of `surgeval.explain.cleann`, which only the explanation of replies needs: it learns
graphs.
"""

from __future__ import annotations

import sys

import numpy as np

import surgeval
from surgeval.datasets import MemoryDataset
from surgeval.phantom import simulate_detector
from surgeval.protocols.triplets import score_triplets
from surgeval.records import Box, Frame, Instance, Triplet
from surgeval.vocab import LabelSpace

SPACE = LabelSpace("toy", ("grasper", "hook"), ("grasp",), ("liver",), ((0, 0, 0), (1, 0, 0)))


def scoring() -> None:
    """Detection and recognition, once each."""
    frames = [
        Frame(f"v{k % 3}", f"{k:06d}", k, None, None, 100, 100, (Instance(Triplet(k % 2, 0, 0), Box(9, 9, 50, 50)),))
        for k in range(12)
    ]
    dataset = MemoryDataset(SPACE, frames)
    # A named convention is scored in its reference's order of equal scores, by every convention, and free of order.
    score_triplets(simulate_detector(dataset, "poor"), dataset, convention="coco")
    dice = np.random.default_rng(0)
    surgeval.score_recognition(dice.random((12, 3)), dice.random((12, 3)) < 0.4, ["v0", "v1"] * 6)


def causal() -> None:
    """Both learners of causal graphs, with and without undirected edges."""
    from surgeval.explain.cleann import correlation, explain_node, learn_graph

    weights = np.tril(np.random.default_rng(0).gamma(0.5, size=(12, 12)) + 1e-9)
    found = correlation(weights / weights.sum(1, keepdims=True))
    for selection in (False, True):
        explain_node(learn_graph(found, range(12), alpha=0.01, selection_bias=selection), 11, radius=3)
        learn_graph(found, range(12), alpha=0.01, learner="icd", selection_bias=selection)


if __name__ == "__main__":
    causal() if sys.argv[1:] == ["causal"] else scoring()
