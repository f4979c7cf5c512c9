from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from surgeval.datasets import open_dataset
from surgeval.records import Box, Triplet

OBJECT = (
    "<object><name>{name}</name><bndbox><xmin>{0}</xmin><ymin>{1}</ymin>"
    "<xmax>{2}</xmax><ymax>{3}</ymax></bndbox></object>"
)
PAGE = "<annotation><size><width>80</width><height>40</height></size>{}</annotation>"


def page(*corners: Any, name: str = "Hook") -> str:
    return PAGE.format(OBJECT.format(*corners, name=name))


def put(root: Path, text: str | bytes, stem: str = "v01_000100", folder: str = "", image: bool = True) -> Path:
    place = root / folder
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{stem}.xml").write_bytes(text if isinstance(text, bytes) else text.encode())
    if image:
        Image.new("RGB", (80, 40)).save(place / f"{stem}.jpg")
    return root


def test_pixels_count_from_one(tmp_path: Path) -> None:
    dataset = open_dataset(put(tmp_path, page(11, 6, 31, 26)))
    frame = next(iter(dataset.frames("v01")))
    assert (frame.name, frame.index, frame.width, frame.height) == ("000100", 100, 80, 40)
    assert frame.instances[0].box == Box(10, 5, 20, 20)
    assert frame.instances[0].triplet == Triplet(2)
    assert dataset.space.name == "cholec80"


def test_our_own_files_count_to_the_last_pixel_inside(tmp_path: Path) -> None:
    text = page(1, 1, 80, 40).replace("<size>", "<source><database>surgeval</database></source><size>")
    assert next(iter(open_dataset(put(tmp_path, text)).frames("v01"))).instances[0].box == Box(0, 0, 80, 40)


@pytest.mark.parametrize("written", ["nan", "1e400", "sNaN", "-1e999999999", "x"])
def test_a_corner_of_our_own_that_is_no_number_is_named(tmp_path: Path, heard: Any, written: str) -> None:
    text = page(written, 1, 80, 40).replace("<size>", "<source><database>surgeval</database></source><size>")
    assert not next(iter(open_dataset(put(tmp_path, text)).frames("v01", heard))).instances
    assert heard


def test_our_first_files_hold_the_corners_as_they_are(tmp_path: Path) -> None:
    text = page(0, 0, 80, 40).replace("<size>", "<origin>0</origin><size>")
    assert next(iter(open_dataset(put(tmp_path, text)).frames("v01"))).instances[0].box == Box(0, 0, 80, 40)


@pytest.mark.parametrize("folder", ["", "images", "images/train", "train", "Annotations", "Annotations/val"])
def test_the_usual_folders_are_found_and_name_the_split(tmp_path: Path, folder: str) -> None:
    dataset = open_dataset(put(tmp_path, page(11, 6, 31, 26), folder=folder), "voc")
    (video,) = dataset.videos()
    assert video.name == "v01"
    assert video.split == {"images/train": "train", "train": "train", "Annotations/val": "val"}.get(folder, "")
    assert len(list(dataset.frames("v01"))) == 1


def test_a_video_in_two_splits_is_a_leak(tmp_path: Path, heard: Any) -> None:
    put(tmp_path, page(11, 6, 31, 26), folder="images/train")
    put(tmp_path, page(11, 6, 31, 26), stem="v01_000200", folder="images/val")
    assert open_dataset(tmp_path).videos(heard)[0].split == "train,val"
    assert "v01: found frames in train and val" in heard.of("split-leak")[0]


def test_unknown_names_make_a_space_of_their_own(tmp_path: Path) -> None:
    put(tmp_path, page(11, 6, 31, 26, name="Needle &amp; thread"))
    dataset = open_dataset(tmp_path)
    assert dataset.space.instruments == ("Needle & thread",)
    assert len(next(iter(dataset.frames("v01"))).instances) == 1


