from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import av
import numpy as np
import pytest
import torch
from PIL import Image as Picture

from surgeval.arrays import Image
from surgeval.models import EMBEDDED

torch.set_num_threads(1)
Film: TypeAlias = Callable[..., Path]


def picture(box: tuple[int, int, int, int] | None, width: int = 96, height: int = 64) -> Image:
    """Dark, with a white rectangle at these corners."""
    pixels = np.full((height, width, 3), 20, np.uint8)
    if box is not None:
        pixels[box[1] : box[3], box[0] : box[2]] = 255
    return pixels


@pytest.fixture(scope="session")
def trained() -> Path:
    """The embedded TDnet-p, whose folder is one that training wrote."""
    return EMBEDDED["tdnet-p"].path.parent


@pytest.fixture
def film(tmp_path: Path) -> Film:
    """A film at 25 frames a second in which the white rectangle moves 2 pixels right per frame."""

    def make(name: str = "op.mp4", frames: int = 30, hidden: range = range(0)) -> Path:
        with av.open(str(tmp_path / name), "w") as container:
            stream = container.add_stream("libx264", rate=25)
            stream.width, stream.height, stream.pix_fmt = 96, 64, "yuv420p"
            stream.options = {"crf": "1"}
            for n in range(frames):
                box = None if n in hidden else (2 * n % 60, 16, 2 * n % 60 + 32, 48)
                container.mux(stream.encode(av.VideoFrame.from_ndarray(picture(box), format="rgb24")))
            container.mux(stream.encode())
        return tmp_path / name

    return make


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """A folder of five pictures; the third is damaged, the fifth shows nothing."""
    folder = tmp_path / "pictures"
    folder.mkdir()
    for n in range(5):
        Picture.fromarray(picture(None if n == 4 else (10 + 4 * n, 16, 50 + 4 * n, 48))).save(folder / f"{n:03d}.png")
    data = (folder / "002.png").read_bytes()
    (folder / "002.png").write_bytes(data[: len(data) - 40])
    return folder
