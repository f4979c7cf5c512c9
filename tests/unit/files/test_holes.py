"""A file of holes takes nothing on the disk and a terabyte to read: it is refused, whoever wants its bytes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from surgeval.errors import DataError
from surgeval.files import copy_atomically, read_bounded, read_json_file, read_regular


def holes(path: Path, data: bytes) -> Path:
    """A terabyte of which the disk holds these bytes."""
    path.write_bytes(data)
    os.truncate(path, 1 << 40)
    with path.open("rb") as file:
        if path.stat().st_blocks >= 1000 or (not data and _begins_with_data(file.fileno())):
            pytest.skip("a disk that fills holes or does not tell")
    return path


def _begins_with_data(descriptor: int) -> bool:
    try:
        return os.lseek(descriptor, 0, os.SEEK_DATA) == 0
    except OSError:
        return False


@pytest.mark.parametrize("data", [b"{}", b""])
def test_a_file_of_holes_is_not_read(tmp_path: Path, data: bytes) -> None:
    path = holes(tmp_path / "a.json", data)
    for read in (lambda: read_bounded(path, 1 << 50), lambda: read_json_file(path)):
        with pytest.raises(DataError, match="found a file that is almost nothing but holes"):
            read()
    with pytest.raises(OSError, match="almost nothing but holes"):
        read_regular(path)


@pytest.mark.parametrize("data", [b"film", b""])
def test_a_file_of_holes_is_not_copied(tmp_path: Path, data: bytes) -> None:
    path = holes(tmp_path / "a.mp4", data)
    with pytest.raises(DataError, match=r"a\.mp4: found a file that is almost nothing but holes, expected a film"):
        copy_atomically(path, tmp_path / "copy.mp4")
    assert not (tmp_path / "copy.mp4").exists()