def test_an_image_without_xml_is_an_unlabelled_frame(tmp_path: Path, heard: Any, read: Callable[..., Any]) -> None:
    put(tmp_path, page(11, 6, 31, 26))
    Image.new("RGB", (80, 40)).save(tmp_path / "v01_000050.jpg")
    frames = read(open_dataset(tmp_path), heard)
    assert [(frame.index, frame.labelled) for frame in frames] == [(50, False), (100, True)]
    assert "v01_000050.jpg" in heard.of("frame-unlabelled")[0]


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        (page(0, 6, 31, 26), "box-outside", "(0, 6)"),
        (page(11, 6, 81, 26), "box-outside", "inside the 80 × 40"),
        (page(11, -3, 31, 26), "box-outside", "(11, -3)"),
        (page(91, 6, 99, 26), "box-off-frame", "touches"),
        (page(31, 6, 11, 26), "box-degenerate", "xmin < xmax"),
        (page("nan", 6, 31, 26), "not-finite", "xmin: found NaN"),
        (page("eleven", 6, 31, 26), "not-a-number", "eleven"),
        (page("", 6, 31, 26), "not-a-number", "xmin"),
        (page("1e999", 6, 31, 26), "not-finite", "xmin: found Infinity"),
        (PAGE.format("<object><name>Hook</name></object>"), "not-a-number", "xmin: found nothing"),
        (PAGE.format("<object/>"), "not-text", "instrument: found nothing"),
        ("<annotation></annotation>".replace("></", "><object/></"), "not-text", "instrument"),
        ("<annotation><size><width>0</width><height>40</height></size></annotation>", "not-a-number", "size width"),
        ("<annotation><size><width>999999</width><height>1</height></size></annotation>", "not-a-number", "20000"),
        (page(11, 6, 31, 26)[:-30], "file-broken", "line 1 column"),
        ("not xml", "file-broken", "line 1 column 1"),
        (b"\xff\xfe\x00", "file-broken", "XML"),
        ("<html/>", "wrong-shape", "<html>"),
        ('<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "boom">]>' + page(11, 6, 31, 26), "file-broken", "declaration"),
    ],
)  # fmt: skip
def test_each_wrong_value_is_named_with_file_and_object(
    tmp_path: Path, heard: Any, read: Callable[..., Any], text: str | bytes, kind: str, words: str
) -> None:
    put(tmp_path, page(11, 6, 31, 26), stem="v01_000001")
    frames = read(open_dataset(put(tmp_path, text), "voc"), heard)
    assert kind in {problem.kind for problem in heard}, list(map(str, heard))
    problem = next(str(problem) for problem in heard if problem.kind == kind)
    assert "v01_000100.xml" in problem
    assert words in problem
    assert frames[0].name == "000001"  # the good frame is still read


def test_an_entity_bomb_is_refused_before_it_is_built(tmp_path: Path, heard: Any, read: Callable[..., Any]) -> None:
    layers = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    bomb = f'<!DOCTYPE a [<!ENTITY e0 "boom">{layers}]><annotation><object><name>&e11;</name></object></annotation>'
    for text in (bomb.encode(), ('<?xml version="1.0" encoding="utf-16"?>' + bomb).encode("utf-16")):
        heard.clear()
        assert read(open_dataset(put(tmp_path, text), "voc"), heard) == []
        assert heard.of("file-broken")


def test_a_size_that_is_not_the_image_s_is_named(tmp_path: Path, heard: Any, read: Callable[..., Any]) -> None:
    put(tmp_path, page(11, 6, 31, 26).replace("<width>80", "<width>81"))
    (frame,) = read(open_dataset(tmp_path), heard)
    assert (frame.width, frame.height) == (80, 40)
    assert "found 81 × 40, expected the image's 80 × 40" in heard.of("image-size")[0]


def test_a_word_for_a_number_is_quoted_once(tmp_path: Path, heard: Any, read: Callable[..., Any]) -> None:
    read(open_dataset(put(tmp_path, page("null", 1, 2, 3))), heard)
    assert "xmin: found 'null', expected a number" in heard.of("not-a-number")[0]
