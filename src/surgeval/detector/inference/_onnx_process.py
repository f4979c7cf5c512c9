"""Run an ONNX graph in a child process with limits on memory and time, so that a hostile graph ends only that process.

Files are untrusted: a few bytes of a graph can ask for petabytes or loop forever. The process lives as long as the
detector and gets one batch at a time: 20 MB through a pipe take about ten milliseconds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from threading import Lock, Timer
from typing import Any, cast

import numpy as np

from surgeval.arrays import AnyArray, Bytes

__all__ = ["GraphProcess", "GraphRefused"]

OPEN_SECONDS = 120.0
RUN_SECONDS, PICTURE_SECONDS = 60.0, 30.0  # for a batch, and more for each of its pictures
_GRACE = 10  # seconds more, after which the process ends itself: this one may have been killed
_FILE_COPIES = 4  # of the file's bytes: as read, parsed, and as onnxruntime keeps and packs them
_MEMORY = 1 << 30  # bytes beyond the file for a batch, and more for each of its pictures of 640 × 640
_PICTURE_MEMORY = 1 << 29
_MOST_OUTPUT = 1 << 26  # bytes of boxes and scores of one picture
_LINE = 1 << 24  # bytes of a reply's first line


class GraphRefused(Exception):
    """A graph that was not run; the message is a phrase for the error, the code `no-device` without its device."""

    def __init__(self, reason: str, code: str = "") -> None:
        super().__init__(reason)
        self.code = code


class GraphProcess:
    """A child process that holds one graph."""

    def __init__(self, data: bytes, *, key: str, cuda: bool, threads: int) -> None:
        self._threads, self._file = threads, _FILE_COPIES * len(data)
        self._cuda = cuda  # CUDA reserves all address space, so memory is not limited there
        self._lock = Lock()
        self._child = subprocess.Popen(  # noqa: S603 (our own interpreter and program)
            [sys.executable, "-P", str(Path(__file__).with_name("_onnx_child.py"))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=os.sep,
            env={**os.environ, "MALLOC_ARENA_MAX": "2"},
        )  # fmt: skip
        _widen(self._child)
        self._end = weakref.finalize(self, _stop, self._child)
        provider = "CUDAExecutionProvider" if cuda else "CPUExecutionProvider"
        request = {"do": "open", "key": key, "provider": provider, "memory": self._memory(0, 0)}
        try:
            self.about = self._ask(request, data, OPEN_SECONDS)[0]
        except GraphRefused:
            self.close()
            raise

    def run(self, name: str, pictures: Bytes, outputs: Sequence[str]) -> list[AnyArray]:
        """The named outputs for pictures (batch, 3, side, side), in order."""
        batch, side = len(pictures), pictures.shape[2]
        request = {
            "do": "run", "input": name, "outputs": list(outputs), "shape": list(pictures.shape),
            "memory": self._memory(batch, side), "most": batch * _MOST_OUTPUT,
        }  # fmt: skip
        data = np.ascontiguousarray(pictures).reshape(-1).data
        return self._ask(request, data, RUN_SECONDS + batch * PICTURE_SECONDS)[1]

    def close(self) -> None:
        """End the process."""
        self._end()

    def _memory(self, batch: int, side: int) -> int | None:
        """Bytes that the process may hold at a time for the graph and a batch; None: no limit."""
        picture = int(_PICTURE_MEMORY * (side / 640) ** 2)
        return None if self._cuda else self._file + _MEMORY + batch * picture

    def _ask(
        self, request: Mapping[str, Any], data: bytes | memoryview, seconds: float
    ) -> tuple[dict[str, Any], list[AnyArray]]:
        late: list[bool] = []
        child = self._child  # not `self`: the timer's thread may outlive the detector for a moment

        def end() -> None:
            late.append(True)
            child.kill()

        timer = Timer(seconds, end)
        timer.daemon = True
        with self._lock:
            timer.start()
            try:
                message = {**request, "threads": self._threads, "bytes": len(data), "seconds": int(seconds) + _GRACE}
                reply, arrays = self._exchange(message, data)
            except (OSError, EOFError, ValueError) as error:
                child.kill()
                status = child.wait()
                how = f"took more than {seconds:g} s" if late else f"ended its process with status {status}"
                raise GraphRefused(f"a graph that {how}") from error
            finally:
                timer.cancel()
        if "refused" in reply:
            raise GraphRefused(str(reply["refused"]), str(reply.get("code", "")))
        return reply, arrays

    def _exchange(self, request: Mapping[str, Any], data: bytes | memoryview) -> tuple[dict[str, Any], list[AnyArray]]:
        writer, reader = self._child.stdin, cast(BufferedReader, self._child.stdout)
        assert writer is not None  # noqa: S101 - a pipe
        writer.write(json.dumps(request).encode() + b"\n")
        writer.write(data)
        writer.flush()
        line = reader.readline(_LINE)
        if not line.endswith(b"\n"):
            raise EOFError
        reply: dict[str, Any] = json.loads(line)
        arrays: list[AnyArray] = []
        for kind, shape in reply.get("arrays", ()):
            array = np.empty(shape, kind)
            if array.size and reader.readinto(array.reshape(-1).view(np.uint8).data) != array.nbytes:
                raise EOFError
            arrays.append(array)
        return reply, arrays


def _widen(child: subprocess.Popen[bytes]) -> None:
    """Enlarge both pipes to a megabyte where the system allows it: a batch then takes fewer steps."""
    with suppress(ImportError, AttributeError, OSError):
        import fcntl

        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, 1 << 20)


def _stop(child: subprocess.Popen[bytes]) -> None:
    for pipe in (child.stdin, child.stdout):
        with suppress(OSError):
            if pipe is not None:
                pipe.close()
    try:
        child.wait(timeout=1)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
