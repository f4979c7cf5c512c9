"""RAFT (Teed & Deng 2020) through torchvision, with weights from a file of the user's.

Nothing is downloaded: `weights` is a state dict of torchvision's `raft_large` or `raft_small`, read with
`weights_only=True`; which of the two it is, the file itself tells.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from surgeval.arrays import Image, Singles
from surgeval.errors import BadInput, DataError
from surgeval.explain.flow import FlowPair
from surgeval.explain.flow.estimate import check_pair
from surgeval.files import file_digest

_FIRST = "feature_encoder.convnormrelu.0.weight"
_MODELS = {64: "raft_large", 32: "raft_small"}  # channels of the first convolution tell them apart
_EXPECTED = "a state dict of torchvision's raft_large or raft_small"
_LEAST = 128  # pixels: RAFT's correlation pyramid needs 16 cells of 8 pixels


class RaftFlow:
    """RAFT on CPU or GPU; both directions go through the network as one batch."""

    name = "raft"

    def __init__(self, weights: Path, device: str = "cpu") -> None:
        try:
            import torchvision.models.optical_flow  # noqa: F401 (is it there?)
        except ImportError:
            raise BadInput(
                "flow method raft: found no torchvision, expected it installed (pip install 'surgeval[flow]')"
            ) from None
        except RuntimeError as error:  # its operators were compiled for another torch
            why = str(error).strip().splitlines()[0]
            raise BadInput(
                f"flow method raft: found a torchvision that does not fit this torch ({why}), expected a matching pair"
            ) from None
        self.weights, self.device = weights, device
        self._state = _state_dict(weights)
        self.model = _MODELS[int(self._state[_FIRST].shape[0])]

    @cached_property
    def _network(self) -> Any:
        import torchvision.models.optical_flow as networks

        network = getattr(networks, self.model)(weights=None)
        try:
            network.load_state_dict(self._state)
        except RuntimeError as error:
            reasons = str(error).strip().splitlines()[1:2] or ["other names or shapes"]
            raise DataError(self.weights, f"found {reasons[0].strip()}, expected {_EXPECTED}") from None
        return network.eval().to(self.device)

    def pair(self, a: Image, b: Image, *, key: str = "", backward: bool = True) -> FlowPair:
        """Flow a → b, and b → a where wanted."""
        import torch

        check_pair(a, b)
        height, width = a.shape[:2]
        if min(height, width) < _LEAST:
            raise BadInput(f"RAFT: found frames of {width}×{height}, expected sides of at least {_LEAST} pixels")
        first, second = _padded(a), _padded(b)
        starts, ends = ([first, second], [second, first]) if backward else ([first], [second])
        with torch.inference_mode():
            before, after = (torch.from_numpy(np.stack(x)).to(self.device) for x in (starts, ends))
            fields: Singles = self._network(before, after)[-1].float().cpu().numpy()
        flows = np.ascontiguousarray(np.moveaxis(fields[:, :, :height, :width], 1, -1), dtype=np.float32)
        return FlowPair(flows[0], flows[1] if backward else None)

    def record(self) -> Mapping[str, object]:
        """Name, network, and the hash of its weights."""
        return {"flow": self.name, "network": self.model, "weights_sha256": file_digest(self.weights)}


def _padded(image: Image) -> Singles:
    """(3, h, w) in −1 … 1, sides multiples of 8: the last row and column are repeated."""
    colour = image if image.ndim == 3 else np.repeat(image[..., None], 3, axis=2)
    down, right = -image.shape[0] % 8, -image.shape[1] % 8
    full = np.pad(colour, ((0, down), (0, right), (0, 0)), mode="edge")
    return np.ascontiguousarray(np.moveaxis(full, -1, 0), dtype=np.float32) / np.float32(127.5) - np.float32(1)


def _state_dict(path: Path) -> dict[str, Any]:
    from surgeval.models.weights import read_torch

    state = read_torch(path)
    first = state.get(_FIRST)
    if first is None or not first.ndim or int(first.shape[0]) not in _MODELS:
        raise DataError(path, f"found another model, expected {_EXPECTED}", field=_FIRST)
    return state
