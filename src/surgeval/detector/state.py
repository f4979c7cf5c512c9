"""Named tensors and a JSON object in one safetensors file: written whole or not at all, read as a stranger's.

The header is read and checked by itself: every length, type and offset is compared with the size of the file before a
tensor is given memory, and nothing in the format can run code. Other tools read these files as any safetensors file.
"""

from __future__ import annotations

import json
import math
import os
import struct
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from surgeval.errors import BadInput, DataError
from surgeval.files import BrokenJson, NotRegular, atomic_file, open_regular, parse_json

__all__ = ["StateFile", "Stored", "load_state", "save_state"]

KEY = "surgeval"  # of our JSON among the strings that the format allows in its header
LIMIT = 4 << 30  # bytes of a file: the largest network with its optimiser and average has 0.5 GB
_HEADER_LIMIT = 16 << 20
_MOST_AXES = 8
_MOST_NUMBERS = 1 << 48  # of a tensor, an axis of no length counted as one: beyond it torch computes no strides
_EXPECTED = "a safetensors file of surgeval"
_TYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
_NAMES = {kind: name for name, kind in _TYPES.items()}


def save_state(path: str | Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, Any]) -> None:
    """Write the tensors (from any device) and the metadata, atomically.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_state(Path(folder) / "last.safetensors", {"step": torch.tensor([7])}, {"epoch": 3})
    ...     load_state(Path(folder) / "last.safetensors")
    ({'step': tensor([7])}, {'epoch': 3})
    """
    path = Path(path)
    try:
        text = json.dumps(dict(metadata), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise BadInput(f"{path}: metadata: found what JSON cannot hold ({error}), expected plain values") from None
    header: dict[str, Any] = {"__metadata__": {"format": "pt", KEY: text}}
    # Wide types first: so every tensor lies at a multiple of its own width.
    order = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))
    end = 0
    for name in order:
        kind, size = _NAMES.get(tensors[name].dtype), tensors[name].nbytes
        if kind is None or name == "__metadata__":
            raise BadInput(f"{path}: {name}: found {tensors[name].dtype}, expected one of {', '.join(_TYPES)}")
        header[name] = {"dtype": kind, "shape": list(tensors[name].shape), "data_offsets": [end, end + size]}
        end += size
    encoded = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    encoded += b" " * (-len(encoded) % 8)
    with atomic_file(path) as file:
        file.write(struct.pack("<Q", len(encoded)))
        file.write(encoded)
        for name in order:
            file.write(tensors[name].detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)


