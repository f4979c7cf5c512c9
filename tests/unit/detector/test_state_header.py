"""A header whose length happens to begin like a pickle or an archive is a header all the same."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from surgeval.detector import load_state, save_state


@pytest.mark.parametrize("start", [b"\x80", b"PK"])
def test_any_length_of_a_header_can_be_read(start: bytes, tmp_path: Path) -> None:
    path, wanted = tmp_path / "state.safetensors", int.from_bytes(start, "little")
    save_state(path, {"x": torch.ones(2)}, {"pad": ""})
    short = int.from_bytes(path.read_bytes()[:8], "little")
    size = 1 << (8 * len(start))
    save_state(path, {"x": torch.ones(2)}, {"pad": "x" * ((wanted - short) % size)})
    assert path.read_bytes().startswith(start)
    tensors, metadata = load_state(path)
    assert tensors["x"].tolist() == [1.0, 1.0] and set(metadata) == {"pad"}
