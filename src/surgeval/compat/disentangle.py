"""`Disentangle` with the calls of ivtmetrics 0.1.5: labels or scores of a component from those of CholecT50's triplets.

The package lists `vt` among its components and has no column for it, so asking for it is an IndexError there and an
error in words here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from surgeval.arrays import AnyArray, Ints
from surgeval.errors import BadInput
from surgeval.metrics import component_max
from surgeval.vocab import load_labels

__all__ = ["Disentangle"]

COMPONENTS = ("ivt", "i", "v", "t", "iv", "it")


class Disentangle:
    """Components of triplet labels or scores.

    >>> scores = np.zeros((1, 100)); scores[0, [17, 60]] = 0.9, 0.4
    >>> Disentangle().extract(scores, "i").tolist()
    [[0.9, 0.0, 0.4, 0.0, 0.0, 0.0]]
    """

    def __init__(self, url: str = "maps.txt") -> None:
        # ivtmetrics takes the path of a file that it never reads.
        self.bank = self.map_file()

    def map_file(self) -> Ints:
        """A row per triplet: its id, then those of instrument, verb, target, and of the pairs with the instrument."""
        space = load_labels("cholect50")
        verbs, targets = len(space.verbs), len(space.targets)
        rows = [(k, i, v, t, i * verbs + v, i * targets + t) for k, (i, v, t) in enumerate(space.triplets)]
        return np.array(rows, dtype=np.int64)

    def decompose(self, inputs: npt.ArrayLike, component: str) -> list[Any]:
        """The component's values of one frame, from its 100 triplet values."""
        return list(self.extract(np.asarray(inputs)[None], component)[0])

    def extract(self, inputs: npt.ArrayLike, component: str = "i") -> AnyArray:
        """The component's values of frames × 100 triplet values: of each class the highest."""
        values = np.asarray(inputs)
        if component not in COMPONENTS:
            raise BadInput(f"component {component!r}: expected one of {', '.join(COMPONENTS)}")
        if values.ndim != 2 or values.shape[1] != len(self.bank):
            raise BadInput(f"extract: found {values.shape}, expected frames × {len(self.bank)} triplets")
        return values if component == "ivt" else component_max(values, component, load_labels("cholect50"))
