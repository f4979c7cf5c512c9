"""The inside of a worker process: set up once, then a unit in, a part out, until the pipe closes.

It ignores Ctrl-C (the run decides what to finish) and never outlives the run, even one that was killed: on Linux the
kernel ends it with its parent, elsewhere a thread watches.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import pickle
import signal
import sys
import threading
from contextlib import suppress
from multiprocessing.connection import Connection
from types import FrameType

from surgeval.engine._evaluate import describe, evaluate_unit, set_up
from surgeval.engine._executors import SLOT
from surgeval.errors import RunError
from surgeval.progress import forwarded

__all__ = ["serve"]

_PR_SET_PDEATHSIG = 1
_ADVICE = "define it at the top of a module that other processes can import, not in a notebook"


def serve(connection: Connection, pickled: bytes, slot: int, parent: int) -> None:
    """Answer jobs with the bytes of their parts; the first answer says whether the worker could be set up."""
    _ignore_interrupts()
    _end_with(parent)
    os.environ[SLOT] = str(slot)
    try:
        worker = pickle.loads(pickled)  # noqa: S301 - the bytes come from this run's own process
        set_up(worker)
    except RunError as error:
        connection.send(("broken", str(error).encode()))
        return
    except BaseException as error:  # noqa: BLE001 - reported to the run, which ends with it
        connection.send(("broken", f"the worker could not be loaded ({describe(error)}); {_ADVICE}".encode()))
        return
    sending = threading.Lock()  # a worker's threads report as well

    def send(kind: str, data: object) -> None:
        with sending:
            connection.send((kind, data))

    with (
        suppress(EOFError, BrokenPipeError, ConnectionResetError),  # the run is over
        forwarded(lambda *step: send("step", step)),
    ):
        send("ready", b"")
        while True:
            send("part", evaluate_unit(worker, connection.recv()))


def _ignore_interrupts() -> None:
    for signum in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, _nothing)  # not SIG_IGN, which a decoder it starts would inherit
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
    if hasattr(os, "setpgid"):
        os.setpgid(0, 0)  # its own group: a decoder it started is killed with it


def _nothing(signum: int, frame: FrameType | None) -> None:
    """Ignore the signal."""


def _end_with(parent: int) -> None:
    if sys.platform == "linux":  # works even while native code holds the interpreter
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
    threading.Thread(target=_watch, name="surgeval-parent", daemon=True).start()


def _watch() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
