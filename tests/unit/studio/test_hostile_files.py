"""Folders of strangers: damaged pictures and films, links, pipes and odd names give one sentence and no crash."""

from __future__ import annotations

import io
import os
import random
import resource
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image
from tests.studio_command import Client

from surgeval.datasets import open_dataset
from surgeval.errors import DataError, SurgevalError
from surgeval.phantom import write_phantom
from surgeval.records import ImageRef
from surgeval.studio.media import find_films
from surgeval.studio.pictures import Pictures, encode_frame
from surgeval.studio.server import serve

Bytes = tuple[str, bytes]


def pictures() -> list[Bytes]:
    """Small files of every format, with and without EXIF."""
    image = Image.fromarray(np.random.default_rng(0).integers(0, 255, (48, 64, 3), dtype=np.uint8))
    turned = Image.Exif()
    turned[0x0112], turned[0x010E] = 6, "a turned picture"
    kinds: list[tuple[str, Image.Image, dict[str, object]]] = [
        ("png", image, {"exif": turned}), ("png", image.convert("P"), {}), ("png", image.convert("RGBA"), {}),
        ("jpeg", image, {"exif": turned}), ("jpeg", image, {"progressive": True}), ("jpeg", image.convert("CMYK"), {}),
        ("webp", image, {"exif": turned}), ("webp", image, {"lossless": True}), ("bmp", image, {}),
    ]  # fmt: skip
    found = []
    for kind, shown, options in kinds:
        stream = io.BytesIO()
        shown.save(stream, format=kind, **options)
        found.append((kind, stream.getvalue()))
    return found


def damaged(data: bytes, chance: random.Random, head: int) -> bytes:
    """The bytes with some of them changed, left out, repeated or cut off; mostly near the start, where lengths are."""
    found = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 4, 16))):
        if not found:
            break
        place = min(chance.randrange(head if chance.random() < 0.7 else len(data)), len(found) - 1)
        what = chance.randrange(6)
        if what == 0:
            found[place] = chance.randrange(256)
        elif what == 1:
            found[place] ^= 1 << chance.randrange(8)
        elif what == 2:
            del found[place : place + chance.randrange(1, 20)]
        elif what == 3:
            found[place:place] = chance.randbytes(chance.randrange(1, 20))
        elif what == 4:
            found[place : place + 4] = chance.choice((b"\xff" * 4, b"\0" * 4, b"\x7f\xff\xff\xff"))
        else:
            del found[place + 1 :]
    return bytes(found)


def refused(action: Callable[[], object]) -> str:
    """The sentence with which something is refused, which is one; nothing where it is done."""
    try:
        action()
    except SurgevalError as error:
        return str(error)
    return ""


def test_damaged_pictures_are_shown_or_refused_in_one_sentence(tmp_path: Path, long: bool) -> None:
    chance, seeds = random.Random(4), pictures()
    said: list[str] = []
    for _ in range(5000 if long else 400):
        kind, data = chance.choice(seeds)
        path = tmp_path / f"x.{kind}"
        path.write_bytes(damaged(data, chance, 300))
        said.append(refused(partial(encode_frame, ImageRef(path))))
    assert 20 < said.count("") < len(said) - 20
    assert all(str(tmp_path / "x.") in text and "\n" not in text for text in said if text)


def film(path: Path, code: str) -> bytes:
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*code), 25, (64, 48))
    for k in range(20):
        writer.write(np.full((48, 64, 3), 8 * k, np.uint8))
    writer.release()
    return path.read_bytes()


def test_damaged_films_are_shown_or_refused_in_one_sentence(tmp_path: Path, long: bool) -> None:
    chance = random.Random(5)
    seeds = [("mp4", film(tmp_path / "a.mp4", "mp4v")), ("avi", film(tmp_path / "a.avi", "MJPG")),
             ("mkv", film(tmp_path / "a.mkv", "mp4v"))]  # fmt: skip

    def show(folder: Path) -> None:
        for one in find_films(folder):
            with Pictures({one.id: [ref for _, ref in one.frames]}, inside=folder) as shown:
                shown.get(one.id, len(one.frames) - 1)
                shown.get(one.id, 0)

    said: list[str] = []
    for number in range(500 if long else 60):
        kind, data = chance.choice(seeds)
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / f"op.{kind}").write_bytes(damaged(data, chance, len(data)))
        said.append(refused(partial(show, folder)))
    assert 0 < said.count("") < len(said)
    assert all("op." in text and "\n" not in text for text in said if text)


