from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from surgeval.datasets import MemoryDataset, contact_sheet, draw_frame
from surgeval.errors import DataError
from surgeval.records import Box, Frame, Instance, Mask, Triplet
from surgeval.vocab import load_labels


def test_boxes_are_drawn_on_a_copy_where_they_are() -> None:
    image = np.zeros((100, 200, 3), np.uint8)
    frame = Frame("v", "1", 1, None, None, 200, 100, (Instance(Triplet(0), Box(50, 40, 60, 30)),))
    drawn = draw_frame(image, frame, load_labels("cholec80"))
    assert not image.any()
    assert drawn[55, 50].any()
    assert drawn[55, 110].any()
    assert drawn[40, 80].any()
    assert not drawn[55, 70:90].any()
    assert not drawn[80:].any()


def test_masks_and_outlines_are_drawn() -> None:
    image = np.full((100, 200, 3), 100, np.uint8)
    mask = np.zeros((100, 200), bool)
    mask[10:20, 10:20] = True
    outline = ((100.0, 50.0), (150.0, 50.0), (150.0, 90.0))
    instances = (Instance(Triplet(0), mask=Mask.from_array(mask)), Instance(Triplet(1), polygon=outline))
    drawn = draw_frame(image, Frame("v", "1", 1, None, None, 200, 100, instances), load_labels("cholec80"))
    assert (drawn[15, 15] != 100).any()
    assert (drawn[50, 120] != 100).any()
    assert (drawn[30, 30] == 100).all()


def test_a_contact_sheet_shows_every_video(make: Callable[[], MemoryDataset]) -> None:
    sheet = contact_sheet(make(), 4, columns=2, width=120)
    assert sheet.shape == (160, 240, 3)
    assert all(tile.any() for tile in (sheet[:80, :120], sheet[:80, 120:], sheet[80:, :120], sheet[80:, 120:]))


def test_a_dataset_without_images_gives_an_empty_sheet(make: Callable[[], MemoryDataset]) -> None:
    frames = [replace(frame, image=None) for frame in make().frames("VID01")]
    assert not contact_sheet(MemoryDataset(load_labels("cholect50"), frames), 4).any()


def test_a_sheet_goes_on_past_an_image_that_cannot_be_read(make: Callable[[], MemoryDataset], heard: Any) -> None:
    dataset = make()
    gone, empty = (frame.image for frame in list(dataset.frames("VID01"))[:2])
    assert gone and empty
    gone.path.unlink()
    empty.path.write_bytes(b"")
    sheet = contact_sheet(dataset, 4, columns=2, width=120, on_problem=heard)
    assert sheet.shape == (80, 240, 3)
    assert len(heard.of("image-broken")) == 2
    assert "found no such file" in heard.of("image-broken")[0]
    assert "found an empty file" in heard.of("image-broken")[1]
    with pytest.raises(DataError, match="found no such file"):
        contact_sheet(dataset, 4)
