"""A burst of edits from several programs at once, each of which shows whether it was made, and made twice."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image
from tests.studio_command import Client, Command
from tests.studio_project import Project

FRAMES = 50
EDITS, PROGRAMS = 200, 4


def make_folder(place: Path) -> Path:
    """Fifty small images."""
    (place / "v").mkdir(parents=True)
    for n in range(FRAMES):
        Image.new("RGB", (64, 48), (n, 0, 0)).save(place / "v" / f"{n}.png")
    return place


def begin(host: str, token: str | None = None) -> None:
    """Scissors in every frame."""
    boxes = [{"id": f"a{n}", "video": "v", "frame": n, "group": "tools", "name": "scissors", "box": [0, 0, 9, 9],
              "track": 1} for n in range(FRAMES)]  # fmt: skip
    status, said = Client(host, token=token).edit("begin", "instances.add", {"instances": boxes})
    assert status == 200, said


def edit(number: int) -> tuple[str, dict[str, Any]]:
    """Kind and payload of an edit."""
    frame = number % FRAMES
    if number % 4 == 1:
        return "instances.move", {"ids": [f"a{frame}"], "dx": 1.0, "dy": 0.0}
    if number % 4 == 2:
        box = {
            "id": f"n{number}",
            "video": "v",
            "frame": frame,
            "group": "tools",
            "name": "forceps",
            "box": [1, 2, 3, 4],
        }
        return "instances.add", {"instances": [box]}
    if number % 4 == 3:
        return "span.add", {
            "id": f"s{number}", "video": "v", "tracks": [{"group": "tools", "name": "scissors", "number": 1}],
            "values": {"action": "cut" if number % 8 == 3 else "dissect"}, "first": 5, "last": 44,
        }  # fmt: skip
    return "frames.flag", {"video": "v", "first": frame, "last": frame, "reason": f"edit-{number}"}


class Burst:
    """Edits that several programs send until all are acknowledged; the server may die meanwhile."""

    def __init__(self, numbers: range) -> None:
        self.waiting = [list(numbers[k::PROGRAMS]) for k in range(PROGRAMS)]
        self.acknowledged: list[int] = []
        self.refused: list[tuple[int, Any]] = []
        self._killed = threading.Event()

    def send(
        self, server: Command, *, after: int = 0, delay: float = 0.0, kill: Callable[[], None] | None = None
    ) -> None:
        """Until everything is sent, or refused; after so many acknowledged edits and a moment something is killed.

        Every program keeps its last edit until then: the burst is never over before.
        """
        self._killed = threading.Event()
        if kill is None:
            self._killed.set()
        threads = [threading.Thread(target=self._program, args=(server, part)) for part in self.waiting]
        for thread in threads:
            thread.start()
        if kill is not None:
            goal = len(self.acknowledged) + after
            while len(self.acknowledged) < goal and any(thread.is_alive() for thread in threads):
                time.sleep(0.001)
            time.sleep(delay)
            kill()
            self._killed.set()
        for thread in threads:
            thread.join()

    def _program(self, server: Command, part: list[int]) -> None:
        client = Client(server.host, token=server.token)
        while part:
            if len(part) == 1:
                self._killed.wait()
            kind, payload = edit(part[0])
            try:
                status, said = client.edit(f"edit-{part[0]}", kind, payload)
            except ConnectionError:
                return  # the same edit is sent again, with the same id, once there is a server
            if status != 200:
                self.refused.append((status, said))
                return
            self.acknowledged.append(part.pop(0))
        client.close()


def check(where: Path | str, acknowledged: list[int], *, in_flight: int = 0) -> None:
    """Every acknowledged edit is there, few others are, none twice, and the log gives the state."""
    with Project(where, create=False) as project:
        stored = [operation.id for operation in project.operations() if operation.id.startswith("edit-")]
        assert len(stored) == len(set(stored))
        numbers = {int(id.split("-")[1]) for id in stored}
        assert set(acknowledged) <= numbers
        assert len(numbers) <= len(acknowledged) + in_flight
        shifts: dict[str, float] = {}
        for number in numbers:
            kind, payload = edit(number)
            if kind == "instances.move":
                shifts[payload["ids"][0]] = shifts.get(payload["ids"][0], 0.0) + 1.0
        instances = project.instances("v", 0, FRAMES)
        assert {one.id: one.box.x for one in instances if one.name == "scissors" and one.box.x} == shifts
        assert {one.id for one in instances if one.name == "forceps"} == {f"n{k}" for k in numbers if k % 4 == 2}
        assert {flag.reason for flag in project.flags("v")} == {f"edit-{k}" for k in numbers if k % 4 == 0}
        assert {span.id for span in project.spans("v")} == {f"s{k}" for k in numbers if k % 4 == 3}
        assert project.replay() == project.state()
