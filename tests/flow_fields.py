"""Optical flow in tests: files as other tools write them, and whether a pixel comes back to where it started."""

from __future__ import annotations

import struct
from pathlib import Path

import cv2
import numpy as np

from surgeval.arrays import Singles
from surgeval.explain.flow import FlowPair


def write_flo(path: Path, flow: Singles) -> None:
    """Write a flow (H, W, 2) as Middlebury's `.flo`."""
    height, width = flow.shape[:2]
    path.write_bytes(struct.pack("<fii", 202021.25, width, height) + np.ascontiguousarray(flow, dtype="<f4").tobytes())


def forward_backward_error(pair: FlowPair) -> Singles:
    """How far (px) a pixel lands from itself when it goes forward and back; NaN where it leaves the frame."""
    assert pair.backward is not None
    height, width = pair.forward.shape[:2]
    x = np.arange(width, dtype=np.float32) + pair.forward[..., 0]
    y = np.arange(height, dtype=np.float32)[:, None] + pair.forward[..., 1]
    back = cv2.remap(pair.backward, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    error: Singles = np.linalg.norm(pair.forward + back, axis=2).astype(np.float32)
    error[(x < 0) | (x > width - 1) | (y < 0) | (y > height - 1)] = np.nan
    return error
