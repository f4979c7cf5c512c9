from __future__ import annotations

import filecmp
import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from surgeval.engine import Manifest, save_scored

if TYPE_CHECKING:
    from tests.e2e.conftest import Quick, Surgeval

COMMANDS = [
    (),
    ("demo",),
    ("report",),
    ("data",),
    ("data", "list"),
    ("data", "check"),
    ("data", "convert"),
    ("data", "phantom"),
    ("data", "frames"),
    ("run",),
    ("run", "focus"),
    ("run", "surgxbench"),
    ("explain",),
    ("models",),
    ("models", "list"),
    ("models", "check"),
    ("score",),
    ("score", "triplets"),
    ("score", "focus"),
    ("compare",),
    ("rank",),
]


def _tree(folder: Path) -> list[Path]:
    return sorted(p.relative_to(folder) for p in folder.rglob("*") if p.is_file())


def _one_sentence(text: str) -> str:
    lines = text.strip().splitlines()
    assert len(lines) == 1, text
    assert "Traceback" not in text
    assert lines[0].startswith("surgeval: ")
    return lines[0]


@pytest.mark.parametrize("command", COMMANDS[1:], ids=" ".join)
def test_every_command_has_help_with_an_example(surgeval: Surgeval, command: tuple[str, ...]) -> None:
    done = surgeval(*command, "--help")
    assert done.returncode == 0
    assert f"surgeval {' '.join(command)}" in re.sub(r"\s+", " ", done.stdout.split("Example", 1)[1])


def test_help_names_the_first_step(installed: Surgeval) -> None:
    done = installed("--help")
    assert done.returncode == 0
    assert "surgeval demo" in done.stdout


@pytest.mark.long  # tests/unit/phantom/test_edition.py says so of the functions behind it
def test_the_same_seed_gives_identical_files_and_another_does_not(
    installed: Surgeval, surgeval: Surgeval, small_phantom: Path, tmp_path: Path
) -> None:
    assert installed("data", "phantom", "--out", "again", "--seed", 7, "--videos", 2, "--seconds", 10).returncode == 0
    files = _tree(small_phantom)
    assert files == _tree(tmp_path / "again")
    _, different, unreadable = filecmp.cmpfiles(small_phantom, tmp_path / "again", map(str, files), shallow=False)
    assert not different
    assert not unreadable
    assert surgeval("data", "phantom", "--out", "other", "--seed", 8, "--videos", 1, "--seconds", 3).returncode == 0
    images = [p for p in files if p.suffix == ".jpg" and (tmp_path / "other" / p).exists()]
    assert images
    assert not any(filecmp.cmp(small_phantom / p, tmp_path / "other" / p, shallow=False) for p in images)


def test_a_check_says_which_questions_are_for_which_protocol(quick: Quick, small_phantom: Path) -> None:
    code, said, _ = quick("data", "check", small_phantom, "--no-images", "--json")
    found = json.loads(said)
    assert code == 0 and 0 < found["intent"] < found["questions"]
    focus = found["questions"] - found["intent"]
    _, said, _ = quick("data", "check", small_phantom, "--no-images")
    assert f"{found['questions']} questions ({focus} for focus, {found['intent']} for intent)" in " ".join(said.split())


def test_a_fresh_phantom_checks_clean(surgeval: Surgeval, small_phantom: Path) -> None:
    done = surgeval("data", "check", small_phantom)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no problems" in done.stdout


