"""Worker process main loop: load the worker once, then answer each unit with its part until the pipe closes."""

from __future__ import annotations

import os
import pickle
import threading
from multiprocessing.connection import Connection

from surgeval.engine._evaluate import describe, evaluate_unit, set_up
from surgeval.engine._executors import SLOT
from surgeval.errors import RunError
from surgeval.progress import forwarded

__all__ = ["serve"]

_ADVICE = "define it at the top of a module that other processes can import, not in a notebook"


def serve(connection: Connection, pickled: bytes, slot: int) -> None:
    """Answer jobs with the bytes of their parts; the first answer says whether the worker could be set up."""
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

    with forwarded(lambda *step: send("step", step)):
        send("ready", b"")
        while True:
            send("part", evaluate_unit(worker, connection.recv()))
