"""Pipes, devices, folders that cannot be listed, names that are no text: named, never waited for, never overlooked."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from surgeval.datasets import check, convert, open_dataset, open_video, read_image
from surgeval.errors import BadInput, DataError
from surgeval.records import ImageRef

Export = Callable[[str], Path]
FORMATS = ["cholect50", "voc", "yolo5", "yolo8", "labelme", "coco", "cvat"]


@pytest.fixture(autouse=True)
def _no_waiting() -> Iterator[None]:
    """A reader that waits at a pipe fails the test instead of stopping the run."""

    def give_up(*_: object) -> None:
        raise TimeoutError("a reader waits for a file that never ends")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def pipe_instead(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def endless_instead(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("instead", [pipe_instead, endless_instead])
@pytest.mark.parametrize("format", FORMATS)
def test_an_image_that_is_no_file_is_named_once(exported: Export, format: str, instead: Callable[[Path], None]) -> None:
    root = exported(format)
    image = sorted(root.rglob("*.jpg"))[1]
    instead(image)
    report = check(open_dataset(root))
    assert report.counts == {"file-not-regular": 1}
    assert str(report.problems[0]).startswith(f"{image}: found a named pipe, a device or the like")
    with pytest.raises(DataError, match="expected a regular file"):
        read_image(ImageRef(image))
    with pytest.raises(DataError, match="expected a regular file"):
        convert(open_dataset(root), root.parent / "again", "labelme")


@pytest.mark.parametrize("instead", [pipe_instead, endless_instead])
@pytest.mark.parametrize(
    ("format", "name"),
    [
        ("cholect50", "labels/VID01.json"),
        ("voc", "Annotations/train/VID01_000025.xml"),
        ("voc", "labels.json"),
        ("yolo8", "labels/train/VID01_000025.txt"),
        ("yolo8", "labels.json"),
        ("labelme", "train/VID01/000025.json"),
        ("labelme", "train/VID01/notes.json"),
        ("labelme", "labels.json"),
        ("coco", "train_annotations.json"),
        ("coco", "notes.json"),
        ("coco", "labels.json"),
        ("cvat", "train/VID01/annotations.xml"),
        ("cvat", "train/VID01/frames.json"),
        ("cvat", "labels.json"),
    ],
)
def test_a_label_file_that_is_no_file_is_named(
    exported: Export, format: str, name: str, instead: Callable[[Path], None]
) -> None:
    root = exported(format)
    instead(root / name)
    report = check(open_dataset(root))
    assert report.counts["file-not-regular"] == 1
    assert not report.ok


@pytest.mark.parametrize("instead", [pipe_instead, endless_instead])
@pytest.mark.parametrize(
    "name",
    ["phantom.json", "truth/PA1.json", "frames/PA1/000025.jpg", "frames/PA1/000026.jpg",
     "questions/focus_requests.json", "questions/focus_references.json", "questions/intent/items.jsonl"],
)  # fmt: skip
def test_a_part_of_a_phantom_that_is_no_file_is_named(
    phantom: Path, name: str, instead: Callable[[Path], None]
) -> None:
    instead(phantom / name)
    assert check(open_dataset(phantom)).counts["file-not-regular"] == 1


@pytest.mark.parametrize("instead", [pipe_instead, endless_instead])
@pytest.mark.parametrize(
    ("name", "format"),
    [("items.jsonl", "intent"), ("film.mp4", "video"), ("requests.json", "focus"), ("references.json", "focus")],
)
def test_questions_and_films_that_are_no_files_are_named(
    tmp_path: Path, name: str, format: str, instead: Callable[[Path], None]
) -> None:
    for other in ("requests.json", "references.json") if format == "focus" else ():
        (tmp_path / other).write_text("[]")
    instead(tmp_path / name)
    report = check(open_dataset(tmp_path))
    assert (report.format, report.counts["file-not-regular"]) == (format, 1)


@pytest.mark.parametrize("name", ["x.json", "items.jsonl", "x.mp4", "x.parquet", "x"])
def test_a_pipe_is_no_dataset(tmp_path: Path, name: str) -> None:
    pipe_instead(tmp_path / name)
    with pytest.raises(BadInput, match="found a named pipe, a device or the like, expected a file or a folder"):
        open_dataset(tmp_path / name)
    with pytest.raises(BadInput, match="found a named pipe, a device or the like, expected a file or a folder"):
        open_video(tmp_path / name)


def test_a_pipe_that_no_reader_wants_is_only_odd(exported: Export) -> None:
    root = exported("coco")
    os.mkfifo(root / "socket")
    report = check(open_dataset(root))
    assert (report.errors, dict(report.counts)) == (0, {"file-not-regular": 1})


@pytest.mark.parametrize("format", FORMATS)
def test_a_folder_whose_name_is_no_text_is_named(exported: Export, format: str) -> None:
    root = exported(format)
    inner = sorted(root.rglob("*.jpg"))[0].parent / os.fsdecode(b"VID\xff3")
    try:
        inner.mkdir()
    except OSError:
        pytest.skip("this file system takes only UTF-8 names")
    report = check(open_dataset(root))
    assert (report.errors, dict(report.counts)) == (1, {"file-unreadable": 1})
    assert r"found the name b'VID\xff3', expected names in UTF-8" in str(report.problems[0])
    with pytest.raises(DataError, match="expected names in UTF-8"):
        convert(open_dataset(root), root.parent / "again", "coco")


def test_a_link_to_a_folder_that_is_gone_is_named(exported: Export) -> None:
    root = exported("labelme")
    (root / "VID03").symlink_to(root / "gone")
    report = check(open_dataset(root))
    assert (report.errors, dict(report.counts)) == (1, {"file-unreadable": 1})


def test_a_link_that_leads_back_ends(exported: Export) -> None:
    root = exported("coco")
    (root / "images" / "loop").symlink_to(root)
    assert check(open_dataset(root)).ok


CHECK = """
import sys
from surgeval.datasets import check, open_dataset
report = check(open_dataset(sys.argv[1]), images=False)
print(report.errors, dict(report.counts))
"""


def test_a_folder_that_cannot_be_listed_is_named(exported: Export) -> None:
    root = exported("labelme")
    closed = root / "train" / "VID01"
    closed.chmod(0)
    try:
        if os.access(closed, os.R_OK):
            pytest.skip("this user may read every folder")
        done = subprocess.run([sys.executable, "-c", CHECK, root], capture_output=True, text=True, check=False)
        assert done.stdout == "1 {'file-unreadable': 1}\n", done.stderr
    finally:
        closed.chmod(0o755)


def test_an_empty_folder_is_no_dataset_of_films(tmp_path: Path) -> None:
    report = check(open_dataset(tmp_path, "video"))
    assert (report.ok, dict(report.counts)) == (False, {"empty": 1})
    assert "found no frame and no question" in str(report.problems[0])
    assert not check(open_video(tmp_path)).ok
