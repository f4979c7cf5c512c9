"""One prediction to look at: its picture and its numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Item"]

Image = npt.NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Item:
    """One prediction to look at."""

    picture: Image  # the frame with its boxes, beside the same frame with map, region and motion
    video: str
    frame: str
    predicted: str
    present: tuple[str, ...]
    score: float
    ac: float | None
    aa: float | None
    chance: float | None
    right: bool
    grounded: bool | None
    flags: str

    @property
    def kind(self) -> str:
        """The cell of the right × grounded table."""
        state = "no map" if self.grounded is None else "grounded" if self.grounded else "ungrounded"
        return f"{'right' if self.right else 'wrong'} · {state}"
