"""Reading a torch checkpoint (.pth, .bin, or a zip around one) from a stranger.

Only tensors are read: `weights_only=True` refuses a pickle that would call code, archives are measured before they are
unpacked, and every failure is one sentence.
"""

from __future__ import annotations

import lzma
import pickle
import re
import struct
import tempfile
import zipfile
import zlib
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import torch

from surgeval.errors import DataError
from surgeval.models.io.pickled import check_pickles

__all__ = ["first_line", "read_torch"]

LIMIT = 2 << 30  # bytes that a smaller file may unpack to: SurgVLP has 0.54 GB
_UNREADABLE = (pickle.UnpicklingError, RuntimeError, EOFError, ValueError, KeyError, AttributeError, TypeError,
               IndexError, OSError, struct.error, OverflowError, AssertionError)  # fmt: skip
_BROKEN_ZIP = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, NotImplementedError, EOFError, struct.error, ValueError,
               OverflowError)  # fmt: skip
_EXPECTED = "a torch checkpoint that holds only tensors by name"


def read_torch(path: str | Path, limit: int = LIMIT) -> dict[str, torch.Tensor]:
    """Tensors by name from a checkpoint, or from a zip archive that holds one .pth file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     torch.save({"head.bias": torch.zeros(2)}, f"{folder}/net.pth")
    ...     read_torch(f"{folder}/net.pth")
    {'head.bias': tensor([0., 0.])}
    """
    path = Path(path)
    if not path.is_file():
        raise DataError(path, "found no such file, expected a torch checkpoint")
    limit = max(limit, path.stat().st_size)  # what lies on the disk in full is no bomb
    with ExitStack() as stack:
        try:
            stream: IO[bytes] = stack.enter_context(path.open("rb"))
            if _is_zip(stream):
                stream = _unwrap(stream, path, limit, stack)
        except _BROKEN_ZIP as error:
            raise DataError(path, f"found a zip archive that is truncated or damaged, expected {_EXPECTED}") from error
        except RuntimeError as error:  # an encrypted member
            raise DataError(
                path, f"found a zip archive that cannot be opened ({first_line(error)}), expected {_EXPECTED}"
            ) from error
        except OSError as error:
            raise DataError(path, f"found {error.strerror or first_line(error)}, expected a readable file") from error
        loaded = _load(stream, path)
    return _tensors(loaded, path, limit)


def _is_zip(stream: IO[bytes]) -> bool:
    start = stream.read(4)
    stream.seek(0)
    return start.startswith(b"PK")


def _unwrap(stream: IO[bytes], path: Path, limit: int, stack: ExitStack) -> IO[bytes]:
    """The stream of a torch archive itself, or of the one .pth inside a plain zip; both measured first."""
    with zipfile.ZipFile(stream) as archive:
        members = archive.infolist()
        _measure(members, path, limit)
        if _is_torch(members):
            stream.seek(0)
            return stream
        inner = [member for member in members if member.filename.endswith((".pth", ".pt")) and not member.is_dir()]
        if len(inner) != 1:
            found = f"a zip archive with {len(inner)} .pth files" if inner else "a zip archive without a .pth file"
            raise DataError(path, f"found {found}, expected one .pth file in it")
        copied: IO[bytes] = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 (the stack closes it)
        with archive.open(inner[0]) as source:
            while piece := source.read(1 << 20):
                copied.write(piece)
                if copied.tell() > limit:  # the archive may lie about a member's size
                    raise DataError(
                        path,
                        f"found more bytes than the archive declares, expected at most {limit} bytes",
                        record=inner[0].filename,
                    )
    copied.seek(0)
    if _is_zip(copied):
        with zipfile.ZipFile(copied) as archive:
            _measure(archive.infolist(), path, limit)
        copied.seek(0)
    return copied


def _measure(members: list[zipfile.ZipInfo], path: Path, limit: int) -> None:
    total = sum(member.file_size for member in members)
    if total > limit:
        raise DataError(path, f"found an archive that unpacks to {total} bytes, expected at most {limit} bytes")


def _is_torch(members: list[zipfile.ZipInfo]) -> bool:
    return any(member.filename.rpartition("/")[2] == "data.pkl" for member in members)


def _load(stream: IO[bytes], path: Path) -> object:
    try:
        check_pickles(stream)
        return torch.load(stream, map_location="cpu", weights_only=True)
    except MemoryError as error:
        raise DataError(path, f"found tensors larger than this machine's memory, expected {_EXPECTED}") from error
    except _UNREADABLE as error:
        called = re.search(r"GLOBAL ([\w.]+)", str(error))
        if called:
            found = f"a pickle that wants to run {called[1]}"
        elif isinstance(error, pickle.UnpicklingError):
            found = "a file that is no checkpoint, or a pickle with more than tensors"
        else:
            found = f"a file that cannot be read ({first_line(error)})"
        raise DataError(path, f"found {found}, expected {_EXPECTED}") from error


def _tensors(state: Any, path: Path, limit: int) -> dict[str, torch.Tensor]:
    if not isinstance(state, dict):
        raise DataError(path, f"found a {type(state).__name__}, expected {_EXPECTED}")
    for name, value in state.items():
        if not isinstance(name, str) or not isinstance(value, torch.Tensor):
            raise DataError(path, f"found a {type(value).__name__}, expected a tensor", field=str(name)[:80])
        if value.layout != torch.strided or value.is_meta or value.is_quantized:
            raise DataError(path, "found a sparse, quantised or empty tensor, expected plain numbers", field=name[:80])
        numbers = value.untyped_storage().nbytes() // value.element_size()
        if value.numel() > numbers:  # strides of 0 repeat a number as often as the file likes
            found_shape = f"shape {tuple(value.shape)} made of {numbers} number{'s' * (numbers != 1)}"
            raise DataError(
                path, f"found {found_shape}, expected every number of a tensor in the file", field=name[:80]
            )
    total = sum(value.nbytes for value in state.values())
    if total > 2 * limit:  # networks with tied weights name a tensor twice
        raise DataError(path, f"found tensors of {total} bytes in all that share numbers, expected at most {limit}")
    return dict(state)


def first_line(error: BaseException) -> str:
    """An exception's message without its tail."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:160].rstrip(".:") if lines else type(error).__name__
