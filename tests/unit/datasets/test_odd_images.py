"""Images of more than eight bits, with floats or with a rotation tag: read as what they show, or refused by name."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from surgeval.datasets import image_size, read_image
from surgeval.errors import DataError
from surgeval.records import ImageRef

LEVELS = np.array([[0, 255, 256, 32_768, 65_535]], np.uint16)


def red(path: Path) -> list[int]:
    pixels = read_image(ImageRef(path))
    assert pixels.dtype == np.uint8 and pixels.shape == (1, 5, 3)
    assert (pixels == pixels[..., :1]).all()  # a grey image stays grey
    return [int(value) for value in pixels[0, :, 0]]


@pytest.mark.parametrize("suffix", [".png", ".tif"])
def test_sixteen_bits_are_scaled_to_eight(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"grey{suffix}"
    Image.fromarray(LEVELS).save(path)
    assert red(path) == [0, 0, 1, 128, 255]


def test_sixteen_bits_with_the_high_byte_first_are_the_same_picture(tmp_path: Path) -> None:
    data = LEVELS.astype(">u2").tobytes()
    short, long = 3, 4
    tags = [(256, short, 5 << 16), (257, short, 1 << 16), (258, short, 16 << 16), (259, short, 1 << 16),
            (262, short, 1 << 16), (273, long, 8), (278, short, 1 << 16), (279, long, len(data))]  # fmt: skip
    entries = b"".join(struct.pack(">HHII", tag, kind, 1, value) for tag, kind, value in tags)
    path = tmp_path / "motorola.tif"
    header = b"MM\x00*" + struct.pack(">I", 8 + len(data))
    path.write_bytes(header + data + struct.pack(">H", len(tags)) + entries + bytes(4))
    assert red(path) == [0, 0, 1, 128, 255]


@pytest.mark.parametrize(
    ("pixels", "found"),
    [
        (np.linspace(0, 1, 6, dtype=np.float32).reshape(2, 3), "pixels of floating-point numbers"),
        (np.arange(6, dtype=np.int32).reshape(2, 3), "pixels of 32-bit integers"),
    ],
)
def test_pixels_without_a_known_white_are_refused(tmp_path: Path, pixels: npt.NDArray[np.generic], found: str) -> None:
    path = tmp_path / "odd.tif"
    Image.fromarray(pixels).save(path)
    with pytest.raises(DataError) as error:
        read_image(ImageRef(path))
    assert str(error.value) == f"{path}: found {found}, expected 8 or 16 bits a channel"


def test_a_rotation_tag_leaves_the_stored_pixels_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "turned.png"
    exif = Image.Exif()
    exif[0x0112] = 6  # turn by 90° for display
    stored = np.arange(2 * 4 * 3, dtype=np.uint8).reshape(2, 4, 3)
    Image.fromarray(stored).save(path, exif=exif)
    assert Image.open(path).getexif()[0x0112] == 6
    np.testing.assert_array_equal(read_image(ImageRef(path)), stored)
    assert image_size(path) == (4, 2)
