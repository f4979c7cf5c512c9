"""The pages about detectors show commands that exist: every option is known, and none that is needed is left out."""

from __future__ import annotations

import importlib.util
import re
import shlex
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from typer.main import get_command

from surgeval.cli.app import app
from surgeval.protocols.training import choose_folds
from surgeval.records import Video
from surgeval.vocab import folds

ROOT = Path(__file__).parents[2]
PAGES = ("detectors", "detector-results")
BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)


def blocks(page: str) -> list[tuple[str, str, str]]:
    return BLOCK.findall((ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8"))


LINES = [line[2:] for page in PAGES for kind, _, text in blocks(page) if kind == "console"
         for line in text.splitlines()]  # fmt: skip


def found(words: list[str]) -> tuple[Any, list[str]]:
    """The command of a line and the words behind its name."""
    command: Any = get_command(app)
    while hasattr(command, "commands"):
        command, words = command.commands[words[0]], words[1:]
    return command, words


@pytest.fixture(scope="module")
def study() -> ModuleType:
    spec = importlib.util.spec_from_file_location("study_of_detectors", ROOT / "studies" / "detectors.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("line", LINES)
def test_a_documented_command_is_understood(line: str, study: ModuleType) -> None:
    words = shlex.split(line)
    if words[0] == "surgeval":
        command, rest = found(words[1:])
        command.make_context(command.name, rest)  # a UsageError names what is wrong
    elif words[1] == "studies/detectors.py":
        study.parser().parse_args(words[2:])
    else:
        assert words[0] == "python" and (ROOT / words[1]).is_file()


def test_there_are_commands_on_every_page() -> None:
    assert len(LINES) >= 20


def test_the_documented_folds_are_folds(tmp_path: Path) -> None:
    videos = [Video(name) for fold in folds("prostatd").values() for name in fold.test]
    files = {title: text for kind, title, text in blocks("detectors") if kind == "json"}
    for title, text in files.items():
        (tmp_path / title).write_text(text)
    first = choose_folds(videos, tmp_path / "fold1.json").fold("fold1")
    assert first.test == folds("prostatd")["fold1"].test
    assert choose_folds(videos, tmp_path / "folds.json").fold("first").val == ("psiv7",)
