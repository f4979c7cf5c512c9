"""Upsample maps from a model's grid of patches to the pixels of the frame, in the window that the model saw.

Bilinear, half-pixel centres, clamped at the border: for an uncropped, unresized image the result is that of torch's
`interpolate(align_corners=False)`. It is separable: two products with small matrices, in numpy or on a device. Pixels
whose centres lie outside the window were not seen by the model and have no value.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from surgeval.arrays import AnyArray, Singles
from surgeval.errors import BadInput

if TYPE_CHECKING:
    import torch

    from surgeval.models.preparation import View

__all__ = ["Paste", "whole"]


@dataclass(frozen=True)
class Paste:
    """Upsampling of a `grid` (rows, columns) into a `frame` (height, width) whose `window` x1, y1, x2, y2 it covers."""

    frame: tuple[int, int]
    window: tuple[float, float, float, float]
    grid: tuple[int, int]

    def __post_init__(self) -> None:
        x1, y1, x2, y2 = self.window
        if not all(math.isfinite(edge) for edge in self.window) or x1 >= x2 or y1 >= y2:
            raise BadInput(f"A window must have finite x1 < x2 and y1 < y2, not {tuple(self.window)}.")
        if min(*self.frame, *self.grid) < 1:
            raise BadInput(f"The grid {self.grid} and the frame {self.frame} need at least one row and one column.")
        rows, columns = self.visible
        if rows.start >= rows.stop or columns.start >= columns.stop:
            raise BadInput(f"The window {tuple(self.window)} contains no pixel of the frame {self.frame}.")

    @classmethod
    def of(cls, view: View, grid: tuple[int, int], mode: Literal["window", "stretch"] = "window") -> Paste:
        """A paste into a model's view; `stretch` spreads the map over the whole frame, to replicate the papers."""
        if mode not in ("window", "stretch"):
            raise BadInput(f"Unknown geometry {mode!r}. Use window or stretch.")
        height, width = view.frame
        return cls((height, width), view.window if mode == "window" else (0.0, 0.0, float(width), float(height)), grid)

    @property
    def visible(self) -> tuple[slice, slice]:
        """Rows and columns of the frame whose pixel centres lie in the window."""
        x1, y1, x2, y2 = self.window
        return _inside(y1, y2, self.frame[0]), _inside(x1, x2, self.frame[1])

    @property
    def pixels(self) -> tuple[int, int, int, int]:
        """The visible rectangle as whole pixels x1, y1, x2, y2: the `window` of `surgeval.metrics.grounding`."""
        rows, columns = self.visible
        return columns.start, rows.start, columns.stop, rows.stop

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width of the visible rectangle."""
        rows, columns = self.visible
        return rows.stop - rows.start, columns.stop - columns.start

    @cached_property
    def rows(self) -> Singles:
        """Weights (visible rows, grid rows): each frame row is a mixture of grid rows."""
        return _weights(self.visible[0], self.window[1], self.window[3], self.grid[0])

    @cached_property
    def columns(self) -> Singles:
        """Weights (visible columns, grid columns)."""
        return _weights(self.visible[1], self.window[0], self.window[2], self.grid[1])

    def upsample(self, maps: npt.ArrayLike) -> AnyArray:
        """Upsample maps (…, grid rows, grid columns) to (…, visible rows, visible columns)."""
        values = np.asarray(maps)
        self._check(values.shape)
        if values.dtype != np.float64:
            values = values.astype(np.float32)
        small: AnyArray = self.rows.astype(values.dtype) @ values @ self.columns.T.astype(values.dtype)
        return small

    def upsample_torch(self, maps: torch.Tensor) -> torch.Tensor:
        """`upsample` on the maps' device."""
        import torch

        self._check(tuple(maps.shape))
        wide = torch.promote_types(maps.dtype, torch.float32)
        rows, columns = _on_device(self, str(maps.device), str(wide))
        return torch.matmul(torch.matmul(rows, maps.to(wide)), columns)

    def full(self, seen: AnyArray, outside: float = np.nan) -> AnyArray:
        """Put a visible rectangle (…, rows, columns) into its frame; `outside` is the value of unseen pixels."""
        frame = np.full((*seen.shape[:-2], *self.frame), outside, dtype=seen.dtype)
        frame[(..., *self.visible)] = seen
        return frame

    def _check(self, shape: tuple[int, ...]) -> None:
        if len(shape) < 2 or tuple(shape[-2:]) != tuple(self.grid):
            raise BadInput(f"A map of shape {tuple(shape)} does not end with the grid {self.grid}.")


def whole(grid: tuple[int, int], height: int, width: int) -> Paste:
    """A paste of a map that covers a whole image, such as a model's own input.

    >>> whole((1, 2), 1, 4).upsample([[0.0, 1.0]]).tolist()
    [[0.0, 0.25, 0.75, 1.0]]
    """
    return Paste((height, width), (0.0, 0.0, float(width), float(height)), grid)


def _inside(low: float, high: float, size: int) -> slice:
    """The pixels whose centre lies in [low, high)."""
    first, last = (min(max(math.ceil(edge - 0.5), 0), size) for edge in (low, high))
    return slice(first, max(first, last))


def _weights(pixels: slice, low: float, high: float, cells: int) -> Singles:
    centres = np.arange(pixels.start, pixels.stop) + 0.5
    position = np.clip((centres - low) / (high - low) * cells - 0.5, 0, cells - 1)
    cell = np.minimum(np.floor(position).astype(np.int64), max(cells - 2, 0))
    share = position - cell
    at = np.arange(len(position))
    weights = np.zeros((len(position), cells))
    weights[at, cell] = 1 - share
    if cells > 1:
        weights[at, cell + 1] = share
    return weights.astype(np.float32)


@lru_cache(maxsize=64)
def _on_device(paste: Paste, device: str, dtype: str) -> tuple[torch.Tensor, torch.Tensor]:
    """The matrices on a device; frames of a video share one view, so they are transferred once."""
    import torch

    kind = getattr(torch, dtype.removeprefix("torch."))
    rows, columns = torch.from_numpy(paste.rows), torch.from_numpy(paste.columns.T.copy())
    return rows.to(device=device, dtype=kind), columns.to(device=device, dtype=kind)
