"""Parts of another package's protocol that fail while they run: one sentence with its name, and no traceback."""

from __future__ import annotations

import ast
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.unit.protocols.test_packages_of_strangers import called, made

from surgeval.cli.demo_chapters import told_or_left_out
from surgeval.datasets import MemoryDataset
from surgeval.engine import Manifest, Unit
from surgeval.engine import run as run_units
from surgeval.protocols.contract import Demo
from surgeval.protocols.descriptor import Descriptor
from surgeval.records import Case
from surgeval.vocab import load_labels

rare = partial(pytest.param, marks=pytest.mark.long)  # another case of what the others show: a process each
PARTS = ("load", "page", "pair", "outcomes", "chapter", "run")
SOUND = """
from pathlib import Path
import polars as pl
import typer
from surgeval.engine import load_cases
from surgeval.pages import Section, write_page
from surgeval.protocols.comparison import Pair
from surgeval.protocols.contract import Chapter, FolderKind, Headline
from surgeval.protocols.result import RunResult
from surgeval.stats import Interval, Measure, paired_difference

class Result(RunResult):
    protocol, notes = "bad", ()
    def __init__(self, name): self.name = name
    tables = {"all": pl.DataFrame({"a": [1]})}
    def headlines(self): return (Headline("n", "number", Interval(estimate=1.0, low=1.0, high=1.0)),)
def load(folder): return Result(folder.name)
def page(results, out): return write_page(out / "report.html", results[0].name, [Section("All")], kind="bad")
def pair(a, b):
    measure = Measure(key="n", label="number", explanation="A number.")
    gaps = {"n": paired_difference([1, 0], [0, 0], ["a", "b"])}
    return Pair(measures=(measure,), differences=lambda resamples, seed: gaps)
def outcomes(result):
    rows = {"qID": ["1", "2"], "video": ["a", "b"], "group": ["all"] * 2, "ood": [False] * 2, "correctness": [1, 0]}
    return pl.DataFrame(rows)
def chapter(demo): return Chapter(title="t", page=demo.out / "report.html", runs=(), table=pl.DataFrame({"a": [1]}))
def run(): "Example: [bold]surgeval run bad[/bold]"
def fails(*given, **named): raise RuntimeError("one\\ntwo")
"""


def count(payload: dict[str, Any]) -> list[Case]:
    return [Case("1", payload["video"], values={"a": 1})]


def stranger(folder: Path, source: str, *commands: list[str], **parts: str) -> tuple[list[int], list[str]]:
    """The exit codes of these commands with this package, and what was said on standard error."""
    module = made(**{part: f"bad_command:{part}" for part in PARTS}, **parts)
    done = called(folder, "surgeval.protocols", "bad = bad:D", module, commands, SOUND + source)
    assert "Traceback" not in done.stderr, done.stderr
    codes: list[int] = ast.literal_eval(done.stdout.splitlines()[-1])
    return codes, [line for line in done.stderr.splitlines() if line.startswith("surgeval: ")]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two runs of the stranger's protocol and one of ours in a folder."""
    from surgeval import score_recognition

    for name in ("a", "b"):
        units, manifest = [Unit("V1", {"video": "V1"})], Manifest("bad", {}, "")
        run_units(units, count, folder=tmp_path / "runs" / name, manifest=manifest, progress=False)
    labels = [[1, 0], [0, 1]] * 2
    score_recognition(labels, labels, ["v1", "v1", "v2", "v2"]).save(tmp_path / "runs" / "ours")
    return tmp_path / "runs"


