"""Claims about interrupted writing: what is finished is kept, what is not is done again, other settings are refused."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from surgeval.errors import BadInput, DataError
from surgeval.phantom import edition_hash, write_phantom

pytestmark = pytest.mark.usefixtures("same_tissue")
SMALL: dict[str, Any] = {"seed": 5, "videos": 3, "seconds": 2, "width": 128, "height": 96, "processes": 1}


@pytest.fixture(scope="module")
def whole(same_tissue: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_phantom(tmp_path_factory.mktemp("whole") / "D", **SMALL)


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_killed_write_is_continued_and_ends_as_if_nothing_had_happened(whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "D"
    program = f"from surgeval.phantom import write_phantom\nwrite_phantom({str(out)!r}, **{SMALL!r})"
    process = subprocess.Popen([sys.executable, "-c", program])
    first = out / "truth" / "A1.json"
    while not first.exists() and process.poll() is None:
        time.sleep(0.02)
    process.kill()
    process.wait()
    assert first.exists()
    assert not (out / "phantom.json").exists(), "the write was killed before its end"
    kept = first.stat().st_mtime_ns
    write_phantom(out, **SMALL)
    assert first.stat().st_mtime_ns == kept
    assert content(out) == content(whole)


def test_a_second_run_renders_nothing(whole: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (whole / "frames").rglob("*.jpg")}
    calls: list[str] = []
    write_phantom(whole, progress=lambda video, done, total: calls.append(video), **SMALL)
    assert calls == []
    assert before == {path: path.stat().st_mtime_ns for path in (whole / "frames").rglob("*.jpg")}


def test_a_missing_frame_is_made_again(whole: Path, tmp_path: Path) -> None:
    out = write_phantom(tmp_path / "D", **{**SMALL, "videos": 1})
    (out / "frames" / "A1" / "000025.jpg").unlink()
    write_phantom(out, **{**SMALL, "videos": 1})
    assert (out / "frames" / "A1" / "000025.jpg").read_bytes() == (whole / "frames" / "A1" / "000025.jpg").read_bytes()


@pytest.mark.parametrize(("key", "value"), [("seed", 6), ("seconds", 3), ("tint", "random"), ("width", 160)])
def test_other_settings_are_refused_naming_what_differs(whole: Path, key: str, value: object) -> None:
    with pytest.raises(BadInput, match=rf"A1\.json: found a video made with another .*{key}"):
        write_phantom(whole, **{**SMALL, key: value})


def test_a_folder_with_more_videos_is_refused(whole: Path) -> None:
    with pytest.raises(BadInput, match=r"found C1\.json of another dataset"):
        write_phantom(whole, **{**SMALL, "videos": 2})


def test_a_broken_truth_file_is_named(tmp_path: Path) -> None:
    out = write_phantom(tmp_path / "D", **{**SMALL, "videos": 1})
    (out / "truth" / "A1.json").write_text("{", encoding="utf-8")
    with pytest.raises(DataError, match=r"A1\.json"):
        write_phantom(out, **{**SMALL, "videos": 1})


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "D").write_text("x", encoding="utf-8")
    with pytest.raises(BadInput, match="found a file, expected a folder"):
        write_phantom(tmp_path / "D", **SMALL)


def test_progress_counts_labelled_frames(tmp_path: Path) -> None:
    calls: list[tuple[str, int, int]] = []
    write_phantom(tmp_path / "D", progress=lambda *call: calls.append(call), **{**SMALL, "videos": 1})
    assert calls == [("A1", 1, 2), ("A1", 2, 2)]


def test_more_questions_come_with_more_videos_not_with_more_runs(whole: Path) -> None:
    index = json.loads((whole / "phantom.json").read_text(encoding="utf-8"))
    requests = json.loads((whole / "questions/focus_requests.json").read_text(encoding="utf-8"))
    assert index["questions"]["focus"] == len(requests) > 0


@pytest.mark.parametrize("place", ["frames", "truth", "frames/A1", "truth/A1.json", "phantom.json", "videos/A1.mp4"])
def test_nothing_is_written_through_a_link(tmp_path: Path, place: str) -> None:
    out, elsewhere = tmp_path / "D", tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "precious").write_text("precious")
    link = out / place
    link.parent.mkdir(parents=True)
    link.symlink_to(elsewhere / "precious" if "." in place and "truth/" not in place else elsewhere)
    if place == "truth/A1.json":
        link.unlink()
        link.symlink_to(elsewhere / "new.json")
    with pytest.raises(BadInput, match="is a link, and nothing is written through links"):
        write_phantom(out, **(SMALL | {"videos": 1, "mp4": True}))
    assert [path.name for path in elsewhere.iterdir()] == ["precious"]
    assert (elsewhere / "precious").read_text() == "precious"


@pytest.mark.parametrize("name", ["../../x", "/etc/x", 7, None])
def test_an_index_that_names_a_file_elsewhere_is_refused(whole: Path, tmp_path: Path, name: object) -> None:
    shutil.copytree(whole, tmp_path / "D")
    index = json.loads((whole / "phantom.json").read_text())
    index["videos"][0]["name"] = name
    (tmp_path / "D" / "phantom.json").write_text(json.dumps(index))
    with pytest.raises(DataError, match=r"phantom\.json: name: found .*, expected the name of a video's file"):
        edition_hash(tmp_path / "D")
