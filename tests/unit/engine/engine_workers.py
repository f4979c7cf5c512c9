"""Workers for the engine's tests; in a module of their own so that a spawned process can import them."""

from __future__ import annotations

import ctypes
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surgeval.engine import Unit, worker_index
from surgeval.records import Case


def scores(payload: Mapping[str, Any]) -> Iterator[Case]:
    """Pseudo-random cases that follow from the payload alone."""
    rng = random.Random(payload["seed"])
    for i in range(payload.get("cases", 3)):
        yield Case(f"{payload['video']}/{i}", payload["video"], values={"score": rng.random(), "rank": i})


def score_units(count: int) -> list[Unit]:
    return [Unit(f"VID{i:02}", {"video": f"VID{i:02}", "seed": i}) for i in range(count)]


def misbehave(payload: str) -> list[Case]:
    """Do what the payload says."""
    if payload == "raise":
        raise ValueError("no frame\n12")
    if payload == "leave":
        sys.exit(3)
    if payload == "exit":
        os._exit(7)
    if payload == "segfault":
        ctypes.string_at(0)
    if payload == "hang":
        time.sleep(600)
    if payload == "terminate":
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        child.terminate()
        return [Case(payload, "VID01", values={"code": child.wait(30)})]
    return [Case(payload, "VID01")]


@dataclass
class Logged:
    """Writes a line for each setup and each unit, so that a test can count them across processes."""

    log: str

    def setup(self) -> None:
        self._write(f"setup {worker_index()} {os.getpid()}")

    def __call__(self, payload: str) -> list[Case]:
        self._write(f"unit {payload} {os.getpid()}")
        if payload == "hang":
            subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)  # grandchild"], stdin=None)
            time.sleep(600)
        return [Case(payload, "VID01")]

    def _write(self, line: str) -> None:
        with Path(self.log).open("a") as file:
            file.write(line + "\n")


class NoModel:
    def setup(self) -> None:
        raise FileNotFoundError("weights.safetensors")

    def __call__(self, payload: object) -> list[Case]:
        raise AssertionError("never reached")


class DiesInSetup(NoModel):
    def setup(self) -> None:
        os._exit(9)
