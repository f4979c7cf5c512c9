"""Two things done to tensors all over the detector: widening half precision, and taking rows of every image."""

from __future__ import annotations

import torch

__all__ = ["gather_rows", "wide"]


def wide(values: torch.Tensor) -> torch.Tensor:
    """Half-precision and whole numbers as float32; float32 and float64 as they are.

    >>> wide(torch.zeros(1, dtype=torch.bfloat16)).dtype, wide(torch.zeros(1, dtype=torch.float64)).dtype
    (torch.float32, torch.float64)
    """
    return values if values.dtype in (torch.float32, torch.float64) else values.float()


def gather_rows(table: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Rows (B, P) of a table (B, N, C): (B, P, C).

    >>> gather_rows(torch.tensor([[[1, 2], [3, 4]]]), torch.tensor([[1, 1, 0]])).tolist()
    [[[3, 4], [3, 4], [1, 2]]]
    """
    return table.gather(1, rows[..., None].expand(-1, -1, table.shape[-1]))
