"""A run holds its gallery: what the page shows is in the folder, and damaged pictures cost nothing but themselves."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from surgeval.errors import BadInput, printable
from surgeval.figures import FlowPipeline
from surgeval.pages import jpeg_bytes
from surgeval.protocols.surgxbench.item import Extras, Hiding, Item
from surgeval.protocols.surgxbench.stored import MOST_ITEMS, load_page, save_page

NOISE = np.random.default_rng(0).integers(0, 256, (40, 80, 3), np.uint8)
ITEMS = (
    Item(NOISE, "../v", "1\udcff", "hook", ("hook", "<b>"), 0.1 + 0.2, 0.6, None, 0.1, True, True, ""),
    Item(NOISE[::-1].copy(), "v", "2", "bag", (), 0.25, None, None, None, False, None, "no_gt ties"),
)
HIDING = Hiding(NOISE, "v", "1", "hook,cut,liver", (("hook,cut,liver", 0.5), ("bag,cut,liver", 0.25)), ())


def _flow(width: int = 64, height: int = 32) -> FlowPipeline:
    rng = np.random.default_rng(1)
    before = rng.normal(0, 3, (height, width, 2)).astype(np.float32)
    camera = np.full((height, width, 2), 1.25, np.float32)
    frame = rng.integers(0, 256, (height, width, 3), np.uint8)
    return FlowPipeline("What moves: v / 1", frame, before, camera, before - camera, before[..., 0] > 3)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    save_page(folder, ITEMS, Extras((HIDING,), _flow()), name="mine")
    return folder


def test_what_is_loaded_is_what_was_stored(run: Path) -> None:
    found = load_page(run)
    assert (found.name, found.notes) == ("mine", ())
    for own, stored in zip(ITEMS, found.items, strict=True):
        assert isinstance(own.picture, np.ndarray) and stored.picture == jpeg_bytes(own.picture)
        names = ("video", "frame", "predicted", "present", "score", "ac", "aa", "chance", "right", "grounded", "flags")
        assert [getattr(stored, name) for name in names] == [
            printable(value) if isinstance(value, str) else value for value in (getattr(own, name) for name in names)
        ]
    (hiding,) = found.extras.hidings
    assert (hiding.before, hiding.after, hiding.truth) == (HIDING.before, HIDING.after, HIDING.truth)


def test_flow_is_kept_to_a_128th_of_a_pixel_and_a_large_frame_is_made_small(run: Path, tmp_path: Path) -> None:
    own, found = _flow(), load_page(run).extras.flow
    assert found is not None and found.title == own.title
    assert (found.frame == own.frame).all() and (found.mask == own.mask).all()
    for name in ("before", "camera", "after"):
        assert np.abs(getattr(found, name) - getattr(own, name)).max() <= 1 / 128
    save_page(run, (), Extras((), _flow(1920, 1080)), name=None)
    small = load_page(run).extras.flow
    assert small is not None and small.frame.shape == (252, 448, 3)
    assert np.allclose(small.camera, 1.25)  # pixels of the frame, not of the small picture


def test_files_are_named_by_us_and_none_is_left_of_a_gallery_before(run: Path) -> None:
    flows = [f"flow_{name}.png" for name in ("after", "before", "camera", "frame")]
    assert sorted(path.name for path in (run / "gallery").iterdir()) == [
        *flows, "hiding_001.jpg", "item_001.jpg", "item_002.jpg",
    ]  # fmt: skip
    assert sorted(path.name for path in run.parent.iterdir()) == ["run"]  # the video is called ../v
    save_page(run, ITEMS[:1], Extras(), name=None)
    assert [path.name for path in (run / "gallery").iterdir()] == ["item_001.jpg"]
    save_page(run, (), Extras(), name=None)
    assert not list((run / "gallery").iterdir())
    assert load_page(run).items == ()


def test_a_run_without_page_json_has_no_gallery_and_no_note(tmp_path: Path) -> None:
    found = load_page(tmp_path)
    assert (found.items, found.notes, found.name) == ((), (), None)


def _spoil_link(path: Path) -> None:
    path.rename(path.parents[2] / "elsewhere")
    path.symlink_to("../../elsewhere")


def _spoil_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _spoil_size(path: Path) -> None:
    with path.open("ab") as stream:
        stream.truncate(1 << 26)


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (_spoil_link, "leads out of the run's folder"),
        (_spoil_pipe, "named pipe"),
        (_spoil_size, "67108864 bytes"),
        (Path.unlink, "no such file"),
    ],
    ids=["link", "pipe", "large", "gone"],
)
@pytest.mark.parametrize("file", ["item_002.jpg", "hiding_001.jpg", "flow_camera.png"])
def test_a_spoiled_picture_is_left_out_with_a_note(run: Path, file: str, spoil: Any, told: str) -> None:
    spoil(run / "gallery" / file)
    found = load_page(run)
    (note,) = found.notes
    assert file in note and told in note and note.endswith("left out of the page")
    assert len(found.items) == 2 - file.startswith("item")
    assert len(found.extras.hidings) == 1 - file.startswith("hiding")
    assert (found.extras.flow is None) == file.startswith("flow")


def test_an_image_that_is_decoded_here_is_checked_first(run: Path) -> None:
    path = run / "gallery" / "flow_before.png"
    for image, told in (
        (Image.new("RGB", (12_000, 12_000)), "12000 × 12000 pixels"),
        (Image.new("L", (8, 8)), "three channels of 16 bits"),
    ):
        image.save(path, "PNG")
        (note,) = load_page(run).notes
        assert told in note
    path.write_bytes(b"")
    assert len(load_page(run).notes) == 1


@pytest.mark.parametrize(
    "text",
    ["", "[" * 100_000, "{}", '{"format": 2}', "null", '{"format": 1, "name": 3}', '{"format":1e999999}', b"\xff\xfe"],
    ids=["empty", "deep", "bare", "format", "null", "kind", "infinite", "bytes"],
)
def test_a_damaged_page_json_costs_the_gallery_and_nothing_else(run: Path, text: str | bytes) -> None:
    (run / "page.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    found = load_page(run)
    assert found.items == () and len(found.notes) == 1
    assert "page.json" in found.notes[0] and "the page has no gallery" in found.notes[0]


def test_nothing_is_written_through_a_link_and_a_gallery_has_an_end(run: Path, tmp_path: Path) -> None:
    shutil.rmtree(run / "gallery")
    (tmp_path / "mine").mkdir()
    (run / "gallery").symlink_to(tmp_path / "mine")
    with pytest.raises(BadInput, match="is a link"):
        save_page(run, ITEMS, Extras(), name=None)
    assert not list((tmp_path / "mine").iterdir())
    with pytest.raises(BadInput, match=f"the limit is {MOST_ITEMS}"):
        save_page(run, ITEMS[:1] * (MOST_ITEMS + 1), Extras(), name=None)
