"""A project of one small video, on SQLite and on a PostgreSQL server that the tests start for themselves."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.postgres import Postgres, postgres
from tests.studio_project import Project

from surgeval.records import Box
from surgeval.studio.store import Annotation

FRAMES = 40


@pytest.fixture(scope="session")
def server() -> Iterator[Postgres]:
    """A private PostgreSQL server."""
    with postgres() as found:
        yield found


@pytest.fixture(scope="session")
def template(server: Postgres) -> str:
    """The name of a database that holds the filled project: a copy is made faster than a new one."""
    server.run("CREATE DATABASE filled")
    with Project(f"{server.url}/filled") as opened:
        filled(opened)
    return "filled"


@pytest.fixture
def database_url(server: Postgres, template: str) -> str:
    """A database with the filled project."""
    return server.new(template)


def filled(project: Project) -> Project:
    """One video; scissors #1 in every frame, scissors #2 in the second half, an aspirator in even frames."""
    editor = project.edit("setup")
    editor.add_video("v", width=640, height=480, names=[f"frame_{n:03}.jpg" for n in range(FRAMES)])
    box = Box(10.0, 20.0, 30.0, 40.0)
    boxes = [Annotation(f"a{n}", "v", n, "tools", "scissors", box, track=1) for n in range(FRAMES)]
    boxes += [Annotation(f"b{n}", "v", n, "tools", "scissors", box, track=2) for n in range(FRAMES // 2, FRAMES)]
    boxes += [Annotation(f"c{n}", "v", n, "tools", "aspirator", box, track=1) for n in range(0, FRAMES, 2)]
    editor.add_instances(boxes)
    return project


@pytest.fixture(scope="session")
def filled_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The filled project as a folder to copy."""
    folder = tmp_path_factory.mktemp("filled")
    with Project(folder) as opened:
        filled(opened)
    return folder


@pytest.fixture(params=["sqlite", "postgres"])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Project]:
    """The filled project, on either database; afterwards its operations must still give its state."""
    if request.param == "sqlite":
        where = str(shutil.copytree(request.getfixturevalue("filled_folder"), tmp_path / "project"))
    else:
        where = request.getfixturevalue("database_url")
    with Project(where) as opened:
        yield opened
        assert opened.replay() == opened.state()


@pytest.fixture
def local(filled_folder: Path, tmp_path: Path) -> Iterator[Project]:
    """The same on SQLite only."""
    with Project(shutil.copytree(filled_folder, tmp_path / "project")) as opened:
        yield opened
        assert opened.replay() == opened.state()