def test_check_names_a_lost_frame_a_cut_json_and_a_nan_box(
    surgeval: Surgeval, small_phantom: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(small_phantom, broken)
    truths = sorted((broken / "truth").glob("*.json"))
    lost = sorted((broken / "frames" / truths[0].stem).glob("*.jpg"))[2]
    lost.unlink()
    text = truths[0].read_text()
    start = text.index('"box":')
    truths[0].write_text(text[:start] + re.sub(r"\[\s*[-0-9.eE+]+", "[NaN", text[start:], count=1))
    truths[1].write_text(truths[1].read_text()[:-500])
    done = surgeval("data", "check", broken)
    assert done.returncode == 2
    assert lost.name in done.stdout
    assert re.search(rf"{truths[0].name}.*NaN", done.stdout)
    assert re.search(rf"{truths[1].name}.*(cut off|truncated|ends)", done.stdout)
    assert "Traceback" not in done.stdout + done.stderr


def test_check_speaks_json(surgeval: Surgeval, small_phantom: Path) -> None:
    done = surgeval("data", "check", small_phantom, "--json")
    assert done.returncode == 0
    value = json.loads(done.stdout)
    assert value["format"] == "phantom"
    assert value["frames"] == 20
    assert (value["problems"], value["errors"], value["warnings"]) == ([], 0, 0)


def test_a_broken_manifest_does_not_hide_the_rest(surgeval: Surgeval, small_phantom: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(small_phantom, broken)
    (broken / "phantom.json").write_text('{"format": "surgeval-ph')
    truth = sorted((broken / "truth").glob("*.json"))[1]
    truth.write_text(truth.read_text()[:-500])
    done = surgeval("data", "check", broken)
    assert done.returncode == 2
    assert "phantom.json" in done.stdout
    assert truth.name in done.stdout


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("data", "check", "nowhere"), "nowhere"),
        (("data", "check", "picture.jpg"), "picture.jpg"),
        (("data", "check", ".", "--format", "doc"), "'doc'"),
        (("data", "check", ".", "--labels", "cholect51"), "cholect51"),
        (("data", "phantom", "--out", "D", "--videos", "many"), "--videos"),
        (("data", "phantom", "--out", "D", "--videos", "0"), "--videos"),
        (("data", "phantom", "--out", "D", "--seconds", "-1"), "--seconds"),
        (("data", "phantom", "--out", "D", "--size", "banana"), "banana"),
        (("data", "phantom", "--out", "D", "--edition", "phantom-v9"), "phantom-v9"),
        (("data", "phantom", "--out", "D", "--edition", "phantom-v1", "--seed", "4"), "--seed"),
        (("data", "phantom"), "--out"),
        (("data", "convert", "nowhere", "--to", "coco", "--out", "x"), "nowhere"),
        (("report", "nowhere", "--out", "x"), "nowhere"),
        (("report", "picture.jpg", "--out", "x"), "picture.jpg"),
        (("data", "chek", "."), "chek"),
        (("data", "check", ".", "--nonsense"), "--nonsense"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, tuple) else "",
)
def test_bad_input_is_one_sentence_and_code_2(
    surgeval: Surgeval, tmp_path: Path, args: tuple[str, ...], words: str
) -> None:
    (tmp_path / "picture.jpg").write_bytes(b"not a picture")
    done = surgeval(*args)
    assert done.returncode == 2
    assert words in _one_sentence(done.stderr)


