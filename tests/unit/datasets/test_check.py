from __future__ import annotations

import json
import shutil
import struct
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from surgeval.datasets import MemoryDataset, Problem, check, dataset_fingerprint, open_dataset, read_image
from surgeval.errors import DataError
from surgeval.records import Box, Frame, ImageRef, Instance, Triplet
from surgeval.vocab import load_labels

Export = Callable[[str], Path]
FORMATS = ["cholect50", "voc", "yolo5", "yolo8", "labelme", "coco"]


@pytest.mark.parametrize("format", FORMATS)
def test_an_export_checks_clean(exported: Export, format: str) -> None:
    report = check(open_dataset(exported(format)))
    assert (report.errors, report.warnings) == (0, 0), list(map(str, report.problems))
    assert (report.videos, report.frames, report.instances, report.images) == (2, 6, 8, 6)


@pytest.mark.parametrize("format", FORMATS)
def test_a_deleted_image_is_named(exported: Export, format: str) -> None:
    root = exported(format)
    lost = sorted(root.rglob("*.jpg"))[1]
    lost.unlink()
    report = check(open_dataset(root))
    assert report.counts == {"image-missing": 1}
    assert lost.name in str(report.problems[0])


@pytest.mark.parametrize("format", FORMATS)
def test_a_cut_off_image_is_found_only_by_decoding(exported: Export, format: str) -> None:
    root = exported(format)
    cut = sorted(root.rglob("*.jpg"))[1]
    cut.write_bytes(cut.read_bytes()[:-300])
    assert check(open_dataset(root), images=False).ok
    report = check(open_dataset(root))
    assert report.counts == {"image-broken": 1}
    assert cut.name in str(report.problems[0])


@pytest.mark.parametrize("format", ["labelme", "coco"])
def test_an_image_of_another_size_is_named(exported: Export, format: str) -> None:
    root = exported(format)
    Image.new("RGB", (50, 50)).save(sorted(root.rglob("*.jpg"))[0])
    report = check(open_dataset(root))
    assert report.counts == {"image-size": 1}
    assert "found 50 × 50 pixels, expected 96 × 64 as the labels say" in str(report.problems[0])


def test_a_file_that_is_no_image_is_named(exported: Export) -> None:
    root = exported("coco")
    sorted(root.rglob("*.jpg"))[0].write_text("hello")
    assert check(open_dataset(root)).counts == {"image-broken": 1}


def test_a_frame_met_twice_is_named() -> None:
    frame = Frame("v", "000001", 1, None, None, 8, 8)
    report = check(MemoryDataset(load_labels("cholec80"), [frame, frame]))
    assert report.counts == {"frame-duplicate": 1}


def test_every_problem_is_told_but_only_the_first_are_kept(exported: Export) -> None:
    root = exported("yolo8")
    for path in root.rglob("*_*.txt"):
        path.write_text("nonsense\n" * 10)
    told: list[Problem] = []
    report = check(open_dataset(root), on_problem=told.append, keep=3)
    assert report.errors == len(told) == 60
    assert report.problems == tuple(told[:3])
    assert "60 errors" in report.summary()


def test_progress_counts_the_frames(exported: Export) -> None:
    seen: list[tuple[str, int]] = []
    check(open_dataset(exported("coco")), progress=lambda video, done: seen.append((video.name, done)))
    assert seen[-1] == ("VID02", 6)


def test_an_unreadable_folder_is_no_crash(tmp_path: Path) -> None:
    (tmp_path / "labels").mkdir()
    (tmp_path / "labels" / "VID01.json").mkdir()
    report = check(open_dataset(tmp_path, "cholect50"))
    assert report.counts["file-missing"] == 1


@pytest.mark.parametrize(
    ("bad", "found"),
    [
        (b"", "an empty file"),
        (b"\xff\xd8\xff", "a file that is no image"),
        (b"GIF89a" + b"\0" * 50, "a file that is no image"),
        (b"\x89PNG\r\n\x1a\n" + b"\xff" * 80, "a (damaged image|file that is no image)"),
    ],
)
def test_reading_a_damaged_image_is_one_sentence(tmp_path: Path, bad: bytes, found: str) -> None:
    path = tmp_path / "x.jpg"
    path.write_bytes(bad)
    with pytest.raises(DataError, match=rf"x\.jpg: found {found}") as caught:
        read_image(ImageRef(path))
    assert "\n" not in str(caught.value)
    assert "MPO'" not in str(caught.value)
    with pytest.raises(DataError, match="no such file"):
        read_image(ImageRef(tmp_path / "gone.jpg"))


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "CMYK", "I;16", "1"])
def test_every_kind_of_picture_becomes_rgb(tmp_path: Path, mode: str) -> None:
    path = tmp_path / ("x.tif" if mode in ("CMYK", "I;16") else "x.png")
    Image.new("L", (6, 4), 200).convert(mode if mode != "I;16" else "I").convert(mode).save(path)
    pixels = read_image(ImageRef(path))
    assert pixels.shape == (4, 6, 3)
    assert pixels.dtype == np.uint8


def test_the_fingerprint_follows_the_content_not_the_place(exported: Export, tmp_path: Path) -> None:
    root = exported("coco")
    first = dataset_fingerprint(open_dataset(root))
    copy = tmp_path / "elsewhere"
    shutil.copytree(root, copy)
    assert dataset_fingerprint(open_dataset(copy)) == first
    path = copy / "train_annotations.json"
    data = json.loads(path.read_text())
    data["annotations"][0]["bbox"][0] += 1
    path.write_text(json.dumps(data))
    assert dataset_fingerprint(open_dataset(copy)) != first


def test_a_picture_of_hundreds_of_megapixels_is_called_too_large(exported: Export) -> None:
    root = exported("coco")
    path = sorted(root.rglob("*.jpg"))[0]
    header = struct.pack(">IIBBBBB", 19_999, 19_999, 8, 2, 0, 0, 0)
    chunk = struct.pack(">I", 13) + b"IHDR" + header + struct.pack(">I", zlib.crc32(b"IHDR" + header))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk + b"\0\0\0\0IDAT" + struct.pack(">I", zlib.crc32(b"IDAT")))
    report = check(open_dataset(root), images=False)
    assert report.counts == {"image-broken": 1}
    assert "found a picture that is too large, expected at most 20000 a side" in str(report.problems[0])


def test_boxes_of_a_few_pixels_are_counted_in_one_warning_per_video() -> None:
    sides = [(3.9, 40), (40, 4), (9.9, 40), (10, 5.5), (40, 40)]  # of 2000 × 1000: 10 and 5 pixels are 0.5 %
    boxes = tuple(Instance(Triplet(0), Box(10, 10, w, h)) for w, h in sides)
    frame = Frame("VID01", "000007", 7, None, None, 2000, 1000, boxes)
    report = check(MemoryDataset(load_labels("cholec80"), [frame, replace(frame, name="000008")]))
    (problem,) = report.problems
    assert (problem.kind, problem.level, report.ok) == ("box-tiny", "warning", True)
    assert "video VID01" in str(problem)
    assert "6 tiny of 10 boxes, the first 3.9 × 40 pixels in frame 000007" in str(problem)
