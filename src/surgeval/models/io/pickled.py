"""The pickle inside a torch checkpoint, read through without being run.

`weights_only` lets nothing be called but torch's own functions and a few of Python's. It does not bound what those do:
400 bytes of tuples in tuples take years to be hashed as a key, and `bytearray` takes as much memory as it is told to.
"""

from __future__ import annotations

import io
import pickle
import pickletools
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO

__all__ = ["check_pickles"]

_MOST = 1 << 26  # bytes of names and shapes; the numbers lie elsewhere
_LEGACY = 5  # pickles before the numbers of an old checkpoint: three of the format, the names, the order of the numbers
_LARGEST = 10_000  # values in one tuple, counted as often as they stand in it: a shape has a handful
_MOST_STEPS = 3_000_000  # of a pickle: a tensor takes about forty
_TUPLES = frozenset({"TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"})
_GETS, _PUTS = frozenset({"BINGET", "LONG_BINGET", "GET"}), frozenset({"BINPUT", "LONG_BINPUT", "PUT"})
_MARK = -1
# Beside torch's own functions: what training states hold, and `weights_only` lets pass too.
_HARMLESS = frozenset({"collections.OrderedDict", "collections.Counter", "_codecs.encode", "builtins.set",
                       "__builtin__.set", "builtins.complex", "__builtin__.complex"})  # fmt: skip


def check_pickles(stream: IO[bytes]) -> None:
    """Raise `UnpicklingError` where reading this checkpoint would run something else than torch, or never end.

    What is damaged in another way passes: torch says what is wrong with it. The stream is at its beginning afterwards.
    """
    start = stream.read(2)
    stream.seek(0)
    try:
        if start == b"PK":
            with zipfile.ZipFile(stream) as archive:
                for member in archive.infolist():
                    if member.filename.lower().endswith("data.pkl"):  # torch's reader of archives ignores the case
                        with archive.open(member) as opened:
                            _check(opened.read(_MOST + 1), 1)
        else:
            _check(stream.read(_MOST), _LEGACY)  # its numbers may follow
    except (zipfile.BadZipFile, zlib.error, NotImplementedError) as error:  # torch does not look at sums
        raise pickle.UnpicklingError(f"a damaged archive ({error})") from None
    finally:
        stream.seek(0)


def _check(data: bytes, pickles: int) -> None:
    if pickles == 1 and len(data) > _MOST:
        raise pickle.UnpicklingError(f"names and shapes of more than {_MOST} bytes")
    source = io.BytesIO(data)
    for _ in range(pickles):
        try:
            if any(size > _LARGEST for size in _tuples(source)):
                raise pickle.UnpicklingError(f"a tuple of more than {_LARGEST} values")
        except (ValueError, IndexError, KeyError, UnicodeError, OverflowError):
            return


def _tuples(source: IO[bytes]) -> Iterator[int]:
    """The size of every tuple that a pickle would make, told by its stack alone."""
    stack: list[int] = []
    memory: dict[int, int] = {}
    for step, (code, argument, _) in enumerate(pickletools.genops(source)):
        if step > _MOST_STEPS:
            raise pickle.UnpicklingError(f"a pickle of more than {_MOST_STEPS} steps")
        if code.name == "GLOBAL":
            _check_called(str(argument))
        if code.name == "MARK":
            stack.append(_MARK)
        elif code.name in _GETS:
            stack.append(memory[int(argument or 0)])
        elif code.name in _PUTS:
            memory[int(argument or 0)] = stack[-1]
        elif code.name == "MEMOIZE":
            memory[len(memory)] = stack[-1]
        else:
            size = 1 + sum(_taken(stack, code))
            stack += [size if code.name in _TUPLES else 1] * len(code.stack_after)
            if code.name in _TUPLES:
                yield size


def _check_called(name: str) -> None:
    called = name.replace(" ", ".", 1)
    if called.split(".")[0] != "torch" and called not in _HARMLESS:
        raise pickle.UnpicklingError(f"GLOBAL {called}")


def _taken(stack: list[int], code: pickletools.OpcodeInfo) -> Iterator[int]:
    """The sizes of what this code takes from the stack: a number of values, or all down to the last mark."""
    before = [kind.name for kind in code.stack_before]
    if "mark" in before:
        while (size := stack.pop()) != _MARK:
            yield size
        before = before[: before.index("mark")]
    for _ in before:
        yield stack.pop()