def test_convert_says_beforehand_what_would_be_lost(surgeval: Surgeval, small_phantom: Path) -> None:
    done = surgeval("data", "convert", small_phantom, "--to", "yolo8", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "yolo8: tracks of" in done.stdout
    written = surgeval("data", "convert", small_phantom, "--to", "yolo8", "--out", "export", "--json")
    foreseen = surgeval("data", "convert", small_phantom, "--to", "yolo8", "--dry-run", "--json")
    assert json.loads(foreseen.stdout)["losses"] == json.loads(written.stdout)["losses"]
    done = surgeval("data", "convert", small_phantom, "--to", "yolo8")
    assert done.returncode == 2
    assert "--out: found nothing" in done.stderr


def test_convert_refuses_an_unknown_format(surgeval: Surgeval, small_phantom: Path) -> None:
    done = surgeval("data", "convert", small_phantom, "--to", "doc", "--out", "x")
    assert done.returncode == 2
    assert "coco" in _one_sentence(done.stderr)


@pytest.mark.parametrize("target", ["cholect50", "voc", "labelme", "yolo8", "coco", "focus", "intent"])
def test_an_export_checks_clean(surgeval: Surgeval, small_phantom: Path, target: str) -> None:
    done = surgeval("data", "convert", small_phantom, "--to", target, "--out", "export")
    assert done.returncode == 0, done.stderr
    done = surgeval("data", "check", "export", "--strict")
    assert done.returncode == 0, done.stdout + done.stderr


def test_output_that_exists_is_not_overwritten(surgeval: Surgeval, small_phantom: Path, tmp_path: Path) -> None:
    (tmp_path / "export").mkdir()
    (tmp_path / "export" / "mine.txt").write_text("precious")
    done = surgeval("data", "convert", small_phantom, "--to", "coco", "--out", "export")
    assert done.returncode == 2
    assert "export" in _one_sentence(done.stderr)
    assert (tmp_path / "export" / "mine.txt").read_text() == "precious"


@pytest.mark.parametrize("command", [("report",), ("data", "check")], ids=" ".join)
def test_a_folder_with_other_files_is_not_written_to(
    surgeval: Surgeval, small_phantom: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("precious")
    done = surgeval(*command, small_phantom, "--out", "mine")
    assert done.returncode == 2
    assert "mine" in _one_sentence(done.stderr)
    assert [p.name for p in (tmp_path / "mine").iterdir()] == ["notes.txt"]


def test_quality_proposes_the_black_frame_and_resumes(surgeval: Surgeval, small_phantom: Path, tmp_path: Path) -> None:
    import cv2
    import numpy as np

    copy = tmp_path / "copy"
    shutil.copytree(small_phantom, copy)
    name = sorted(p.stem for p in (copy / "truth").glob("*.json"))[0]
    frame = sorted((copy / "frames" / name).glob("*.jpg"))[0]
    image = cv2.imread(str(frame))
    assert image is not None
    cv2.imwrite(str(frame), np.zeros_like(image))
    for _ in range(2):
        done = surgeval("data", "check", copy, "--quality", "--out", "runs/q", "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        drops = json.loads(done.stdout)["drop"]
        assert [name, frame.stem, "black"] in [[d["video"], d["frame"], d["reason"]] for d in drops]
    done = surgeval("run", "quality", "--data", copy, "--out", "runs/q")  # goes on with the run of the checks
    assert done.returncode == 0, done.stdout + done.stderr
    assert "were there already" in done.stdout and frame.stem in done.stdout
    assert "open runs/q/report.html" in done.stdout and (tmp_path / "runs/q/report.html").is_file()
    alone = surgeval("run", "quality", "--data", copy, "--out", "runs/alone", "--json")
    assert alone.returncode == 0, alone.stderr
    assert json.loads(alone.stdout)["drop"] == drops
    refused = surgeval("run", "quality", "--data", copy, "--out", "runs/none", "--retry")
    assert refused.returncode == 2 and "there is no run to retry" in _one_sentence(refused.stderr)


def test_names_with_terminal_escapes_are_spelt_out_wherever_they_are_printed(
    surgeval: Surgeval, small_phantom: Path, tmp_path: Path
) -> None:
    done = surgeval("data", "convert", small_phantom, "--to", "labelme", "--out", "copy")
    assert done.returncode == 0, done.stderr
    video = next(folder for folder in (tmp_path / "copy").rglob("*") if folder.is_dir() and list(folder.glob("*.json")))
    hostile = video.rename(video.with_name("V\x1b[2J\x9b31m"))
    first, second, *_ = sorted(hostile.glob("*.jpg"))
    first.write_bytes(b"no picture")
    second.unlink()
    for command in (("data", "check", "copy", "--quality", "--out", "runs/q"), ("report", "copy", "--out", "page"),
                    ("data", "convert", "copy", "--to", "voc", "--out", "voc")):  # fmt: skip
        done = surgeval(*command)
        said = done.stdout + done.stderr
        assert [c for c in said if not c.isprintable() and c != "\n"] == [], command
        if "check" in command:
            assert "V\\x1b[2J\\x9b31m" in done.stdout


def test_a_report_on_data_with_errors_is_written_and_says_so(
    surgeval: Surgeval, small_phantom: Path, tmp_path: Path
) -> None:
    done = surgeval("data", "convert", small_phantom, "--to", "labelme", "--out", "copy")
    assert done.returncode == 0, done.stderr
    next((tmp_path / "copy").rglob("0*.jpg")).unlink()
    done = surgeval("report", "copy", "--out", "out")
    assert done.returncode == 2
    assert "copy: found 1 error in the data, listed on the page" in done.stderr
    assert "image-missing" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_a_folder_of_nothing_is_told_before_a_missing_option(quick: Quick, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    code, _, err = quick("report", tmp_path / "empty")
    assert code == 2 and "empty: found nothing to report on, expected a dataset, a run or a folder of runs" in err


def test_a_report_is_one_page_with_tables(surgeval: Surgeval, small_phantom: Path, tmp_path: Path) -> None:
    done = surgeval("report", small_phantom, "--out", "out")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "Content-Security-Policy" in page
    assert list((tmp_path / "out" / "tables").glob("*.csv"))
    assert str(tmp_path / "out" / "report.html") in done.stdout.replace("\n", "") or "out/report.html" in done.stdout


def test_frames_of_films_stay_in_the_folder_whatever_the_films_are_called(surgeval: Surgeval, tmp_path: Path) -> None:
    for name in ("con.mp4", "a:b.mp4", "a-b.mp4", "A-B.mp4"):
        _film(tmp_path / name)
    done = surgeval("data", "frames", "con.mp4", "a:b.mp4", "--out", "frames")
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in (tmp_path / "frames").iterdir()) == ["a-b", "con-"]
    for pair in (("a:b.mp4", "a-b.mp4"), ("a-b.mp4", "A-B.mp4")):
        done = surgeval("data", "frames", *pair, "--out", "other")
        assert done.returncode == 2
        assert "two videos are called a-b" in _one_sentence(done.stderr)
    assert not (tmp_path / "other").exists()


def _film(path: Path) -> None:
    import av
    import numpy as np

    with path.open("wb") as file, av.open(file, "w", format="mp4") as container:
        stream = container.add_stream("libx264", rate=5)
        stream.width, stream.height, stream.pix_fmt = 64, 64, "yuv420p"
        container.mux(stream.encode(av.VideoFrame.from_ndarray(np.zeros((64, 64, 3), np.uint8), format="rgb24")))
        container.mux(stream.encode())


@pytest.mark.parametrize("below", ["", "teams"])
def test_a_folder_of_runs_is_reported_on_although_a_film_lies_beside_them(
    quick: Quick, tmp_path: Path, below: str
) -> None:
    save_scored(tmp_path / "runs" / below / "net", Manifest("triplets", model="net"), cases=1)
    _film(tmp_path / "runs" / "operation.mp4")
    code, said, errors = quick("report", "runs", "--out", "pages")
    assert code == 1 and "net: found no scores.json" in errors
    assert "pages/index.html" in said and (tmp_path / "pages" / "index.html").is_file()
    assert not (tmp_path / "pages" / "report.html").exists()
    code, said, errors = quick("data", "check", "runs", "--no-images")
    assert code == 0 and "runs: found no labels, read as video: operation.mp4" in errors


def test_a_ranking_is_named_with_its_page(quick: Quick, tmp_path: Path) -> None:
    (tmp_path / "ranking").mkdir()
    for name in ("ranking.json", "report.html"):
        (tmp_path / "ranking" / name).write_text("{}")
    for more in ((), ("--out", "other")):
        code, _, errors = quick("report", "ranking", *more)
        assert code == 2 and "ranking: found a ranking, whose page is ranking/report.html" in errors


def test_two_formats_in_one_folder_say_which_option_decides(quick: Quick, small_phantom: Path, tmp_path: Path) -> None:
    for to in ("voc", "cholect50"):
        assert quick("data", "convert", small_phantom, "--to", to, "--no-images", "--out", to)[0] == 0
        shutil.copytree(tmp_path / to, tmp_path / "both", dirs_exist_ok=True)
    code, _, errors = quick("data", "check", "both")
    assert code == 2 and "say which, for example format='cholect50', here --format cholect50" in errors


def test_an_embedded_detector_is_loaded_and_its_command_named(quick: Quick) -> None:
    code, said, _ = quick("models", "check", "tdnet-p")
    assert code == 0 and "surgeval detect SOURCE --model tdnet-p" in " ".join(said.split())
