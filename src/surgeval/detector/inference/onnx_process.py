"""Run an ONNX graph in a child process with limits on memory and time, so that a hostile graph ends only that process.

Files are untrusted: a few bytes of a graph can ask for petabytes or loop forever. The process lives as long as the
detector and gets one batch at a time: 20 MB through a pipe take about ten milliseconds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from threading import Lock
from typing import Any

import numpy as np

from surgeval.arrays import AnyArray, Bytes
from surgeval.processes import LimitedProcess

__all__ = ["GraphProcess", "GraphRefused"]

OPEN_SECONDS = 120.0
RUN_SECONDS, PICTURE_SECONDS = 60.0, 30.0  # for a batch, and more for each of its pictures
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
        self._child = LimitedProcess("surgeval.detector.inference.onnx_child")
        _widen(self._child)
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
        self._child.close()

    def _memory(self, batch: int, side: int) -> int | None:
        """Bytes that the process may hold at a time for the graph and a batch; None: no limit."""
        picture = int(_PICTURE_MEMORY * (side / 640) ** 2)
        return None if self._cuda else self._file + _MEMORY + batch * picture

    def _ask(
        self, request: Mapping[str, Any], data: bytes | memoryview, seconds: float
    ) -> tuple[dict[str, Any], list[AnyArray]]:
        with self._lock, self._child.limit_time(seconds) as exceeded:
            try:
                message = {**request, "threads": self._threads, "bytes": len(data)}
                reply, arrays = self._exchange(message, data)
            except (OSError, EOFError, ValueError) as error:
                self._child.kill()
                status = self._child.wait()
                how = f"took more than {seconds:g} s" if exceeded else f"ended its process with status {status}"
                raise GraphRefused(f"a graph that {how}") from error
        if "refused" in reply:
            raise GraphRefused(str(reply["refused"]), str(reply.get("code", "")))
        return reply, arrays

    def _exchange(self, request: Mapping[str, Any], data: bytes | memoryview) -> tuple[dict[str, Any], list[AnyArray]]:
        writer, reader = self._child.requests, self._child.replies
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


def _widen(child: LimitedProcess) -> None:
    """Enlarge both pipes to a megabyte where the system allows it: a batch then takes fewer steps."""
    with suppress(ImportError, AttributeError, OSError):
        import fcntl

        for pipe in (child.requests, child.replies):
            fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, 1 << 20)
