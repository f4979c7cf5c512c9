"""Whatever a dataset calls its splits, videos and frames: files stay in the folder, and every frame has its own."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from surgeval.datasets import MemoryDataset, check, convert, media_paths, open_dataset, read_image
from surgeval.datasets.predictions import read_detections, write_detections
from surgeval.errors import BadInput, DataError
from surgeval.records import Box, Frame, ImageRef, Instance, IntentQuestion, Triplet, Video
from surgeval.vocab import load_labels

SPACE = load_labels("cholect50")
LABELLED = ("labelme", "voc", "yolo5", "yolo8", "coco", "cholect50", "cvat")
FORMATS = (*LABELLED, "mp4")
UNSAFE = ("../../x", "/abs/x", "..", "a/b", "a\\b", "C:\\x", "\0", "x\n", "CON", ".hidden", "", "手" * 200)


def moment(picture: Path, video: str, name: str, index: int) -> Frame:
    """A frame with one box whose left edge is its number, by which it is known again."""
    instance = Instance(Triplet(*SPACE.triplets[17]), Box(float(index), 8, 16, 16))
    return Frame(video, name, index, float(index), ImageRef(picture), 96, 64, (instance,))


def listing(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def edges(root: Path) -> Counter[int]:
    """How often each frame is read back from a written folder, by the left edge of its box."""
    dataset = open_dataset(root)
    return Counter(round(instance.box.x) for video in dataset.videos() for frame in dataset.frames(video.name)
                   for instance in frame.instances if instance.box)  # fmt: skip


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "source" / "picture.png"
    path.parent.mkdir()
    Image.new("RGB", (96, 64), (180, 60, 50)).save(path)
    return path


@pytest.mark.parametrize("name", UNSAFE)
@pytest.mark.parametrize("format", FORMATS)
def test_a_video_cannot_leave_the_folder(tmp_path: Path, picture: Path, format: str, name: str) -> None:
    home = tmp_path / "deep" / "deeper"
    home.mkdir(parents=True)
    before = listing(tmp_path)
    source = MemoryDataset(SPACE, [moment(picture, name, "000003", 3)], [Video(name, fps=25.0)])
    report = convert(source, home / "out", format)
    new = {path for path in listing(tmp_path) - before if not path.startswith("deep/deeper/out")}
    assert new == set()
    assert not Path("/abs").exists()
    assert any("names of 1 videos became other file names" in loss for loss in report.losses)
    if format != "mp4":
        assert edges(home / "out") == {3: 1}


@pytest.mark.parametrize("name", [name for name in UNSAFE if name])
@pytest.mark.parametrize("format", FORMATS)
def test_a_split_cannot_leave_the_folder(tmp_path: Path, picture: Path, format: str, name: str) -> None:
    home = tmp_path / "deep" / "deeper"
    home.mkdir(parents=True)
    before = listing(tmp_path)
    source = MemoryDataset(SPACE, [moment(picture, "V", "000003", 3)], [Video("V", split=name, fps=25.0)])
    report = convert(source, home / "out", format)
    new = {path for path in listing(tmp_path) - before if not path.startswith("deep/deeper/out")}
    assert new == set()
    folders = format not in ("cholect50", "mp4")
    assert folders == any("names of 1 splits became other file names" in loss for loss in report.losses)
    if format != "mp4":
        assert edges(home / "out") == {3: 1}


@pytest.mark.parametrize("name", UNSAFE)
@pytest.mark.parametrize("format", LABELLED)
def test_a_frame_cannot_leave_the_folder(tmp_path: Path, picture: Path, format: str, name: str) -> None:
    home = tmp_path / "deep" / "deeper"
    home.mkdir(parents=True)
    before = listing(tmp_path)
    convert(MemoryDataset(SPACE, [moment(picture, "V", name, 3)]), home / "out", format)
    assert {path for path in listing(tmp_path) - before if not path.startswith("deep/deeper/out")} == set()
    assert edges(home / "out") == {3: 1}


def test_a_table_of_two_lines_overwrites_nothing_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    precious = tmp_path / "x" / "000001.json"
    precious.parent.mkdir()
    precious.write_text("precious")
    (tmp_path / "data" / "boxes.csv").write_text("video,frame,label,x,y,w,h\n../../x,000001,grasper,1,2,30,40\n")
    (tmp_path / "data" / "mapping.toml").write_text(
        'table = "boxes.csv"\nvideo = "video"\nframe = "frame"\nclass = "label"\nbox = ["x", "y", "w", "h"]\n'
        "size = [96, 64]\n"
    )
    dataset = open_dataset(tmp_path / "data", format="table")
    assert [video.name for video in dataset.videos()] == ["../../x"]
    assert check(dataset).counts["name-unsafe"] == 1
    convert(dataset, tmp_path / "out" / "labelme", "labelme")
    assert precious.read_text() == "precious"
    assert (tmp_path / "out" / "labelme" / "x" / "000001.json").is_file()


@pytest.mark.parametrize("format", LABELLED)
def test_names_that_meet_keep_their_frames(tmp_path: Path, picture: Path, format: str) -> None:
    names = (
        "x_1",
        "x-1",
        "X-1",
        "x-1-2",
        "x/1",
        "x (1)",
        "x~1",
        "x~",
        "a - copy",
        "labels",
        "x.",
        "é",
        "e\u0301",
        "x_1",
    )
    frames = [moment(picture, "V", name, number) for number, name in enumerate(names)]
    convert(MemoryDataset(SPACE, frames), tmp_path / "out", format)
    assert edges(tmp_path / "out") == dict.fromkeys(range(len(names)), 1)


@pytest.mark.parametrize("format", LABELLED)
def test_videos_that_meet_keep_their_frames(tmp_path: Path, picture: Path, format: str) -> None:
    names = ("a/b", "a-b", "A-B", "a_b", "labels", "images", "train", "labels.json", "json", "..", "val", "videos", "")
    frames = [moment(picture, name, "000001", number) for number, name in enumerate(names)]
    videos = [Video(name, split="train" if number % 2 else "") for number, name in enumerate(names)]
    convert(MemoryDataset(SPACE, frames, videos), tmp_path / "out", format)
    assert edges(tmp_path / "out") == dict.fromkeys(range(len(names)), 1)


def test_films_that_meet_are_two_films(tmp_path: Path, picture: Path) -> None:
    frames = [moment(picture, name, "1", number) for number, name in enumerate(("a/b", "a-b", "A-B"))]
    convert(MemoryDataset(SPACE, frames), tmp_path / "out", "mp4")
    assert listing(tmp_path / "out") == {"a-b.mp4", "a-b-2.mp4", "A-B-3.mp4"}


names = st.lists(st.sampled_from(["..", "/", "\\", "x", "X", "_", "-", "1", ".", " ", "~", ":", "\0", "labels"]),
                 max_size=5).map("".join)  # fmt: skip


@settings(max_examples=25, deadline=None)
@given(pairs=st.lists(st.tuples(names, names, st.sampled_from(["", "train", "../x"])), min_size=1, max_size=6))
@pytest.mark.parametrize("format", LABELLED)
def test_whatever_the_names_every_frame_comes_back_once(
    tmp_path_factory: pytest.TempPathFactory, format: str, pairs: list[tuple[str, str, str]]
) -> None:
    base = tmp_path_factory.mktemp("any")
    picture = base / "picture.png"
    Image.new("RGB", (96, 64)).save(picture)
    frames = [moment(picture, video, frame, number) for number, (video, frame, _) in enumerate(pairs)]
    videos = {video: Video(video, split=split) for video, _, split in pairs}
    convert(MemoryDataset(SPACE, frames, videos.values()), base / "in" / "out", format)
    assert {path.name for path in base.iterdir()} == {"picture.png", "in"}
    assert {path.name for path in (base / "in").iterdir()} == {"out"}
    if format == "coco":  # its reader takes files apart by split only where the split is train, val or test
        found = sum((edges(path) for path in (base / "in/out").glob("*annotations.json")), Counter())
        assert found == dict.fromkeys(range(len(pairs)), 1)
    else:
        assert edges(base / "in" / "out") == dict.fromkeys(range(len(pairs)), 1)
    shutil.rmtree(base)


def test_check_names_every_unsafe_video_and_split(picture: Path) -> None:
    videos = [Video("../x", split="/etc"), Video("VID02", split="train"), Video("a:b", split="train,../y")]
    frames = [moment(picture, video.name, "1", 1) for video in videos]
    report = check(MemoryDataset(SPACE, frames, videos))
    assert report.counts == {"name-unsafe": 4}
    assert report.errors == 4
    said = "\n".join(map(str, report.problems))
    assert all(f"{what}: found a name that leaves its folder or fits no file" in said
               for what in ("video '../x'", "video 'a:b'", "split '/etc'", "split '../y'"))  # fmt: skip


@pytest.mark.parametrize("split", ["../../up", "/abs"])
def test_check_sees_the_split_of_a_phantom_and_of_cholect50(
    tmp_path: Path, phantom: Path, exported: Callable[[str], Path], split: str
) -> None:
    manifest = json.loads((phantom / "phantom.json").read_text())
    manifest["videos"][0]["split"] = split
    (phantom / "phantom.json").write_text(json.dumps(manifest))
    assert check(open_dataset(phantom)).counts == {"name-unsafe": 1}
    root = exported("cholect50")
    file = root / "labels" / "VID01.json"
    labels = json.loads(file.read_text())
    labels["info"]["split"] = split
    file.write_text(json.dumps(labels))
    assert check(open_dataset(root)).counts == {"name-unsafe": 1}
    before = listing(tmp_path)
    for number, source in enumerate((phantom, root)):
        for format in FORMATS:
            convert(open_dataset(source), tmp_path / "a" / "b" / f"{number}{format}", format)
    assert {path for path in listing(tmp_path) - before if not path.startswith("a")} == set()


def asked(number: int, *media: str) -> IntentQuestion:
    return IntentQuestion(f"i{number}", "laparoscopy", "v1", media, "spatial", "absolute", "Where?", ("a", "b"), 0)


def test_questions_keep_their_own_pictures_where_folders_share_a_name(tmp_path: Path) -> None:
    media = ("p/x/1.png", "q/x/1.png", "q/x/1.PNG", "r/X/1.png")
    for grey, name in enumerate(media):
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), (grey, grey, grey)).save(path, "PNG")
    questions = [asked(number, name) for number, name in enumerate(media)] + [asked(9, *media)]
    convert(MemoryDataset(SPACE, (), questions=questions, media_root=tmp_path / "in"), tmp_path / "out", "intent")
    back = open_dataset(tmp_path / "out")
    shown = {question.id: [int(read_image(ImageRef(path))[0, 0, 0]) for path in media_paths(back, question)]
             for question in back.questions() if isinstance(question, IntentQuestion)}  # fmt: skip
    assert shown == {"i0": [0], "i1": [1], "i2": [2], "i3": [3], "i9": [0, 1, 2, 3]}
    files = [path for path in listing(tmp_path / "out") if (tmp_path / "out" / path).is_file()]
    assert len(files) == 5  # each picture once, and the questions
    assert len({path.casefold() for path in files}) == 5


def write_items(folder: Path, *media: str) -> None:
    record = {"id": "i1", "scenario": "laparoscopy", "cluster": "v1", "media": list(media), "dimension": "spatial",
              "skill": "absolute", "question": "Where?", "options": ["a", "b"], "answer": 0, "trap": None}  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "items.jsonl").write_text(json.dumps(record) + "\n")


@pytest.mark.parametrize("behind", ["file", "folder"])
def test_a_link_that_leads_out_is_not_copied_as_media(tmp_path: Path, behind: str) -> None:
    secret = tmp_path / "home" / "key.jpg"
    secret.parent.mkdir()
    secret.write_text("secret")
    write_items(tmp_path / "in", "key.jpg" if behind == "file" else "pictures/key.jpg")
    link = tmp_path / "in" / ("key.jpg" if behind == "file" else "pictures")
    link.symlink_to(secret if behind == "file" else secret.parent)
    dataset = open_dataset(tmp_path / "in")
    report = check(dataset)
    assert report.counts == {"path-escape": 1}
    assert not report.ok
    with pytest.raises(DataError, match=r"key\.jpg: found a link that leads out of the dataset"):
        convert(dataset, tmp_path / "out", "intent")
    assert not (tmp_path / "out").exists()


def test_a_link_inside_the_dataset_is_copied_as_what_it_leads_to(tmp_path: Path) -> None:
    write_items(tmp_path / "in", "b.jpg")
    Image.fromarray(np.full((8, 8, 3), 7, np.uint8)).save(tmp_path / "in" / "a.jpg")
    (tmp_path / "in" / "b.jpg").symlink_to("a.jpg")
    dataset = open_dataset(tmp_path / "in")
    assert check(dataset).ok
    convert(dataset, tmp_path / "out", "intent")
    (copy,) = (tmp_path / "out" / "media").rglob("b.jpg")
    assert not copy.is_symlink()
    assert copy.read_bytes() == (tmp_path / "in" / "a.jpg").read_bytes()


def test_a_phantoms_media_may_be_links_to_its_own_frames_only(tmp_path: Path, phantom: Path) -> None:
    frame = phantom / "frames" / "PA1" / "000025.jpg"
    frame.rename(phantom / "frames" / "PA1" / "kept.jpg")
    frame.symlink_to("kept.jpg")
    assert check(open_dataset(phantom)).ok
    frame.unlink()
    outside = tmp_path / "outside.jpg"
    shutil.copyfile(phantom / "frames" / "PA1" / "kept.jpg", outside)
    frame.symlink_to(outside)
    report = check(open_dataset(phantom))
    assert (report.errors, report.warnings) == (1, 1)  # media of a question; image of a frame
    with pytest.raises(DataError, match="leads out of the dataset"):
        convert(open_dataset(phantom), tmp_path / "out", "intent")


@pytest.mark.parametrize("format", ["yolo", "cholect50"])
@pytest.mark.parametrize("names", [("../../x",), ("/abs",), ("a:b",), ("V", "v")])
def test_predictions_are_refused_where_a_video_can_have_no_file_of_its_own(
    tmp_path: Path, format: str, names: tuple[str, ...]
) -> None:
    frames = [Frame(name, "000001", 1, None, None, 96, 64) for name in names]
    rows = [{"video": name, "frame": "000001", "triplet": 17, "score": 0.5, "x": 1.0, "y": 1.0, "w": 8.0, "h": 8.0}
            for name in names]  # fmt: skip
    with pytest.raises(BadInput, match=f"{format}: found video"):
        write_detections(pl.DataFrame(rows), tmp_path / "in" / "out", format, dataset=MemoryDataset(SPACE, frames))
    assert {path.name for path in tmp_path.rglob("*")} == {"in"}


def test_predictions_in_csv_come_back_where_a_name_looks_like_a_formula(tmp_path: Path) -> None:
    names = ("=1+1", "'=1+1", " ＝x", "-1", "VID01")
    dataset = MemoryDataset(SPACE, [Frame(name, "@1", 1, None, None, 96, 64) for name in names])
    rows = [{"video": name, "frame": "@1", "triplet": 17, "score": 0.5, "x": 1.0, "y": 1.0, "w": 8.0, "h": 8.0}
            for name in names]  # fmt: skip
    write_detections(pl.DataFrame(rows), tmp_path / "found.csv", dataset=dataset)
    cells = [line.split(",")[0] for line in (tmp_path / "found.csv").read_text().splitlines()[1:]]
    assert cells == ["'=1+1", "''=1+1", "' ＝x", "'-1", "VID01"]
    assert read_detections(tmp_path / "found.csv", dataset=dataset).table["video"].to_list() == list(names)
