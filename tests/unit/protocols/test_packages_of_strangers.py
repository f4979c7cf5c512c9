"""Packages of other people that are broken: each costs a note of one line, everything else works without it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from tests.plugins import install_plugin

rare = partial(pytest.param, marks=pytest.mark.long)  # another case of what the others show: a process each
HELP = (["--help"], ["run", "--help"], ["data", "phantom", "--help"])
CALL = "import json, sys\nfrom surgeval.cli.app import run\nprint([run(a) for a in json.loads(sys.argv[1])])"
MADE = "from surgeval.protocols.descriptor import Descriptor as C\n"


def made(**fields: object) -> str:
    """The source of a module with a descriptor."""
    usual = {"name": "bad", "question": "?", "load": "a:b", "page": "a:b"}
    return f"{MADE}D = C(**{usual | fields!r})\n"


def called(
    folder: Path, group: str, entry: str, module: str, commands: object = HELP, command_module: str = ""
) -> subprocess.CompletedProcess[str]:
    """What `surgeval` says to these commands where a package with this module is installed."""
    name, _, target = entry.partition(" = ")
    install_plugin(folder, group, {name: target}, bad=module, bad_command=command_module)
    paths = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH", "")]))
    return subprocess.run(
        [sys.executable, "-c", CALL, json.dumps(commands)], env={**os.environ, "PYTHONPATH": paths},
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip


def works_with_one_note(done: subprocess.CompletedProcess[str], said: str) -> None:
    assert "[0, 0, 0]" in done.stdout and "surgxbench" in done.stdout, done.stderr
    (note,) = done.stderr.splitlines()
    assert note.startswith("surgeval: note: protocol ") and "bad" in note and said in note


@pytest.mark.parametrize(
    ("entry", "module", "said"),
    [
        ("gone:D", "", "ModuleNotFoundError"),
        rare("bad:D", "D = 5", "expected the Descriptor 'bad', got 5"),
        rare("bad:D", "raise SystemExit(3)", "SystemExit: 3"),
        ("bad:D", "class Panic(BaseException): pass\nraise Panic('one\\ntwo\\x1b')", r"Panic: one\ntwo\x1b"),
        rare("bad:D", made(order="x"), "whole number"),
    ],
)
def test_a_broken_protocol_leaves_the_others_alone(tmp_path: Path, entry: str, module: str, said: str) -> None:
    works_with_one_note(called(tmp_path, "surgeval.protocols", f"bad = {entry}", module), said)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        rare("def (", "SyntaxError"),
        ("raise RuntimeError('one\\ntwo')", r"RuntimeError: one\ntwo"),
        rare("raise SystemExit(3)", "SystemExit: 3"),
        rare("run = dict", "no signature"),
        rare("run = 5", "expected a function"),
        rare("def run(x: 'NoSuch'): pass", "the command line cannot give x"),
        ("def run(x: list[complex]): pass", "the command line cannot give x"),
    ],
)
def test_a_broken_command_leaves_the_others_alone(tmp_path: Path, source: str, said: str) -> None:
    is_one_sentence(tmp_path, made(run="bad_command:run"), source, said)


@pytest.mark.parametrize(
    ("address", "said"),
    [("nomodule:run", "nomodule"), (":run", "ValueError: Empty module name"), (".x:run", "run = '.x:run': TypeError")],
)
def test_a_command_without_a_function_leaves_the_others_alone(tmp_path: Path, address: str, said: str) -> None:
    is_one_sentence(tmp_path, made(run=address), "", said)


def is_one_sentence(folder: Path, module: str, source: str, said: str) -> None:
    """The command says in one sentence what is wrong with it; the help of all others is as ever."""
    commands = [["run", "bad", "--help"], ["--help"], ["run", "--help"], ["run", "quality", "--help"]]
    done = called(folder, "surgeval.protocols", "bad = bad:D", module, commands, source)
    assert "[2, 0, 0, 0]" in done.stdout, done.stderr
    (sentence,) = done.stderr.splitlines()
    assert sentence.startswith("surgeval: ") and "bad" in sentence and said in sentence


@pytest.mark.parametrize("text", ["[/nothing] seen", rare("[/bold] [bold"), rare("[bold]seen[/bold]"), "seen \x1b[2J"])
def test_questions_and_help_of_others_are_shown_whatever_they_hold(tmp_path: Path, text: str) -> None:
    module, source = made(run="bad_command:run", question=text), f"def run(): pass\nrun.__doc__ = {text!r}"
    commands = [*HELP[:2], ["run", "bad", "--help"]]
    done = called(tmp_path, "surgeval.protocols", "bad = bad:D", module, commands, source)
    assert "[0, 0, 0]" in done.stdout and not done.stderr, done.stderr
    assert done.stdout.count(text.replace("\x1b", "\\x1b")) >= 2
    assert "\x1b" not in done.stdout


def test_ctrl_c_is_not_kept_back(tmp_path: Path) -> None:
    module = made(run="bad_command:run")
    commands = [["--help"], ["run", "bad", "--help"]]
    done = called(tmp_path, "surgeval.protocols", "bad = bad:D", module, commands, "raise KeyboardInterrupt")
    assert done.stderr.startswith("surgeval: interrupted") and "[0, 130]" in done.stdout


@pytest.mark.parametrize(
    ("source", "said"),
    [
        rare("def kind(): raise RuntimeError('x')", "RuntimeError: x"),
        ("def kind(): return None", "found None, expected a FolderKind"),
        rare("from surgeval.protocols.contract import FolderKind\ndef kind(): return FolderKind(\n"
         " noun='heap', to_compare='', holds=5, write_page=5, section=5)",
         "protocol bad: folders = 'bad_command:kind': TypeError"),
    ],
)  # fmt: skip
def test_folders_of_others_do_not_take_reports_away(tmp_path: Path, source: str, said: str) -> None:
    commands = [["report", str(tmp_path)]]
    module = made(folders="bad_command:kind")
    done = called(tmp_path, "surgeval.protocols", "bad = bad:D", module, commands, source)
    note, answer = done.stderr.splitlines()
    assert note.startswith("surgeval: note: ") and said in note
    assert "found nothing to report on" in answer


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def (", "SyntaxError"),
        rare("raise SystemExit(3)", "SystemExit: 3"),
        rare("D = 5", "expected the Format 'bad'"),
        rare("def D(): pass\nD.name = D.title = 5\nD.detect = D.open = print", "expected the Format 'bad'"),
        ("class D:\n name = title = 'bad'\n open = print\n def detect(self, path): raise RuntimeError('one\\ntwo')",
         r"dataset format bad: detect is left out as it fails with: RuntimeError: one\ntwo"),
    ],
)  # fmt: skip
def test_a_broken_dataset_format_leaves_the_others_alone(tmp_path: Path, source: str, said: str) -> None:
    (tmp_path / "labels").mkdir()
    (tmp_path / "labels" / "VID01_000012.txt").write_text("3 0.5 0.5 0.2 0.1")
    commands = [["data", "check", str(tmp_path), "--labels", "cholec80"], ["data", "list"]]
    done = called(tmp_path, "surgeval.datasets", "bad = bad:D", source, commands)
    assert "found no image, expected an image for each label" in done.stdout and ", 0]" in done.stdout, done.stderr
    notes = [line for line in done.stderr.splitlines() if line.startswith("surgeval: note: ")]
    assert said in notes[0] and len(notes) == 1 and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def (", "SyntaxError"),
        rare("raise SystemExit(3)", "SystemExit: 3"),
        (
            "from surgeval.models import ModelFamily\nD = ModelFamily('bad', '', 'bad:open')\n"
            "def open(place, name, dtype): raise RuntimeError(place)",
            "RuntimeError: here",
        ),
    ],
)
def test_a_broken_model_of_others_is_a_sentence(tmp_path: Path, source: str, said: str) -> None:
    commands = [["models", "list"], ["models", "check", "bad:here"]]
    done = called(tmp_path, "surgeval.models", "bad = bad:D", source, commands)
    assert "[0, 2]" in done.stdout, done.stderr
    assert said in done.stdout + done.stderr and "Traceback" not in done.stderr


def test_a_second_protocol_of_one_name_does_not_replace_ours(tmp_path: Path) -> None:
    done = called(tmp_path, "surgeval.protocols", "triplets = bad:D", made(name="triplets", question="Mine now"))
    assert "Mine now" not in done.stdout
    assert "surgeval.protocols.triplets:DESCRIPTOR has this name already" in done.stderr
