"""The page of commands is made from the commands: none is missing, and it is Markdown, not terminal markup."""

from __future__ import annotations

import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
import typer.main

from surgeval.cli.app import app

HOOK = Path(__file__).parents[2] / "docs" / "command_reference.py"


@pytest.fixture(scope="module")
def page() -> str:
    spec = spec_from_file_location("command_reference", HOOK)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    text: str = module.reference()
    return text


def test_every_command_has_its_chapter(page: str) -> None:
    chapters = re.findall(r"^## surgeval (.+)$", page, re.MULTILINE)
    tree = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    words = [*tree, *(f"{name} {word}" for name, group in tree.items() for word in getattr(group, "commands", {}))]
    assert sorted(chapters) == sorted(words)


def test_options_say_what_they_take(page: str) -> None:
    chapter = page.split("## surgeval data phantom")[1].split("## ")[0]
    assert "| `--tint` NAME | Colour cue" in chapter
    assert "One of none, random, by_instrument." in chapter
    assert "| `--out` PATH |" in chapter
    assert "**Required.**" in chapter
    assert "| `--mp4` | Also write" in chapter


def test_no_terminal_markup_reaches_the_page(page: str) -> None:
    assert not re.findall(r"\[/?(?:bold|dim)\]", page)
    assert "\n    surgeval demo --out demo\n" in page
