"""Three annotators on one video at once, over PostgreSQL: conflicts are told, nothing is overwritten unseen."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from tests.fault.studio_burst import FRAMES, begin, make_folder
from tests.postgres import Postgres, postgres
from tests.studio_command import Client, running
from tests.studio_project import Project

AUTHORS = ("amy", "ben", "cam")
TOKEN = "the-token-of-this-ward-7"
SHARED = 6  # instances that all of them work on
HEADER = {"authorization": f"Bearer {TOKEN}"}


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres() as found:
        yield found


@dataclass
class Annotator:
    """What a page does: it shows its own edits at once, hears of others', and edits what it sees."""

    client: Client
    seed: int
    seen: dict[str, dict[str, Any]] = field(default_factory=dict)
    version: int = 0
    moved: Counter[str] = field(default_factory=Counter)
    conflicts: list[str] = field(default_factory=list)
    surprises: list[Any] = field(default_factory=list)

    def look(self) -> None:
        changes = self.client.get(f"/api/videos/v/changes?since={self.version}")
        assert not changes["more"]
        for id in changes["gone"]:
            self.seen.pop(id, None)
        self.seen |= {one["id"]: one for one in changes["annotations"]}
        self.version = changes["version"]

    def work(self, edits: int) -> None:
        """One pixel further than it was seen to be, again and again: an edit that overwrites another loses a pixel."""
        chance = random.Random(self.seed)
        name = self.client.session
        for number in range(edits):
            id = f"a{chance.randrange(SHARED)}"
            x, y, w, h = self.seen[id]["box"]
            shape = {"shapes": [{"id": id, "box": [x + 1, y, w, h]}]}
            status, said = self.client.edit(f"{name}.{number}", "instances.reshape", shape, self.version)
            if status == 200:
                self.moved[id] += 1
                self.seen[id] = {**self.seen[id], "box": [x + 1, y, w, h]}
            elif status == 409:
                self.conflicts.append(said["error"])
                self.look()
            else:
                self.surprises.append((status, said))
            if chance.random() < 0.5:
                self.look()
            if number % 10 == 9:
                flag = {"video": "v", "first": number % FRAMES, "last": number % FRAMES, "reason": name}
                status, said = self.client.edit(f"{name}.{number}.flag", "frames.flag", flag, self.version)
                if status != 200:
                    self.surprises.append((status, said))


@dataclass
class Listener:
    """A page that listens to one server."""

    host: str
    versions: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.connection = HTTPConnection(self.host, timeout=120)
        self.connection.request("GET", "/api/events", headers=HEADER)
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200
        self.thread = threading.Thread(target=self._listen, daemon=True)
        self.thread.start()

    def _listen(self) -> None:
        while line := self.answer.readline():
            if line.startswith(b"data:"):
                self.versions.append(json.loads(line[5:])["version"])

    def wait_for(self, version: int) -> None:
        end = time.monotonic() + 240
        while not self.versions or self.versions[-1] < version:
            assert time.monotonic() < end, self.versions[-3:]
            time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.timeout(900)  # at full counts
@pytest.mark.parametrize("servers", [3, pytest.param(1, marks=pytest.mark.long)])
def test_three_annotators_on_one_video(tmp_path: Path, server: Postgres, servers: int, long: bool) -> None:
    address, folder = server.new(), make_folder(tmp_path / "op")
    with ExitStack() as stack:
        options = ["--database", address, "--host", "0.0.0.0", "--token", TOKEN]
        hosts = [
            stack.enter_context(running(folder, *options, log=tmp_path / f"log{k}")).host for k in range(servers)
        ] * (3 // servers)
        begin(hosts[0], TOKEN)
        ears = [Listener(host) for host in hosts]
        people = [
            Annotator(Client(host, session=name, author=name, token=TOKEN), number)
            for number, (host, name) in enumerate(zip(hosts, AUTHORS, strict=True))
        ]
        for one in people:
            one.look()
        threads = [threading.Thread(target=one.work, args=(300 if long else 60,)) for one in people]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not [surprise for one in people for surprise in one.surprises]

        # Whoever was told of a conflict was told by whom; nobody's pixel is missing.
        conflicts = [text for one in people for text in one.conflicts]
        assert conflicts
        assert all("found changed by" in text for text in conflicts)
        made = sum((one.moved for one in people), Counter[str]())
        with Project(address) as project:
            stored = {one.id: one.box.x for one in project.instances("v", 0, SHARED - 1)}
            assert stored == {id: float(made[id]) for id in stored}
            assert {flag.reason for flag in project.flags("v")} == set(AUTHORS)
            version = project.version
            authors = Counter(one.author for one in project.operations() if one.kind == "instances.reshape")
            assert authors == {one.client.session: one.moved.total() for one in people}
            assert project.replay() == project.state()

        # Every page has heard of every edit, in order, and all see the same.
        for ear in ears:
            ear.wait_for(version)
            assert ear.versions == list(range(ear.versions[0], version + 1))
        for one in people:
            one.look()
        assert people[0].seen == people[1].seen == people[2].seen
        everything = people[0].client.get("/api/videos/v/annotations?first=0&last=49")["annotations"]
        assert people[0].seen == {one["id"]: one for one in everything}
