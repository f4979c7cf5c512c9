"""What a user sees: help at 80 columns, progress from the first second, one sentence where something is missing."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import typer
from tests.e2e.conftest import Quick

from surgeval.cli.app import app
from surgeval.cli.demo_chapters import ToldChapter, told_or_left_out
from surgeval.datasets import MemoryDataset
from surgeval.protocols.contract import Demo
from surgeval.protocols.registry import descriptors
from surgeval.vocab import load_labels

MOST = 10  # options that stand first
LIGHT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "transformers", "safetensors", "tokenizers", "huggingface_hub"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
from surgeval.cli import main
main()
"""


def _commands() -> Iterator[tuple[tuple[str, ...], object]]:
    waiting: list[tuple[tuple[str, ...], object]] = [((), typer.main.get_command(app))]
    while waiting:
        words, command = waiting.pop()
        yield words, command
        waiting += [((*words, name), inner) for name, inner in getattr(command, "commands", {}).items()]


def test_the_help_of_every_command_is_readable_at_80_columns(quick: Quick, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERMINAL_WIDTH", "80")
    for words, command in _commands():
        code, out, _ = quick(*words, "--help")
        assert code == 0
        assert max(map(len, out.splitlines())) <= 80, words
        told = [line.rstrip() for line in out.partition("╭")[0].splitlines()]
        for line, following in pairwise(told):  # a paragraph flows: no line ends where the next word had room
            word = following.split()[:1]
            assert not (line.strip() and word) or len(line) + 1 + len(word[0]) > 78, (words, line)
        options = [name for one in getattr(command, "params", ()) for name in one.opts if name.startswith("--")]
        shown = set(re.findall(r"--[a-z][a-z0-9-]*", out))
        assert set(options) <= shown, words  # none cut short
        main = out.partition("─ Options ─")[2].partition("╰")[0]
        named = set(re.findall(r"^│ \*? +(--[a-z0-9-]+)|^│ (--[a-z0-9-]+)", main, flags=re.MULTILINE))
        assert len(named - {("--help", ""), ("", "--help")}) <= MOST, words


def test_the_first_help_groups_the_commands_and_asks_the_questions(quick: Quick) -> None:
    _, out, _ = quick("--help")
    assert "right for the right reason?" in out
    for panel in ("Start here", "Data:", "A model:", "Several models:", "Tools"):
        assert f"─ {panel}" in out


def _until(words: list[str], cwd: Path, mark: bytes, seconds: float) -> bytes:
    """What the command shows on a terminal until the mark, then it is interrupted."""
    mine, theirs = pty.openpty()
    process = subprocess.Popen(words, cwd=cwd, stdout=theirs, stderr=theirs, env={**os.environ, "TERM": "xterm"})
    os.close(theirs)
    seen, deadline = b"", time.monotonic() + seconds
    try:
        while mark not in seen and time.monotonic() < deadline:
            if select.select([mine], [], [], 0.2)[0]:
                try:
                    seen += os.read(mine, 4096)
                except OSError:  # the other end is closed
                    break
    finally:
        process.kill()
        process.wait()
        os.close(mine)
    return seen


def test_a_terminal_shows_what_is_done_long_before_the_model_is_loaded(small_phantom: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-X", "importtime", "-m", "surgeval", "run", "surgxbench", "--data", str(small_phantom)]
    seen = _until([*words, "--model", "phantom-clip", "--out", "run"], tmp_path, b"preparing", 120)
    assert b"preparing" in seen
    assert not re.search(rb"\| +torch\r?\n", seen)  # it had not been imported by then


def test_without_a_terminal_frames_are_counted_on_standard_error_and_the_time_is_told(
    quick: Quick, small_phantom: Path, tmp_path: Path
) -> None:
    few = ("--task", "instruments", "--every", "5", "--curves", "2", "--sanity", "0", "--no-occlusion")
    asked = ("run", "surgxbench", "--data", small_phantom, "--model", "phantom-clip", *few, "--gallery", "0")
    first, second, *_, last = quick(*asked, "--out", "run")[2].splitlines()
    assert (first, second) == ("loading phantom-clip", "frames 0/4, checks 0/2")
    assert last.startswith("time: ") and all(word in last for word in ("loading", "frames", "checks", "page"))
    assert set(json.loads((tmp_path / "run/timing.json").read_text())) >= {"frames", "checks", "page"}
    assert quick(*asked, "--out", "run", "--json")[2] == ""


def test_the_light_install_says_one_sentence_at_once(tmp_path: Path) -> None:
    for words in (
        ("explain", "x.png", "--model", "phantom-clip", "--prompt", "a hook"),
        ("run", "surgxbench", "--data", "D", "--model", "phantom-clip", "--out", "run"),
        ("run", "focus", "--data", "D", "--model", "hf:X", "--out", "run"),
    ):
        done = subprocess.run(
            [sys.executable, "-c", LIGHT, *words],
            cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (2, "")
        (line,) = done.stderr.splitlines()
        assert line.endswith("found no torch, expected the models extra: pip install 'surgeval[models]'")
    assert not list(tmp_path.iterdir())


def test_equal_problems_are_counted_and_a_misspelt_kind_is_refused(quick: Quick, tmp_path: Path) -> None:
    data = tmp_path / "coco.json"
    images = [{"id": n, "file_name": f"{n:06}.png", "width": 100, "height": 80} for n in range(1, 8)]
    boxes = [{"id": n, "image_id": n, "category_id": 1, "bbox": [90, 70, 10 + n, 20], "area": 1} for n in range(1, 8)]
    value = {"images": images, "annotations": boxes, "categories": [{"id": 1, "name": "grasper"}]}
    data.write_text(json.dumps(value))
    code, out, err = quick("data", "check", data, "--no-images")
    assert code == 0, err  # boxes past the edge are odd, and usable
    assert "0 errors, 8 warnings" in out
    strict = ("data", "check", data, "--no-images", "--strict")
    assert quick(*strict)[0] == 2
    assert quick(*strict, "--allow", "box-outside", "--allow", "images-absent")[0] == 0
    assert "box-outside: 7 times in 1 file, first:" in out
    assert out.count("expected a box inside") <= 3
    code, out, err = quick("data", "check", data, "--allow", "box-outsid")
    assert (code, out) == (2, "")
    assert "--allow: found 'box-outsid'" in err and "box-outside" in err


def test_the_demo_leaves_out_the_chapter_whose_packages_are_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("surgeval.console.extras.models_missing", lambda: "torch")
    given = Demo(dataset=MemoryDataset(load_labels("cholect50"), ()), edition="phantom-v1", out=tmp_path / "chapter")
    told = told_or_left_out(descriptors()["surgxbench"], given)
    assert told.chapter == "surgxbench: found no torch, expected the models extra: pip install 'surgeval[models]'"
    assert not told.failed
    assert not (tmp_path / "chapter").exists()


def test_the_demo_leaves_out_the_chapter_of_a_package_that_is_broken(tmp_path: Path) -> None:
    given = Demo(dataset=MemoryDataset(load_labels("cholect50"), ()), edition="phantom-v1", out=tmp_path / "chapter")
    told = told_or_left_out(replace(descriptors()["surgxbench"], chapter=":chapter"), given)
    assert told.chapter == "protocol surgxbench: chapter = ':chapter': ValueError: Empty module name"
    assert told.failed


def test_a_demo_with_a_chapter_that_failed_goes_on_and_ends_with_code_1(
    tmp_path: Path, small_phantom: Path, monkeypatch: pytest.MonkeyPatch, quick: Quick
) -> None:
    told = ToldChapter("bad", "protocol bad: chapter = 'a:b': RuntimeError", failed=True)
    monkeypatch.setattr("surgeval.phantom.write_edition", lambda *given, **named: small_phantom)
    monkeypatch.setattr("surgeval.cli.demo.telling", lambda *given: nullcontext(iter([told])))
    monkeypatch.setattr("surgeval.report.write_index", lambda out, **named: out / "index.html")
    code, out, err = quick("demo", "--out", tmp_path, "--json")
    assert (code, err) == (1, f"surgeval: note: {told.chapter}\n")
    assert json.loads(out)["bad"] == {"left_out": told.chapter}


def test_an_output_that_is_not_utf8_is_no_reason_to_stop(tmp_path: Path) -> None:
    words, place = [sys.executable, "-m", "surgeval", "--help"], {**os.environ, "PYTHONIOENCODING": "cp1252"}
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, env=place, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert b"?instrument, verb, target?" in done.stdout


def test_too_little_memory_is_one_sentence(quick: Quick, monkeypatch: pytest.MonkeyPatch) -> None:
    def needs_more(*_: object, **__: object) -> None:
        raise MemoryError("Unable to allocate 745. GiB")

    monkeypatch.setattr("surgeval.cli.app.app", needs_more)
    said = "surgeval: memory: found too little (Unable to allocate 745. GiB), expected room for this command"
    assert quick("data", "list") == (2, "", f"{said}\n")