def png(width: int, height: int, colour: int, row: bytes) -> bytes:
    """A PNG of equal rows: a few kilobytes however large it is."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    packer = zlib.compressobj(9)
    data = b"".join(packer.compress(b"\0" + row) for _ in range(height)) + packer.flush()
    header = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("width", "height", "colour"),
    [(20_000, 20_000, 0), (9_000, 9_000, 2), (8_000, 8_000, 6)],
    ids=["grey", "colours", "transparent"],
)
def test_a_picture_that_unpacks_to_gigabytes_is_refused_unread(
    tmp_path: Path, width: int, height: int, colour: int
) -> None:
    (tmp_path / "bomb.png").write_bytes(png(width, height, colour, bytes(width * {0: 1, 2: 3, 6: 4}[colour])))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(DataError, match=r"pixels|too large"):
        encode_frame(ImageRef(tmp_path / "bomb.png"))
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown < 100, f"{grown:.0f} MB"


def test_a_film_with_huge_pictures_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    film(tmp_path / "op.mp4", "mp4v")
    monkeypatch.setattr("surgeval.studio.media._MOST_PIXELS", 3000)
    with pytest.raises(DataError, match="found 64 × 48 pixels, expected at most 3000 in a film"):
        find_films(tmp_path)


def linked(folder: Path, name: str, target: Path) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).symlink_to(target)


def test_links_that_lead_out_of_the_folder_are_refused(tmp_path: Path) -> None:
    folder, outside = tmp_path / "op", tmp_path / "private"
    (folder / "V1").mkdir(parents=True)
    (outside / "stay").mkdir(parents=True)
    for place in (folder / "V1" / "0.png", outside / "1.png", outside / "stay" / "0.png"):
        Image.new("RGB", (64, 48), (200, 0, 0)).save(place)
    linked(folder, "V1/1.png", outside / "1.png")
    linked(folder, "V1/2.png", Path("0.png"))  # inside, which is as good as a copy
    linked(folder, "V2", outside / "stay")
    with serve(folder, author="amy") as running:
        client = Client.of(running)
        for path, status in (("V1/0", 200), ("V1/1", 404), ("V1/2", 200), ("V2/0", 404)):
            found = client.ask("GET", f"/frames/{path}")
            assert found[0] == status, path
            if status == 404:
                assert "found a link that leads out of the folder" in found[1]["error"]


def test_a_film_that_is_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "op").mkdir()
    film(tmp_path / "private.mp4", "mp4v")
    linked(tmp_path / "op", "op.mp4", tmp_path / "private.mp4")
    with pytest.raises(DataError, match="found a link that leads out of the folder"):
        find_films(tmp_path / "op")


def test_a_folder_that_is_itself_a_link_is_opened(tmp_path: Path) -> None:
    (tmp_path / "real" / "V1").mkdir(parents=True)
    Image.new("RGB", (64, 48)).save(tmp_path / "real" / "V1" / "0.png")
    (tmp_path / "op").symlink_to(tmp_path / "real")
    with serve(tmp_path / "op", author="amy") as running:
        assert Client.of(running).ask("GET", "/frames/V1/0")[0] == 200


PIPES: list[tuple[str, Callable[[Path], None]]] = [
    ("V1/1.png", os.mkfifo), ("op.mp4", os.mkfifo), ("studio.sqlite", os.mkfifo),
    ("studio.sqlite", lambda path: path.symlink_to("/etc/hostname")), ("studio.sqlite", lambda path: path.mkdir()),
    ("V1/1.png", lambda path: path.symlink_to("/dev/zero")), ("V1/1.png", lambda path: path.symlink_to("1.png")),
]  # fmt: skip


@pytest.mark.parametrize(("name", "make"), PIPES, ids=range(len(PIPES)))
def test_pipes_devices_and_loops_are_no_files(tmp_path: Path, name: str, make: Callable[[Path], None]) -> None:
    (tmp_path / "V1").mkdir()
    Image.new("RGB", (64, 48)).save(tmp_path / "V1" / "0.png")
    make(tmp_path / name)

    def open_folder() -> None:
        with serve(tmp_path, author="amy") as running:
            client = Client.of(running)
            assert client.ask("GET", "/frames/V1/0")[0] == 200
            if name.startswith("V1"):
                count = client.get("/api/project")["videos"][0]["frames"]
                assert count == 1 or client.ask("GET", "/frames/V1/1")[0] == 404
            elif name == "op.mp4":
                assert [reason.split(":")[0] for reason in client.get("/api/project")["skipped"]] == [name]

    said = refused(open_folder)
    assert name != "studio.sqlite" or name in said
    assert "\n" not in said


def test_thousands_of_files_in_odd_names_open_at_once(tmp_path: Path) -> None:
    (tmp_path / "V1").mkdir()
    Image.new("RGB", (64, 48)).save(tmp_path / "V1" / "0.png")
    odd = [
        "<img src=x onerror=alert(1)>.png",
        "a'b\"c&d.png",
        "%2e%2e%2fx.png",
        "\u202egnp.png",
        "新 1.png",
        "a\nb.png",
    ]
    for name in [*odd, *(f"{k}.png" for k in range(1, 4000))]:
        os.link(tmp_path / "V1" / "0.png", tmp_path / "V1" / name)
    with open(os.fsencode(tmp_path / "V1") + b"/\xff\xfe.png", "wb") as broken:  # noqa: PTH123 - no text at all
        broken.write(b"x")
    with serve(tmp_path, author="amy") as running:
        client = Client.of(running)
        count = client.get("/api/project")["videos"][0]["frames"]
        assert count >= 4000 + 4
        names = client.get(f"/api/videos/V1/frames?first=0&last={count - 1}")["names"]
        for name in ("<img src=x onerror=alert(1)>", "%2e%2e%2fx"):
            assert client.ask("GET", f"/frames/V1/{names.index(name)}")[0] == 200


def test_one_damaged_film_is_listed_and_the_others_open(tmp_path: Path) -> None:
    (tmp_path / "bad.mp4").write_bytes(film(tmp_path / "good.mp4", "mp4v")[:600])
    (tmp_path / "V1").mkdir()
    (tmp_path / "V1" / "0.png").write_bytes(b"no picture")
    with serve(tmp_path, author="amy") as running:
        project = Client.of(running).get("/api/project")
    assert [video["name"] for video in project["videos"]] == ["good"]
    assert [reason.split(": found")[0] for reason in project["skipped"]] == ["bad.mp4", "video V1"]
    assert [film.name for film in find_films(tmp_path, skip=lambda _: None)] == ["good", "V1"]


def test_a_phantom_s_own_folder_opens_on_its_frames(tmp_path: Path) -> None:
    write_phantom(tmp_path / "phantom", seed=5, videos=1, seconds=1)
    with serve(tmp_path / "phantom", author="amy") as running:
        assert running.project.folder == tmp_path / "phantom" / "frames"
        assert len(Client.of(running).get("/api/project")["videos"]) == 1
    assert open_dataset(tmp_path / "phantom").format == "phantom"  # its labels are what they were


def test_a_bad_folder_ends_the_command_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "op.mp4").write_bytes(b"\0\0\0\x18ftypmp42" + bytes(500))
    command = [sys.executable, "-m", "surgeval", "studio", str(tmp_path), "--no-browser"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2
    assert "op.mp4" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_folders_of_uploads_and_exports_are_no_videos(tmp_path: Path) -> None:
    for place in ("V1", "imports", "imports/img_dir", "exports/img_dir", "guidelines"):
        (tmp_path / place).mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (64, 48)).save(tmp_path / place / "1.png")
    assert [film.name for film in find_films(tmp_path)] == ["V1"]
