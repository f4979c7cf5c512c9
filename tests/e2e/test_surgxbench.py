"""`surgeval run surgxbench`, `surgeval explain` and `surgeval models`, as a user types them.

What only checks input runs in this process: starting torch a dozen times would take longer than all other tests.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from PIL import Image
from tests.conftest import Once
from tests.e2e.conftest import Surgeval

from surgeval.cli.app import run

SETTINGS = ("--task", "instruments", "--every", "5", "--curves", "0", "--sanity", "0", "--no-occlusion")
ASKED = ("run", "surgxbench", "--model", "phantom-clip", *SETTINGS, "--gallery", "4")


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small networks on shared cores."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def _sentence(capsys: pytest.CaptureFixture[str], *args: object, code: int = 2) -> str:
    assert run([str(arg) for arg in args]) == code
    shown = capsys.readouterr()
    assert shown.out == ""
    *phase, line = shown.err.strip().splitlines()
    assert phase in ([], ["loading phantom-clip"]), phase  # what was being done
    assert line.startswith("surgeval: ")
    return line


@pytest.fixture(scope="module")
def frame(small_phantom: Path) -> Path:
    return sorted((small_phantom / "frames").rglob("*.jpg"))[4]


@pytest.fixture(scope="module")
def whole(small_phantom: Path, once: Once, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nothing interrupted; a copy, since tests run it again."""

    def make(out: Path) -> None:
        assert run([*ASKED, "--data", str(small_phantom), "--out", str(out)]) == 0

    return shutil.copytree(once("whole", make), tmp_path_factory.mktemp("whole") / "run")


def test_a_run_that_ctrl_c_stopped_is_finished_by_the_same_command(
    surgeval: Surgeval, small_phantom: Path, whole: Path, tmp_path: Path
) -> None:
    """What the same command writes then equals the cases of a run that nothing interrupted."""
    asked = (*ASKED, "--data", str(small_phantom), "--out", "run", "--json")
    words = [sys.executable, "-m", "surgeval", *asked]
    process = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 200
    while not (tmp_path / "run" / "run.json").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=200)
    assert process.returncode == 130, errors
    assert out == ""
    assert "the same command does the rest" in errors
    again = surgeval(*asked)
    assert again.returncode == 0, again.stderr
    said = json.loads(again.stdout)  # one object and nothing else
    assert said["failed"] == 0
    assert said["failures"] == []
    assert 0 <= said["headline"]["accuracy"]["estimate"] <= 1
    assert said["settings"]["method"]["name"] == "rollout"
    assert {"classes", "four_way", "references"} <= set(said["tables"])
    assert (tmp_path / said["report"]).is_file()
    assert "right but ungrounded" in (tmp_path / "run" / "report.html").read_text()
    assert {path.name for path in (tmp_path / "run" / "tables").iterdir()} >= {"headline.csv", "classes.csv"}
    assert (whole / "cases.parquet").read_bytes() == (tmp_path / "run" / "cases.parquet").read_bytes()


def test_other_settings_in_the_same_folder_are_refused_by_name(
    small_phantom: Path, whole: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = [*ASKED, "--data", str(small_phantom), "--out", str(whole), "--json"]
    before = (whole / "report.html").read_bytes()
    assert "keep_top" in _sentence(capsys, *asked, "--keep-top", "0.3")
    assert "order" in _sentence(capsys, *asked, "--order", "seed")
    assert (whole / "report.html").read_bytes() == before


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"--model": "phantom-eye"}, "phantom-eye"),
        ({"--data": "nowhere"}, "nowhere"),
        ({"--split": "exam"}, "'exam'"),
        ({"--video": "Z9"}, "'Z9'"),
        ({"--task": "phases"}, "phases"),
        ({"--dtype": "float8"}, "float8"),
        ({"--score-scale": "high"}, "high"),
        ({"--over": "videos"}, "videos"),
        ({"--flow": "raft", "--task": "triplets"}, "weights"),
        ({"--device": "quantum"}, "quantum"),
        ({"--format": "vhs"}, "vhs"),
        ({"--start-layer": "99"}, "99"),
        ({"--method": "gradcam"}, "convolutional"),
    ],
    ids=str,
)
def test_bad_input_is_one_sentence(
    small_phantom: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], changed: dict[str, str], told: str
) -> None:
    options = {"--data": str(small_phantom), "--model": "phantom-clip", "--out": str(tmp_path / "run"), **changed}
    more = () if "--task" in changed else ("--task", "instruments")
    words = [word for pair in options.items() for word in pair]
    assert told in _sentence(capsys, "run", "surgxbench", *words, *more, "--json")
    assert not (tmp_path / "run").exists()


