"""Frames come from anywhere, in order, and a damaged one costs only itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image as Picture
from tests.unit.detector.inference.conftest import Film, picture
from tests.unit.detector.inference.detectors import SPACE, FindsWhite

from surgeval.datasets import open_images
from surgeval.detector.inference import detect_frames, open_source
from surgeval.detector.inference.sources import _same
from surgeval.errors import BadInput, DataError
from surgeval.records import Frame
from surgeval.vocab import load_labels


def quiet(_text: str) -> None:
    """Tell nobody."""


def names(path: Path, **how: object) -> dict[str, list[str]]:
    source = open_source(path, SPACE, **how)  # type: ignore[arg-type]
    return {video.name: [frame.name for frame in source.frames(video.name, quiet)] for video in source.videos(quiet)}


def test_an_image_a_folder_and_folders_of_images(images: Path) -> None:
    assert names(images / "001.png") == {"pictures": ["001"]}
    assert names(images) == {"pictures": ["000", "001", "002", "003", "004"]}
    assert names(images, every=2) == {"pictures": ["000", "002", "004"]}
    assert names(images.parent) == {"pictures": ["000", "001", "002", "003", "004"]}
    (images / "pictures").mkdir()
    Picture.fromarray(picture(None)).save(images / "pictures" / "x.png")
    assert list(names(images)) == ["pictures", "pictures.pictures"]
    Picture.fromarray(picture(None)).save(images / "001.jpg")
    assert names(images)["pictures"][:4] == ["000", "001", "001.png", "002"]


def test_a_film_by_every_nth_frame_or_by_rate(film: Film) -> None:
    path = film(frames=50)
    assert len(names(path)["op"]) == 50
    assert names(path, every=20) == {"op": ["000000", "000020", "000040"]}
    assert names(path, fps=2.0) == {"op": ["000000", "000013", "000025", "000038"]}
    assert names(path.parent, fps=1.0) == {"op": ["000000", "000025"]}
    with pytest.raises(BadInput, match="every: found 2 and 1 frames a second as well, expected one of them"):
        names(path, every=2, fps=1.0)


def test_images_have_no_times_to_thin_by(images: Path) -> None:
    with pytest.raises(BadInput, match="found frames without times, expected some where a rate is given"):
        names(images, fps=1.0)


def test_nothing_to_look_at_is_said(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no picture")
    with pytest.raises(BadInput, match=r"found no image, expected \.jpg"):
        open_source(tmp_path, SPACE)


def test_labels_of_other_classes_are_not_used(tmp_path: Path) -> None:
    (tmp_path / "labels").mkdir()
    (tmp_path / "images").mkdir()
    (tmp_path / "labels" / "VID01_000012.txt").write_text("3 0.5 0.5 0.2 0.1")
    (tmp_path / "classes.txt").write_text("\n".join(load_labels("cholec80").instruments))
    Picture.fromarray(picture(None)).save(tmp_path / "images" / "VID01_000012.png")
    source = open_source(tmp_path, SPACE)
    assert source.foreign
    assert source.dataset.space == SPACE
    assert [(frame.instances, frame.labelled) for frame in source.frames("VID01", quiet)] == [((), False)]


def test_equal_triplets_are_the_same_classes_whatever_stands_beside_them() -> None:
    phantom, cholec = SPACE, load_labels("cholect50")
    assert phantom.instruments != cholec.instruments
    assert _same(cholec, phantom)
    assert not _same(load_labels("prostatd"), phantom)
    assert not _same(phantom, load_labels("cholec80"))


@pytest.mark.parametrize("batch", [1, 2, 16])
def test_a_damaged_frame_is_named_and_the_others_stay_in_order(images: Path, batch: int) -> None:
    skipped: list[tuple[str, str]] = []
    frames = open_images(images).frames("pictures")
    told = detect_frames(
        FindsWhite(), frames, batch=batch, on_skip=lambda frame, error: skipped.append((frame.name, str(error)))
    )
    found = [(frame.name, len(boxes)) for frame, boxes in told]
    assert found == [("000", 1), ("001", 1), ("003", 1), ("004", 0)]
    assert [name for name, _ in skipped] == ["002"]
    assert "002.png: found a damaged image" in skipped[0][1]


def test_without_a_listener_a_damaged_frame_stops_the_work(images: Path) -> None:
    with pytest.raises(DataError, match=r"002\.png: found a damaged image"):
        list(detect_frames(FindsWhite(), open_images(images).frames("pictures")))


def test_frames_of_a_film_are_exact_and_few_are_held_ahead(film: Film) -> None:
    source = open_source(film(frames=40), SPACE, every=3)
    asked = 0

    def counted() -> Iterator[Frame]:
        nonlocal asked
        for frame in source.frames("op", quiet):
            asked += 1
            yield frame

    seen = 0
    for frame, found in detect_frames(FindsWhite(image_size=96), counted(), batch=2):
        assert found.boxes[0, 0].item() == pytest.approx(2 * frame.index % 60, abs=1.5)
        seen += 1
        assert asked - seen <= 3 * 2 + 2
    assert seen == 14


def test_a_frame_without_a_picture_is_no_crash() -> None:
    frame = Frame("VID01", "000001", 1, None, None, 64, 48)
    with pytest.raises(DataError, match="VID01: frame 000001: found no image, expected one to look at"):
        list(detect_frames(FindsWhite(), [frame]))
    with pytest.raises(BadInput, match="batch: found 0"):
        list(detect_frames(FindsWhite(), [frame], batch=0))
