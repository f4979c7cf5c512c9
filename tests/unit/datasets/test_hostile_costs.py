"""Files made to cost much or to pass unseen: bounded work, and damage is told."""

from __future__ import annotations

import io
import json
import struct
import time
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from surgeval.datasets import Problem, check, image_size, open_dataset, read_image
from surgeval.datasets.formats.class_names import read_class_names
from surgeval.datasets.io.json import Members
from surgeval.datasets.io.outline import fill
from surgeval.datasets.io.values import check_size
from surgeval.errors import DataError
from surgeval.files import Location
from surgeval.records import ImageRef, Mask

Export = Callable[[str], Path]


def seconds(work: Callable[[], object]) -> float:
    """The fastest of three."""
    return min(_timed(work) for _ in range(3))


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def png(width: int, height: int, rows: int, interlaced: bool = False) -> bytes:
    """A grey PNG that says it has `height` rows and holds the data of `rows`."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, int(interlaced))
    data = zlib.compress((b"\0" + b"\x80" * width) * rows)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def test_a_png_whose_rows_end_early_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(png(64, 48, rows=48))
    assert (read_image(ImageRef(path)) == 0x80).all()
    for rows in (47, 10, 1):
        path.write_bytes(png(64, 48, rows=rows))
        with pytest.raises(DataError, match="its data end before its last row"):
            read_image(ImageRef(path))


def test_a_png_whose_packed_data_contradict_their_checksum_is_damaged(tmp_path: Path) -> None:
    whole = bytearray(png(64, 48, rows=48))
    start = whole.index(b"IDAT")
    length = struct.unpack(">I", whole[start - 4 : start])[0]
    whole[start + 3 + length] ^= 1  # the last byte of zlib's own checksum; the chunk's is made anew
    whole[start + 4 + length : start + 8 + length] = struct.pack(">I", zlib.crc32(whole[start : start + 4 + length]))
    (tmp_path / "a.png").write_bytes(whole)
    with pytest.raises(DataError, match=r"a\.png: found a damaged image"):
        read_image(ImageRef(tmp_path / "a.png"))


@pytest.mark.parametrize("mode", ["1", "L", "P", "LA", "RGB", "RGBA", "I;16"])
def test_sound_pngs_of_every_kind_are_read(tmp_path: Path, mode: str) -> None:
    grey = np.random.default_rng(0).integers(0, 255, (37, 53), dtype=np.uint8)
    image = Image.fromarray(grey.astype(np.uint16) * 257) if mode == "I;16" else Image.fromarray(grey).convert(mode)
    image.save(tmp_path / "a.png")
    assert read_image(ImageRef(tmp_path / "a.png")).shape == (37, 53, 3)


def test_an_interlaced_png_counts_its_seven_passes(tmp_path: Path) -> None:
    # Adam7 of 8 × 8: passes of 1×1, 1×1, 2×1, 2×2, 4×2, 4×4, 8×4 (width × height), each row with a filter byte.
    passes = [(1, 1), (1, 1), (2, 1), (2, 2), (4, 2), (4, 4), (8, 4)]
    data = b"".join((b"\0" + b"\x80" * width) * height for width, height in passes)

    def written(content: bytes) -> Path:
        whole = png(8, 8, rows=8, interlaced=True)
        start = whole.index(b"IDAT") - 4
        packed = zlib.compress(content)
        chunk = struct.pack(">I", len(packed)) + b"IDAT" + packed + struct.pack(">I", zlib.crc32(b"IDAT" + packed))
        path = tmp_path / "a.png"
        path.write_bytes(whole[:start] + chunk + whole[whole.index(b"IEND") - 4 :])
        return path

    assert (read_image(ImageRef(written(data))) == 0x80).all()
    with pytest.raises(DataError, match="its data end before its last row"):
        read_image(ImageRef(written(data[:-9])))


def test_a_jpeg_closed_before_its_last_row_is_damaged(tmp_path: Path) -> None:
    pixels = np.random.default_rng(1).integers(0, 255, (120, 160, 3), dtype=np.uint8)
    for options in ({}, {"subsampling": 0}, {"restart_marker_blocks": 3}, {"optimize": True}):
        buffer = io.BytesIO()
        Image.fromarray(pixels).save(buffer, "JPEG", **options)
        data = buffer.getvalue()
        path = tmp_path / "a.jpg"
        path.write_bytes(data)
        expected = np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
        assert (read_image(ImageRef(path)) == expected).all()
        for part in (0.3, 0.6, 0.95):
            path.write_bytes(data[: int(len(data) * part)].rstrip(b"\xff") + b"\xff\xd9")
            with pytest.raises(DataError, match="a damaged image"):
                read_image(ImageRef(path))


def test_a_progressive_jpeg_is_read_as_before(tmp_path: Path) -> None:
    pixels = np.random.default_rng(1).integers(0, 255, (50, 70, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.jpg", progressive=True)
    expected = np.asarray(Image.open(tmp_path / "a.jpg").convert("RGB"))
    assert (read_image(ImageRef(tmp_path / "a.jpg")) == expected).all()


def test_a_check_finds_the_image_whose_rows_end_early(exported: Export) -> None:
    root = exported("yolo8")
    image = sorted(root.rglob("*.jpg"))[1]
    image.write_bytes(png(96, 64, rows=10))
    report = check(open_dataset(root))
    assert report.counts == {"image-broken": 1}
    assert report.problems[0].path == str(image)


def test_a_small_file_of_a_huge_picture_is_refused_before_it_is_decoded(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    for side in (9_000, 13_000, 20_000):  # decoding would tell the missing rows instead
        path.write_bytes(png(side, side, rows=1))
        with pytest.raises(DataError, match=r"expected at most 20000 a side and 67108864 in all"):
            read_image(ImageRef(path))
        assert image_size(path) is None


def test_an_outline_is_drawn_within_its_own_bounds_only() -> None:
    parts = (((10.0, 10.0), (60.0, 10.0), (35.0, 50.0)), ((40.0, 40.0), (90.0, 45.0), (70.0, 80.0)))
    small = fill(parts, 100, 100).to_array()
    tracemalloc.start()
    mask = fill(parts, 8000, 8000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000  # the frame has 64 million pixels
    assert mask.area == int(small.sum())
    assert (mask.height, mask.width, sum(mask.counts)) == (8000, 8000, 8000 * 8000)


@pytest.mark.parametrize("seed", range(40))
def test_an_outline_in_its_bounds_is_the_one_drawn_in_the_whole_frame(seed: int) -> None:
    import cv2

    draw = np.random.default_rng(seed)
    width, height = draw.integers(1, 40, 2).tolist()
    scale = 1e6 if seed % 5 == 0 else 1.0
    corners = [draw.uniform(-0.8, 1.8, (draw.integers(3, 7), 2)) * (width, height) * scale for _ in range(1 + seed % 3)]
    if seed % 4 == 0:
        corners = [np.array([(0, 0), (width, 0), (width, height), (0, height)], dtype=float)]
    canvas = np.zeros((height, width), np.uint8)
    for points in corners:
        cv2.fillPoly(canvas, [np.rint(np.clip(points, -(1 << 20), 1 << 20)).astype(np.int32)], 1)
    parts = tuple(tuple((float(x), float(y)) for x, y in points) for points in corners)
    assert fill(parts, width, height) == Mask.from_array(canvas)


def test_a_frame_size_of_too_many_pixels_is_told() -> None:
    heard: list[Problem] = []
    assert check_size(Location("a.json", heard.append), 20_000, 20_000) is None
    assert [problem.kind for problem in heard] == ["image-size"]
    assert check_size(Location("a.json", heard.append), 7680, 4320) == (7680, 4320)


def test_a_long_line_of_a_yaml_file_costs_no_more_than_its_length(tmp_path: Path) -> None:
    def read(line: str) -> float:
        (tmp_path / "data.yaml").write_text(f"names:\n  0: hook\n  1:{line}x y\n")
        found = read_class_names(tmp_path, lambda _: None)
        assert found is not None and found.names[0] == "hook" and found.names[1].endswith("x y")
        return seconds(lambda: read_class_names(tmp_path, lambda _: None))

    plain = read(" " + "a" * 40_000)
    assert read(" b" * 20_000) < 20 * plain + 0.02
    assert read(" a" + " " * 40_000) < 20 * plain + 0.02


def test_text_outside_ascii_is_walked_as_fast_as_ascii(tmp_path: Path) -> None:
    def walked(word: str) -> float:
        path = tmp_path / "a.json"
        rows = [{"id": k, "file_name": f"{word}_{k:06d}.png"} for k in range(8000)]
        path.write_text(json.dumps({"images": rows}, ensure_ascii=False), encoding="utf-8")
        data = path.read_bytes()
        members = list(Members(path, Location(str(path), lambda _: None)))
        assert [json.loads(data[start : start + length]) for _, _, _, start, length in members] == rows
        return seconds(lambda: list(Members(path, Location(str(path), lambda _: None))))

    assert walked("kraftübertragung") < 4 * walked("kraftuebertragung") + 0.02


def test_deep_nesting_in_a_walked_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"images": [{"id": ' + "[" * 5000 + "]" * 5000 + "}]}")
    heard: list[Problem] = []
    assert list(Members(path, Location(str(path), heard.append))) == []
    assert [problem.kind for problem in heard] == ["file-broken"]


def test_names_of_a_megabyte_leave_a_sentence() -> None:
    long = "q" * 10**6
    problem = Problem("class-unknown", "a.json", f"found {long}, expected one of {long}", long, long)
    assert len(str(problem)) < 3000
    assert max(map(len, (problem.sentence, str(problem.record), str(problem.field)))) < 1000
    assert len(str(DataError(long, f"found {long}, expected {long}", record=long, field=long))) < 3500


def test_a_bmp_of_runs_that_make_no_pixel_is_refused(tmp_path: Path) -> None:
    head = struct.pack("<2sIHHI", b"BM", 0, 0, 0, 1078) + struct.pack(
        "<IiiHHIIiiII", 40, 64, 48, 1, 8, 1, 0, 0, 0, 256, 0
    )
    path = tmp_path / "a.bmp"
    path.write_bytes(head + bytes(1024) + b"\x40\x07\x00\x00" * 48)
    assert (read_image(ImageRef(path)) == 0).all()
    path.write_bytes(head + bytes(1024) + bytes(17 << 20))  # ends of rows, one after the other
    with pytest.raises(DataError, match="found runs of pixels in a file of this size"):
        read_image(ImageRef(path))