def test_an_unreadable_frame_is_told_and_gives_exit_code_1(
    small_phantom: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "D"
    shutil.copytree(small_phantom, data)
    bad = next(path for path in sorted((data / "frames").rglob("*.jpg")) if path.stem == "000125")
    bad.write_bytes(b"\xff\xd8 cut")
    asked = [*ASKED, "--data", str(data), "--out", str(tmp_path / "run"), "--gallery", "0"]
    assert run(asked) == 1
    shown = capsys.readouterr().out
    assert "1 × unreadable" in shown
    assert bad.name in shown
    assert run([*asked, "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert said["failed"] == 1
    assert said["failures"][0]["status"] == "unreadable"


def test_explain_writes_a_picture_with_a_panel_for_each_prompt(
    frame: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    hostile = "[bold]\x1b[31mthe hook[/bold] $(touch x)\u202e <b>"
    words = ("explain", str(frame), "--model", "phantom-clip", "--prompt", "The hook is in the image")
    assert run([*words, "--prompt", hostile]) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "[bold]" in shown
    width, height = Image.open(frame).size
    with Image.open(tmp_path / f"{frame.stem}-heatmap.png") as picture:
        assert picture.format == "PNG"
        assert picture.width == 3 * width
        assert height + 45 < picture.height < 2 * height  # captions of two lines and the legend
    assert run([*words, "--out", "sub/one.png", "--json", "--method", "rollout", "--order", "seed"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["method"]["order"] == "seed"
    assert said["visible"] == 1
    assert [one["prompt"] for one in said["prompts"]] == ["The hook is in the image"]
    with Image.open(tmp_path / "sub" / "one.png") as picture:
        assert picture.width == 2 * width
        assert height + 26 < picture.height < 2 * height
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{frame.stem}-heatmap.png", "sub"]


def test_explain_refuses_what_it_cannot_do_in_one_sentence(
    frame: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model = ("--model", "phantom-clip")
    prompt = ("--prompt", "The hook is in the image")
    assert "none.png" in _sentence(capsys, "explain", "none.png", *model, *prompt)
    assert "empty" in _sentence(capsys, "explain", frame, *model, "--prompt", "  ")
    assert ".png" in _sentence(capsys, "explain", frame, *model, *prompt, "--out", "heat.jpg")
    assert "phantom-eye" in _sentence(capsys, "explain", frame, "--model", "phantom-eye", *prompt)
    assert "convolutional" in _sentence(capsys, "explain", frame, *model, *prompt, "--method", "gradcam")
    assert "keep_top" in _sentence(capsys, "explain", frame, *model, *prompt, "--keep-top", "0")
    (tmp_path / "notes.png").write_text("no picture")
    assert "notes.png" in _sentence(capsys, "explain", "notes.png", *model, *prompt)
    own = tmp_path / "own.png"
    Image.open(frame).save(own)
    before = own.read_bytes()
    assert "the image itself" in _sentence(capsys, "explain", own, *model, *prompt, "--out", "own.png")
    assert own.read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["notes.png", "own.png"]  # noqa: PTH208


def test_models_are_listed_and_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["models", "list", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    scoring, answering, detecting = (
        {"phantom-clip", "phantom-clip-resnet", "phantom-shortcut"},
        {"phantom-llava", "phantom-sycophant"},
        {"tdnet-p"},
    )
    assert scoring | answering | detecting == set(said["embedded"])
    assert "surgvlp" in said["kinds"]
    assert run(["models", "list"]) == 0
    assert "phantom-shortcut" in capsys.readouterr().out
    assert run(["models", "check", "phantom-clip"]) == 0
    assert "it can be used" in capsys.readouterr().out
    broken = tmp_path / "broken.pth"
    broken.write_bytes(b"PK\x03\x04 cut")
    assert run(["models", "check", str(broken), "--json"]) == 2
    said = json.loads(capsys.readouterr().out)
    assert said["problems"]


def test_runs_of_several_models_stand_side_by_side_on_one_page(
    small_phantom: Path, whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(whole, tmp_path / "again")
    capsys.readouterr()
    assert run(["report", str(whole), str(tmp_path / "again"), "--out", str(tmp_path / "both"), "--json"]) == 0
    page = Path(json.loads(capsys.readouterr().out)["report"])
    text = page.read_text(encoding="utf-8")
    assert "Where do they look?" in text and ">again<" in text and f">{whole.name}<" in text
    assert text.count('class="card"') == 2 * 4  # the galleries of both
    assert (tmp_path / "both" / "tables" / "2_classes.csv").read_bytes() == (
        tmp_path / "both" / "tables" / "1_classes.csv"
    ).read_bytes()
    said = _sentence(capsys, "report", whole, small_phantom, "--out", tmp_path / "mixed")
    assert "found no run.json, expected run folders only, or one dataset" in said
    assert "Give them different names" in _sentence(capsys, "report", whole, whole, "--out", tmp_path / "twice")
    assert "expected another folder" in _sentence(capsys, "report", whole, "--out", whole)


def test_a_run_compared_with_itself_differs_by_nothing_and_has_a_page(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(whole, tmp_path / "again")
    capsys.readouterr()
    words = ["compare", str(whole), str(tmp_path / "again"), "--out", str(tmp_path / "both")]
    assert run([*words, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    keys = [row["number"] for row in said["differences"]]
    assert keys[:3] == ["accuracy", "tp_ac", "tp_lift"]
    assert {row["difference"] for row in said["differences"]} == {0.0}
    assert Path(said["report"]).is_file()


def test_runs_are_ranked_by_how_often_their_best_prompt_is_right(
    small_phantom: Path, whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "shortcut"
    asked = [word.replace("phantom-clip", "phantom-shortcut") for word in ASKED]
    assert run([*asked, "--data", str(small_phantom), "--out", str(other), "--gallery", "0"]) == 0
    capsys.readouterr()
    assert run(["rank", str(whole), str(other), "--resamples", "100", "--stability", "0", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert set(said["models"]) == {whole.name, "shortcut"}
    assert list(said["bucket_rank"]) == ["instruments|id"]


def test_one_split_of_an_edition_can_be_filmed_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = _sentence(capsys, "data", "phantom", "--out", tmp_path / "x", "--videos", "1", "--split", "holiday")
    assert "found no 'holiday' among 1 videos" in said
