"""Below the command line messages speak Python: flags and commands are added where a person at a terminal reads."""

from __future__ import annotations

import ast
import pickle
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.main
from PIL import Image

import surgeval
from surgeval.cli.app import app, run
from surgeval.datasets import open_dataset
from surgeval.errors import NotScored, UnclearFormat

SOURCES = Path(surgeval.__file__).parent
OF_COMMANDS = ("cli", "console")
MODULES_OF_COMMANDS = ("__main__.py",)
COMMANDS = "|".join(sorted(typer.main.get_command(app).commands))  # type: ignore[attr-defined]
COMMAND_WORDS = re.compile(rf"(?<![\w-])--[a-z][a-z-]*|\bsurgeval (?:{COMMANDS})\b")
# Texts that are no messages, and why they may say what a command says.
ALLOWED = {
    ("questions/generate.py", "surgeval questions"): "the mark that made questions carry in their files",
    **{
        ("protocols/focus/asking/run.py", flag): "the command line that scores a run"
        for flag in ("--judge", "--out", "--references", "--requests", "--responses", "--track")
    },
}
DECLARED = ("Command", "Help", "common")  # what the help of a command is declared by


def texts(source: str) -> Iterator[tuple[int, str]]:
    """Every text of a module but docstrings and declared help; of an f-string, what stands between its values."""
    tree = ast.parse(source)
    spoken = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    first = [node.body[0] for node in ast.walk(tree) if isinstance(node, spoken) and node.body]
    docs = {id(one.value) for one in first if isinstance(one, ast.Expr)}
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    docs |= {id(inner) for node in calls if getattr(node.func, "id", "") in DECLARED for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.lineno, node.value


def command_words(source: str) -> list[tuple[int, str]]:
    """Flags, and `surgeval` before the name of a command, in the texts of a module."""
    return sorted((line, match[0]) for line, text in texts(source) for match in COMMAND_WORDS.finditer(text))


def test_no_text_below_the_command_line_names_a_flag_or_a_command() -> None:
    found, used = [], set()
    for path in SOURCES.rglob("*.py"):
        inside = path.relative_to(SOURCES)
        if inside.parts[0] in OF_COMMANDS or path.name in MODULES_OF_COMMANDS:
            continue
        for line, words in command_words(path.read_text("utf-8")):
            used.add((inside.as_posix(), words))
            found += [] if (inside.as_posix(), words) in ALLOWED else [f"{inside}:{line}: {words}"]
    assert found == []
    assert used == set(ALLOWED)  # none is allowed that is not needed


def test_flags_and_commands_are_found_in_plain_and_in_formatted_texts() -> None:
    said = 'raise E(f"{x}: say --format {x}", "then surgeval score focus", "a--b")'
    program = f'def f(x):\n    """Not `--this`."""\n    {said}\n'
    assert command_words(program) == [(3, "--format"), (3, "surgeval score")]


@pytest.fixture
def two_formats(tmp_path: Path) -> Path:
    Image.new("RGB", (64, 48)).save(tmp_path / "1.png")
    (tmp_path / "1.xml").write_text("<annotation><filename>1.png</filename></annotation>")
    (tmp_path / "1.txt").write_text("0 0.5 0.5 0.1 0.1\n")
    return tmp_path


def test_a_terminal_is_told_the_flag_and_python_the_argument(
    two_formats: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UnclearFormat, match=r"found files of voc and yolo.*format='voc'$") as refused:
        open_dataset(two_formats)
    assert refused.value.formats == ("voc", "yolo")
    assert run(["data", "check", str(two_formats)]) == 2
    assert capsys.readouterr().err.endswith("format='voc', here --format voc\n")
    (two_formats / "none").mkdir()
    assert run(["data", "check", str(two_formats / "none")]) == 2
    assert capsys.readouterr().err.endswith(" (`surgeval data list` describes them)\n")


def test_what_helps_survives_the_way_out_of_a_worker_process() -> None:
    assert pickle.loads(pickle.dumps(UnclearFormat("x", ("a", "b")))).formats == ("a", "b")
    assert pickle.loads(pickle.dumps(NotScored("x", "focus"))).protocol == "focus"
