"""The pages for newcomers, followed to the letter: every file they show is written, every command they show is run."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import typer
from tests.conftest import LONG

from surgeval.cli.app import app
from surgeval.phantom import write_phantom

if TYPE_CHECKING:
    from tests.conftest import Once
    from tests.e2e.conftest import Quick

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
PHANTOM = "data phantom --out phantom --seed 3 --videos 9 --seconds 12"
PROBLEM = re.compile(r"(?<!no )problem|bad_reference")
SECONDS = 12 if LONG else 4
SERVER = "http://localhost:8000/v1"
SLOW = (
    "--out tinted",
    "--out runs/clip",
    "--out runs/shortcut",
    "compare runs/clip",
    "report runs/clip",
)  # minutes: see test_surgxbench


# Checks and resamples of a command that take most of its time; in full counts it is run as it stands there.
FEWER = {"run surgxbench": ("--curves", "2", "--sanity", "1"), "rank": ("--stability", "20")}


class SaysYes(BaseHTTPRequestHandler):
    """A chat server whose model agrees with everything."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        message = {"role": "assistant", "content": "Yes"}
        data = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def address() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), SaysYes) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="session")
def practice(once: Once) -> Path:
    """The dataset that every start page makes (in short of shorter videos); made once: finished videos are kept."""
    return once("practice", lambda out: write_phantom(out, seed=3, videos=9, seconds=SECONDS, processes=1))


def test_every_example_file_is_read_as_the_page_says(quick: Quick, tmp_path: Path) -> None:
    assert follow((DOCS / "files.md").read_text(), tmp_path, quick, sound=True) >= 12
    named = (tmp_path / "runs" / "recognition" / "tables" / "classes_i.csv").read_text()
    assert "left arm" in named and "right arm" in named


@pytest.mark.parametrize("name", ["researcher", "organiser", "engineer", "chat"])
def test_every_command_of_a_start_page_is_one_of_ours(name: str) -> None:
    lines = re.findall(r"^\$ surgeval (.*)$", (DOCS / "start" / f"{name}.md").read_text(), re.MULTILINE)
    assert len(lines) >= 4
    for line in lines:
        command, words = typer.main.get_command(app), shlex.split(line)
        while inner := getattr(command, "commands", None):
            command = inner[words.pop(0)]
        _, unused, _ = command.make_parser(command.context_class(command)).parse_args(words)  # names an unknown option
        assert unused == [], line


@pytest.mark.parametrize(
    "name", ["researcher", *(pytest.param(name, marks=pytest.mark.long) for name in ("organiser", "engineer", "chat"))]
)
def test_every_start_page_can_be_followed(
    name: str, quick: Quick, practice: Path, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(practice, tmp_path / "phantom")
    monkeypatch.delenv("SURGEVAL_API_KEY", raising=False)
    page = (DOCS / "start" / f"{name}.md").read_text()
    assert PHANTOM in page
    assert follow(page.replace(SERVER, address).replace("--seconds 12", f"--seconds {SECONDS}"), tmp_path, quick) >= 4


def test_the_path_of_an_engineer_says_what_to_do_when_nothing_is_shown() -> None:
    page = (DOCS / "start" / "engineer.md").read_text()
    assert re.findall(r"^```text\n(passes|fails)\b", page, re.MULTILINE) == ["passes", "fails"]
    assert "## 5. When the grade is *inconclusive*" in page


@pytest.mark.long
def test_the_path_of_an_engineer_ends_with_two_verdicts_that_decide(quick: Quick, tmp_path: Path) -> None:
    page = (DOCS / "start" / "engineer.md").read_text()
    lines = [line for line in re.findall(r"^\$ (surgeval .*)$", page, re.MULTILINE) if " tinted " in line]
    told = [_run(line, tmp_path, quick) for line in lines]
    printed = [grade for said in told for grade in re.findall(r"^(passes|fails)\b", said, re.MULTILINE)]
    assert printed == ["passes", "fails"]


def follow(page: str, folder: Path, quick: Quick, *, sound: bool = False) -> int:
    """Write the page's files and run its commands in their order; how many there were.

    `sound` files have no problems but those that a command allows by name.
    """
    commands = 0
    for kind, title, text in BLOCK.findall(page):
        if title:
            (folder / title).parent.mkdir(parents=True, exist_ok=True)
            (folder / title).write_text(text)
        elif kind == "console":
            lines = [line[2:] for line in text.splitlines() if line.startswith("$ ")]
            for line in lines:
                if not any(words in line for words in SLOW):
                    said = _run(line, folder, quick)
                    assert not sound or "--allow" in line or not PROBLEM.search(said), f"{line}\n{said}"
                    assert "no problem of this kind was found" not in said, line
            commands += len(lines)
    return commands


def _run(line: str, folder: Path, quick: Quick) -> str:
    """What the command printed."""
    words = shlex.split(line)
    if words[0] == "surgeval":
        fewer = next((more for start, more in FEWER.items() if line.startswith(f"surgeval {start} ")), ())
        code, said, errors = quick(*words[1:], *(() if LONG else fewer))
    else:
        words = [sys.executable if words[0] == "python" else words[0], *words[1:]]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=240, check=False)
        code, said, errors = done.returncode, done.stdout, done.stderr
    assert code == 0, f"{line}\n{errors}"
    return said + errors
