from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image
from tests.plugins import install_plugin

from surgeval.datasets import Dataset, convert, dataset_formats, open_dataset, writers
from surgeval.errors import BadInput, LeftOut, SurgevalError
from surgeval.vocab import load_labels

Export = Callable[[str], Path]


@pytest.mark.parametrize(
    ("written", "found"),
    [("cholect50", "cholect50"), ("voc", "voc"), ("yolo5", "yolo"), ("yolo8", "yolo"), ("labelme", "labelme"),
     ("coco", "coco"), ("cvat", "cvat"), ("mp4", "video")],
)  # fmt: skip
def test_every_export_is_recognised(exported: Export, written: str, found: str) -> None:
    dataset = open_dataset(exported(written))
    assert dataset.format == found
    assert [video.name for video in dataset.videos()] == ["VID01", "VID02"]


def test_the_phantom_is_recognised_even_without_its_manifest(phantom: Path) -> None:
    assert open_dataset(phantom).format == "phantom"
    (phantom / "phantom.json").unlink()
    assert open_dataset(phantom).format == "phantom"


def test_a_missing_path_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"nowhere: found no such file or folder"):
        open_dataset(tmp_path / "nowhere")


def test_a_folder_of_nothing_names_the_formats_in_one_short_line(tmp_path: Path) -> None:
    (tmp_path / "notes.doc").write_text("hello")
    with pytest.raises(BadInput, match=r"expected one of phantom, cholect50, voc, .*studio$") as caught:
        open_dataset(tmp_path)
    assert len(str(caught.value).removeprefix(str(tmp_path))) < 300


@pytest.mark.parametrize("name", ["picture.jpg", "notes.txt", "table.parquet", "thing.json", "lines.jsonl"])
def test_a_file_of_the_wrong_kind_is_one_sentence(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"\x00\x01 nothing of the kind")
    with pytest.raises(BadInput, match="found a file of unknown kind") as caught:
        open_dataset(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("format", list(dataset_formats()))
def test_a_forced_wrong_format_never_crashes(tmp_path: Path, format: str) -> None:
    path = tmp_path / "picture.jpg"
    Image.new("RGB", (8, 8)).save(path)
    for target in (path, tmp_path):
        try:
            dataset = open_dataset(target, format)
            for video in dataset.videos():
                list(dataset.frames(video.name))
            list(dataset.questions())
        except SurgevalError as error:
            assert "\n" not in str(error)  # noqa: PT017


def test_two_formats_in_one_folder_must_be_told_apart(exported: Export) -> None:
    root = exported("yolo8")
    for image in (root / "images").rglob("*.jpg"):
        image.with_suffix(".xml").write_text("<annotation/>")
    with pytest.raises(BadInput, match="found files of voc and yolo"):
        open_dataset(root)
    assert open_dataset(root, "yolo").format == "yolo"


def test_unknown_format_names_are_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="Unknown dataset format 'doc'"):
        open_dataset(tmp_path, "doc")


def test_labels_replace_the_label_space(exported: Export, tmp_path: Path) -> None:
    root = exported("yolo8")
    (root / "labels.json").unlink()
    (root / "data.yaml").unlink()
    assert open_dataset(root).space.name == "prostatd"  # eight fields are ProstaTD's
    assert open_dataset(root, labels="cholect50").space is load_labels("cholect50")
    own = tmp_path / "own.json"
    own.write_text(json.dumps(load_labels("cholect50").to_json() | {"name": "own"}))
    assert open_dataset(root, labels=own).space.name == "own"
    with pytest.raises(BadInput, match="cholect51"):
        open_dataset(root, labels="cholect51")


def test_an_unknown_video_is_refused_by_name(exported: Export, phantom: Path) -> None:
    for root in (phantom, *(exported(name) for name in ("cholect50", "voc", "yolo8", "labelme", "coco", "mp4"))):
        dataset: Dataset = open_dataset(root)
        with pytest.raises(BadInput, match="'VID99'"):
            list(dataset.frames("VID99"))


def test_formats_and_writers_have_titles_and_what_they_keep() -> None:
    assert all(format.title for format in dataset_formats().values())
    assert all(isinstance(writer.keeps, frozenset) for writer in writers().values())


def test_another_package_adds_a_format_by_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = (
        "from surgeval.datasets import MemoryDataset\n"
        "from surgeval.records import Frame\n"
        "from surgeval.vocab import load_labels\n"
        "class MyFormat:\n"
        "    name, title, keeps = 'mylab', 'my lab', frozenset()\n"
        "    def detect(self, path): return path.suffix == '.mylab'\n"
        "    def open(self, path, labels=None):\n"
        "        return MemoryDataset(load_labels('cholec80'), [Frame('v', '1', 1, None, None, 8, 8)])\n"
        "    def write(self, out): (out.folder / 'x.mylab').write_text('hello')\n"
    )
    install_plugin(tmp_path, "surgeval.datasets", {"mylab": "mylab:MyFormat"}, mylab=source)
    (tmp_path / "data.mylab").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    dataset = open_dataset(tmp_path / "data.mylab")
    assert [video.name for video in dataset.videos()] == ["v"]
    assert "mylab" in writers()
    convert(dataset, tmp_path / "out", "mylab")
    assert (tmp_path / "out" / "x.mylab").read_text() == "hello"
    install_plugin(tmp_path, "surgeval.datasets", {"mylab": "mylab:Gone"})
    monkeypatch.syspath_prepend(tmp_path / "out")  # a changed path is searched again
    with pytest.warns(LeftOut, match=r"'mylab' of another package \(mylab:Gone\) cannot be used: AttributeError"):
        assert "mylab" not in dataset_formats()
