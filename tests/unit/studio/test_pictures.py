"""Pictures for the browser: what goes out as it is, what is encoded, and what is ready before it is asked for."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from surgeval.arrays import Image as Pixels
from surgeval.datasets import open_video, read_image
from surgeval.errors import BadInput, DataError
from surgeval.records import ImageRef
from surgeval.studio import pictures as module
from surgeval.studio.pictures import EncodedPicture, Pictures, encode_frame


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[ImageRef]:
    """Every frame that was encoded, in order."""
    done: list[ImageRef] = []
    real = encode_frame

    def watched(ref: ImageRef) -> EncodedPicture:
        done.append(ref)
        return real(ref)

    monkeypatch.setattr(module, "encode_frame", watched)
    return done


@pytest.fixture
def film(tmp_path: Path) -> list[ImageRef]:
    path = tmp_path / "op.mp4"
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"mp4v"), 25, (64, 48))
    for k in range(60):
        writer.write(np.full((48, 64, 3), 4 * k, np.uint8))
    writer.release()
    refs = [frame.image for frame in open_video(path).frames("op")]
    return [ref for ref in refs if ref is not None]


def files(folder: Path, count: int) -> list[ImageRef]:
    for k in range(count):
        Image.new("RGB", (64, 48), (k, 0, 0)).save(folder / f"{k:03d}.png")
    return [ImageRef(folder / f"{k:03d}.png") for k in range(count)]


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not true():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.01)


def decoded(picture: EncodedPicture) -> Pixels:
    return np.asarray(Image.open(BytesIO(picture.data)).convert("RGB"))


def grey(picture: EncodedPicture) -> float:
    return float(decoded(picture).mean())


def test_a_file_that_browsers_show_as_it_is_goes_out_byte_for_byte(tmp_path: Path) -> None:
    for name, kind in (("a.png", "image/png"), ("a.jpg", "image/jpeg"), ("a.webp", "image/webp")):
        Image.new("RGB", (64, 48), (9, 8, 7)).save(tmp_path / name)
        assert encode_frame(ImageRef(tmp_path / name)) == EncodedPicture((tmp_path / name).read_bytes(), kind)


def test_a_file_that_a_browser_would_turn_or_cannot_show_is_encoded_with_its_pixels_in_place(tmp_path: Path) -> None:
    half = np.zeros((48, 64, 3), np.uint8)
    half[:24] = 255
    turned = Image.Exif()
    turned[0x0112] = 6
    Image.fromarray(half).save(tmp_path / "turned.jpg", exif=turned.tobytes(), quality=95)
    Image.fromarray(half).save(tmp_path / "plain.bmp")
    Image.fromarray(half).convert("CMYK").save(tmp_path / "print.jpg", quality=95)
    for name in ("turned.jpg", "plain.bmp", "print.jpg"):
        picture = encode_frame(ImageRef(tmp_path / name))
        pixels = decoded(picture)
        assert picture.kind == "image/jpeg"
        assert pixels.shape == (48, 64, 3)
        assert pixels[:20].mean() > 240
        assert pixels[-20:].mean() < 15


def test_a_png_is_not_decoded_to_be_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Image.new("RGB", (64, 48)).save(tmp_path / "a.png")
    monkeypatch.setattr("PIL.PngImagePlugin.PngImageFile.load", lambda _self: pytest.fail("it was decoded"))
    assert encode_frame(ImageRef(tmp_path / "a.png")).kind == "image/png"


def test_a_png_that_browsers_turn_is_encoded(tmp_path: Path) -> None:
    turned = Image.Exif()
    turned[0x0112] = 6
    Image.new("RGB", (64, 48)).save(tmp_path / "a.png", exif=turned)
    assert decoded(encode_frame(ImageRef(tmp_path / "a.png"))).shape == (48, 64, 3)
    data = (tmp_path / "a.png").read_bytes()
    first, last = data.index(b"eXIf") - 4, data.index(b"IDAT") - 4
    late = data[:first] + data[last:-12] + data[first:last] + data[-12:]  # behind the pixels, where it is seen too
    (tmp_path / "a.png").write_bytes(late)
    assert encode_frame(ImageRef(tmp_path / "a.png")).kind == "image/jpeg"


def test_a_broken_file_is_named_and_its_neighbours_are_shown(tmp_path: Path) -> None:
    refs = files(tmp_path, 3)
    refs[1].path.write_bytes(b"no picture")
    with Pictures({"V1": refs}) as pictures:
        assert pictures.get("V1", 0).kind == "image/png"
        with pytest.raises(DataError, match=r"001\.png: found a file that is no image"):
            pictures.get("V1", 1)
        with pytest.raises(DataError):  # again, not for ever from memory: the file may be repaired
            pictures.get("V1", 1)
        Image.new("RGB", (64, 48)).save(refs[1].path)
        assert pictures.get("V1", 1).kind == "image/png"


@pytest.mark.parametrize(("video", "index"), [("V1", 3), ("V1", -1), ("V2", 0)])
def test_a_frame_that_is_not_there_is_refused(tmp_path: Path, video: str, index: int) -> None:
    with Pictures({"V1": files(tmp_path, 3)}) as pictures, pytest.raises(BadInput, match="expected one of its"):
        pictures.get(video, index)


def test_neighbours_are_ready_before_they_are_asked_for(tmp_path: Path, made: list[ImageRef]) -> None:
    refs = files(tmp_path, 40)
    with Pictures({"V1": refs}, ahead=6, behind=2) as pictures:
        pictures.get("V1", 10)
        until(lambda: len(made) == 9)
        assert {ref.path.name for ref in made} == {f"{k:03d}.png" for k in range(8, 17)}
        pictures.get("V1", 16)
        assert made.count(refs[16]) == 1


def test_every_frame_of_a_film_is_itself_forward_backward_and_at_random(film: list[ImageRef]) -> None:
    order = [*range(10), *range(50, 30, -1), 3, 59, 0, 41]
    with Pictures({"op": film}, budget=12_000) as pictures:
        seen = [(index, grey(pictures.get("op", index))) for index in order]
    true = [float(read_image(ref).mean()) for ref in film]
    assert min(np.diff(true[2:])) > 2, "frames cannot be told apart"
    assert all(abs(value - true[index]) < 1 for index, value in seen), seen


def test_going_back_in_a_film_decodes_a_run_before_the_frame(film: list[ImageRef], made: list[ImageRef]) -> None:
    with Pictures({"op": film}, ahead=8, behind=0) as pictures:
        pictures.get("op", 40)
        until(lambda: len(made) == 9)
        made.clear()
        pictures.get("op", 30)
        assert [ref.frame for ref in made][:9] == list(range(22, 31))
        made.clear()
        for index in range(29, 22, -1):
            pictures.get("op", index)
        assert not {ref.frame for ref in made} & set(range(22, 31))


def test_memory_stays_within_its_budget(tmp_path: Path) -> None:
    refs = files(tmp_path, 60)
    size = refs[0].path.stat().st_size
    with Pictures({"V1": refs}, budget=10 * size, ahead=3, behind=1) as pictures:
        for index in range(60):
            pictures.get("V1", index)
            assert pictures._bytes == sum(len(picture.data) for picture in pictures._kept.values())
            assert pictures._bytes <= 10 * size + 200


def test_neighbours_of_a_frame_that_was_left_are_given_up(film: list[ImageRef], made: list[ImageRef]) -> None:
    with Pictures({"op": film}, ahead=25, behind=0) as pictures:
        pictures.get("op", 0)
        pictures.get("op", 59)
        until(lambda: not pictures._asked)
        again = grey(pictures.get("op", 5))  # given up, and asked for again
    assert again == pytest.approx(float(read_image(film[5]).mean()), abs=1)


def test_two_people_far_apart_in_one_film_both_get_their_frames(film: list[ImageRef]) -> None:
    with Pictures({"op": film}, ahead=2, behind=1) as pictures, ThreadPoolExecutor(8) as people:
        wanted = [frame for k in range(25) for frame in (k, 59 - k)]
        seen = list(people.map(lambda frame: grey(pictures.get("op", frame)), wanted, timeout=240))
        assert not pictures._waited
    assert seen == [pytest.approx(float(read_image(film[frame]).mean()), abs=1) for frame in wanted]
