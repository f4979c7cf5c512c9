"""A separate installed package adds a protocol, a dataset format and a model family, without an edit in surgeval."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

TOY = Path(__file__).parents[1] / "data" / "toy_protocol"
LABELS = ("instruments in a frame", "empty frames", "instruments in the median video")
Call = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A machine where the toy package is installed."""
    work = tmp_path_factory.mktemp("toy")
    source, site = work / "source", work / "site"
    subprocess.run(["cp", "-r", str(TOY), str(source)], check=True)  # the build writes beside its sources
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*install, "--disable-pip-version-check", "--target", str(site), str(source)], check=True)
    paths = [str(site), *filter(None, [os.environ.get("PYTHONPATH", "")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


@pytest.fixture(scope="module")
def toy(environment: dict[str, str]) -> Call:
    """`surgeval` there."""

    def call(*words: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "surgeval", *map(str, words)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)

    return call


@pytest.fixture(scope="module")
def runs(toy: Call, small_phantom: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs that differ in one setting."""
    folder = tmp_path_factory.mktemp("runs")
    for name, most in (("all", 9), ("few", 1)):
        done = toy("run", "crowd", "--data", small_phantom, "--out", folder / name, "--most", most)
        assert done.returncode == 0, done.stderr
        assert "report.html" in done.stdout
    return folder


def test_help_names_it_with_its_question_and_completion_offers_it(toy: Call, environment: dict[str, str]) -> None:
    said = toy("run", "--help").stdout
    assert "How crowded is the field of view?" in said
    assert "Count the instruments of every frame." in toy("run", "crowd", "--help").stdout
    shell = {"_SURGEVAL_COMPLETE": "complete_bash", "COMP_WORDS": "surgeval run cr", "COMP_CWORD": "2"}
    offered = subprocess.run(
        [sys.executable, "-c", "import sys; sys.argv = ['surgeval']; from surgeval.cli import main; main()"],
        env={**environment, **shell}, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert "crowd" in offered.stdout


def test_a_run_is_reported_again_and_stands_in_the_index(toy: Call, runs: Path) -> None:
    page = runs / "all" / "report.html"
    first = page.read_bytes()
    page.unlink()
    assert toy("report", runs / "all").returncode == 0
    assert page.read_bytes() == first
    assert "median video|frames:pooled|videos:median|most:9|interval:leave-one-video-out" in page.read_text("utf-8")
    assert toy("report", runs).returncode == 0
    index = (runs / "index.html").read_text(encoding="utf-8")
    for label in LABELS:
        assert label in index
    assert "The share of frames without an instrument." in index  # in its glossary
    assert 'href="./all/report.html"' in index


def test_its_numbers_stand_in_a_table_for_a_paper(toy: Call, runs: Path, tmp_path: Path) -> None:
    done = toy("report", runs / "all", "--out", tmp_path, "--tables", "latex")
    assert done.returncode == 0, done.stderr
    table = (tmp_path / "tables" / "numbers.tex").read_text(encoding="utf-8")
    assert all(label in table for label in LABELS) and "\\toprule" in table


def test_two_runs_are_compared_and_ranked(toy: Call, runs: Path, tmp_path: Path) -> None:
    done = toy("compare", runs / "all", runs / "few", "--out", tmp_path / "both", "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert [number["label"] for number in said["differences"]] == list(LABELS)
    assert said["differences"][0]["difference"] > 0
    page = (tmp_path / "both" / "report.html").read_text(encoding="utf-8")
    assert all(label in page for label in LABELS)
    assert "The mean number of instruments in a frame, of the video in the middle." in page
    ranked = toy("rank", runs / "all", runs / "few", "--json", "--stability", 0, "--resamples", 200)
    assert ranked.returncode == 0, ranked.stderr
    assert set(json.loads(ranked.stdout)["models"]) == {"all", "few"}


def test_it_has_a_chapter_of_the_demo(environment: dict[str, str], small_phantom: Path, tmp_path: Path) -> None:
    """Chosen, begun in a process of its own and awaited as `surgeval demo` does it, on a small phantom."""
    script = (
        "import sys; from pathlib import Path; from surgeval.cli.demo_chapters import telling;"
        "from surgeval.protocols.registry import descriptors;"
        "last = [one for one in descriptors().values() if one.chapter][-1:];"
        "begun = telling(last, Path(sys.argv[1]), '', Path(sys.argv[2]));"
        "told = list(begun.__enter__()); begun.__exit__(None, None, None);"
        "print([(one.name, str(one.chapter.page), one.ranked) for one in told], told[0].chapter.to_json()['numbers'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(small_phantom), str(tmp_path)],
        env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    page = tmp_path / "crowd" / "all" / "report.html"
    last = done.stdout.splitlines()[-1:]
    assert last and last[0].startswith(f"[('crowd', {str(page)!r}, None)] [{{'': 'instruments in a frame'"), done.stderr
    assert page.is_file()


def test_its_dataset_format_is_recognised_and_its_model_opened(toy: Call, tmp_path: Path) -> None:
    (tmp_path / "frames.marks").write_text("first\nsecond\n")
    read = toy("data", "check", tmp_path / "frames.marks", "--json")
    assert json.loads(read.stdout)["frames"] == 2, read.stderr
    opened = toy("models", "check", "blind:anywhere", "--json")
    checked = json.loads(opened.stdout)
    assert (checked["usable"], checked["family"]) == (True, "blind"), opened.stderr