def load_state(path: str | Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors as they were stored, on the CPU, and the metadata; a file that is anything else is a `DataError`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_state(Path(folder) / "last.safetensors", {"step": torch.tensor([7])}, {"epoch": 3})
    ...     tensors, metadata = load_state(Path(folder) / "last.safetensors")
    >>> tensors["step"], metadata["epoch"]
    (tensor([7]), 3)
    >>> load_state(Path("last.pt"))
    Traceback (most recent call last):
    surgeval.errors.DataError: last.pt: found no such file, expected a safetensors file of surgeval
    """
    with StateFile(Path(path)) as state:
        return state.tensors(), state.metadata


@dataclass(frozen=True)
class Stored:
    """What a header says of one tensor, already checked against the file's size."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    begin: int
    end: int


class StateFile(AbstractContextManager["StateFile"]):
    """An open file whose header is read and whose tensors are not: `entries` and `metadata` can be judged first."""

    def __init__(self, path: Path, *, expected: str = _EXPECTED, limit: int = LIMIT) -> None:
        self.path, self.expected = path, expected
        try:
            self._file: BufferedReader = open_regular(path)
        except FileNotFoundError:
            raise self.refusal("no such file") from None
        except NotRegular as error:
            raise self.refusal(error) from None
        except OSError as error:
            raise self.refusal(f"a file that cannot be read ({error.strerror or type(error).__name__})") from None
        try:
            size = os.fstat(self._file.fileno()).st_size
            if size > limit:
                raise self.refusal(f"{size} bytes", f"{expected} of at most {limit} bytes")
            header, self._start = self._read_header(size)
            self.metadata = self._read_metadata(header.pop("__metadata__", None))
            self.entries = self._read_entries(header, size - self._start)
        except BaseException:
            self._file.close()
            raise

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def refusal(self, found: object, expected: str | None = None, *, field: str | None = None) -> DataError:
        """The sentence that refuses this file."""
        return DataError(self.path, f"found {found}, expected {expected or self.expected}", field=field)

    def tensors(self) -> dict[str, Tensor]:
        """All tensors, each in memory of its own."""
        loaded = {}
        for name, entry in self.entries.items():
            loaded[name] = torch.empty(entry.shape, dtype=entry.dtype)
            if entry.end > entry.begin:
                self._file.seek(self._start + entry.begin)
                into = memoryview(loaded[name].reshape(-1).view(torch.uint8).numpy())
                if self._file.readinto(into) != entry.end - entry.begin:  # cut off since it was opened
                    raise self.refusal("a file that ends inside this tensor", field=name)
        return loaded

    def _read_header(self, size: int) -> tuple[dict[str, Any], int]:
        start = self._file.read(8)
        if len(start) < 8:
            raise self.refusal(f"{len(start)} bytes")
        length = struct.unpack("<Q", start)[0]
        if length > min(size - 8, _HEADER_LIMIT):
            if start.startswith((b"PK", b"\x80")):
                raise self.refusal("a pickle or an archive, which may run code when it is opened")
            limit = f"at most {min(size - 8, _HEADER_LIMIT)} in a file of {size}"
            raise self.refusal(f"a header of {length} bytes", f"{limit} bytes ({self.expected})")
        try:
            header = parse_json(self._file.read(length).decode(), distinct=True)
        except (BrokenJson, UnicodeDecodeError) as error:
            reason = error if isinstance(error, BrokenJson) else "no UTF-8 text"
            raise self.refusal(f"a header that cannot be read ({reason})") from None
        if not isinstance(header, dict):
            raise self.refusal(f"a header that is a {type(header).__name__}")
        return header, 8 + length

    def _read_metadata(self, strings: object) -> dict[str, Any]:
        text = strings.get(KEY) if isinstance(strings, dict) else None
        if not isinstance(text, str):
            raise self.refusal(f"no {KEY!r} among its metadata")
        try:
            metadata = parse_json(text, distinct=True, finite=True)
        except BrokenJson as error:
            raise self.refusal(f"text that cannot be read ({error})", "a JSON object", field="metadata") from None
        if not isinstance(metadata, dict):
            raise self.refusal(f"a {type(metadata).__name__}", "a JSON object", field="metadata")
        return metadata

    def _read_entries(self, header: dict[str, Any], room: int) -> dict[str, Stored]:
        entries = {name: self._entry(name, entry) for name, entry in header.items()}
        reached = 0
        for name, entry in sorted(entries.items(), key=lambda item: (item[1].begin, item[1].end)):
            if entry.begin != reached:
                raise self.refusal(f"data from byte {entry.begin}", f"data from byte {reached}: one tensor after "
                                   "the other", field=name)  # fmt: skip
            reached = entry.end
        if reached != room:
            state = "cut off: " if room < reached else ""
            raise self.refusal(f"{state}{room} bytes of tensors", f"{reached} bytes, as its header says")
        return entries

    def _entry(self, name: str, entry: object) -> Stored:
        fields: dict[str, Any] = entry if isinstance(entry, dict) else {}
        dtype, shape, offsets = fields.get("dtype"), _counts(fields.get("shape")), _counts(fields.get("data_offsets"))
        if not isinstance(dtype, str) or dtype not in _TYPES:
            raise self.refusal(f"type {dtype!r}", f"one of {', '.join(_TYPES)}", field=name)
        if shape is None or len(shape) > _MOST_AXES or math.prod(max(1, side) for side in shape) > _MOST_NUMBERS:
            raise self.refusal(f"shape {str(fields.get('shape'))[:80]}", "the shape of a tensor", field=name)
        if offsets is None or len(offsets) != 2:
            raise self.refusal(f"offsets {str(fields.get('data_offsets'))[:80]}", "two whole numbers", field=name)
        size = math.prod(shape) * _TYPES[dtype].itemsize
        if offsets[1] - offsets[0] != size:
            raise self.refusal(f"{offsets[1] - offsets[0]} bytes for shape {shape} of type {dtype}",
                               f"{size} bytes", field=name)  # fmt: skip
        return Stored(_TYPES[dtype], shape, *offsets)


def _counts(value: object) -> tuple[int, ...] | None:
    whole = isinstance(value, list) and all(type(number) is int and number >= 0 for number in value)
    return tuple(value) if isinstance(value, list) and whole else None