def test_the_stranger_of_these_tests_is_sound(runs: Path, tmp_path: Path) -> None:
    a, b = str(runs / "a"), str(runs / "b")
    commands = (["report", a], ["report", str(runs)], ["compare", a, b], ["run", "bad"],
                ["rank", a, b, "--stability", "0", "--calibration", "0", "--resamples", "100"])  # fmt: skip
    assert stranger(tmp_path, "", *commands) == ([0] * 5, [])


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("load = page = pair = outcomes = fails", r"RuntimeError: one\ntwo"),
        rare("def load(folder): raise SystemExit(3)", "load = 'bad_command:load': SystemExit: 3"),
        rare("def load(folder): return None", "load = 'bad_command:load': found None, expected a RunResult"),
        ("class Panic(BaseException): pass\ndef load(*given): raise Panic", "Panic"),
        rare("class Odd(Exception):\n def __str__(self): raise ValueError\ndef load(*given): raise Odd", "Odd"),
        ("def page(results, out): return None\ndef pair(a, b): return 5\ndef outcomes(result): return {}",
         "expected a "),
    ],
)  # fmt: skip
def test_a_part_that_fails_is_one_sentence_with_its_protocol(
    runs: Path, tmp_path: Path, source: str, said: str
) -> None:
    a, b = str(runs / "a"), str(runs / "b")
    commands = (["report", a], ["compare", a, b], ["rank", a, b], ["run", "bad"])
    codes, lines = stranger(tmp_path, f"{source}\ndef run(): fails()", *commands)
    assert codes == [2] * 4 and len(lines) == 4, lines
    assert all(line.startswith("surgeval: protocol bad: ") for line in lines)
    assert all(said in line for line in lines[:3])
    assert lines[3].endswith(r"run = 'bad_command:run': RuntimeError: one\ntwo")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("page = fails", "page = 'bad_command:page': RuntimeError"),
        ("def load(folder):\n if folder.name == 'a': fails()\n return Result(folder.name)", "load = "),
        rare("def failing(self): fails() if self.name == 'a' else None\nResult.verdict = failing", "load = "),
        rare("Result.headlines = fails", "RuntimeError"),
        rare("Result.headlines = lambda self: (5,)", "load = "),
        rare("Result.name = property(fails)", "load = "),
        rare("Result.verdict = lambda self: 5", "load = "),
    ],
)
def test_an_index_names_what_failed_and_holds_everything_else(
    runs: Path, tmp_path: Path, source: str, said: str
) -> None:
    (code,), lines = stranger(tmp_path, source, ["report", str(runs)])
    assert code == 1 and lines and all(said in line for line in lines), lines
    index = (runs / "index.html").read_text(encoding="utf-8")
    assert "./ours/report.html" in index and "protocol bad: " in index
    assert ("./b/report.html" in index) == ("'a'" in source)


@pytest.mark.parametrize(
    ("function", "code"),
    [
        ("section=fails", 1),
        rare("section=lambda *_: 5", 1),
        ("write_page=fails", 2),
        rare("write_page=lambda *_: None", 2),
    ],
)
def test_a_kind_of_folder_that_fails_takes_no_runs_away(runs: Path, tmp_path: Path, function: str, code: int) -> None:
    sound = "holds=lambda folder: folder.name == 'heap', write_page=None, section=lambda *_: None"
    source = f"def kind(): return FolderKind(**dict(dict(noun='heap', to_compare='', {sound}), {function}))"
    (runs / "heap").mkdir()
    reported = runs if code == 1 else runs / "heap"
    (found,), (line,) = stranger(tmp_path, source, ["report", str(reported)], folders="bad_command:kind")
    assert found == code and line.startswith("surgeval: protocol bad: folders = 'bad_command:kind': ")
    assert code == 2 or "./ours/report.html" in (runs / "index.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("raise typer.Exit(3)", 3),
        rare("raise SystemExit(4)", 4),
        rare("raise typer.Abort", 130),
        ("raise KeyboardInterrupt", 130),
        rare("raise typer.BadParameter('no')", 2),
        ("raise OSError(28, 'No space left on device', 'x')", 2),
    ],
)
def test_a_command_of_a_stranger_ends_as_it_says(tmp_path: Path, source: str, code: int) -> None:
    (found,), lines = stranger(tmp_path, f"def run():\n {source}", ["run", "bad"])
    assert found == code and not any("protocol bad" in line for line in lines)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("chapter = fails", r"RuntimeError: one\ntwo"),
        ("chapter = lambda demo: None", "expected a Chapter"),
        ("made = chapter\ndef chapter(demo):\n from dataclasses import replace\n"
         " return replace(made(demo), more={'f': print})", "TypeError"),
        ("made = chapter\ndef chapter(demo):\n from dataclasses import replace\n"
         " return replace(made(demo), ranking={}, runs=('nowhere',))", "nowhere"),
        ("def chapter(demo):\n from surgeval.errors import DataError\n"
         " raise DataError('x', 'no rows')", "x: no rows"),
    ],
)  # fmt: skip
def test_a_chapter_that_fails_leaves_the_demo_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, said: str
) -> None:
    name = f"stranger_{abs(hash(source))}"
    (tmp_path / f"{name}.py").write_text(SOUND + source)
    monkeypatch.syspath_prepend(tmp_path)
    protocol = Descriptor(name="bad", question="?", load="a:b", page="a:b", chapter=f"{name}:chapter")
    demo = Demo(dataset=MemoryDataset(load_labels("cholect50"), ()), edition="", out=tmp_path)
    told = told_or_left_out(protocol, demo)
    assert told.failed and isinstance(told.chapter, str) and said in told.chapter


def test_a_defect_of_ours_is_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from surgeval.protocols.registry import descriptors

    def defect(demo: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("surgeval.protocols.quality.write_page_of", defect)
    with pytest.raises(ZeroDivisionError):
        descriptors()["quality"].part("page")([])
    with pytest.raises(ZeroDivisionError), descriptors()["quality"].answers_for("load"):
        defect(json)
