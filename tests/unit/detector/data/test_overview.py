"""A dry run shows what would be learned: every class with its counts, and labelled frames to look at."""

from __future__ import annotations

import sys
from pathlib import Path
from subprocess import run

import numpy as np
import pytest
from tests.unit.detector.data.small_sets import frame, instance, mixed_set, training_set

from surgeval.detector.data import Augment, class_table, label_mosaic, save_packed, told_problems
from surgeval.errors import BadInput


def test_the_table_counts_boxes_frames_and_videos() -> None:
    frames = [frame(1, [instance(17), instance(17, (40, 8, 20, 20))]), frame(2, [instance(17)]),
              frame(3, [instance(60)], video="VID02"), frame(4, [instance(17)], video="VID02")]  # fmt: skip
    table = class_table(training_set(frames))
    assert len(table) == 100
    assert (table[17].name, table[17].boxes, table[17].frames, table[17].videos) == (
        "grasper,retract,gallbladder", 4, 3, 2,
    )  # fmt: skip
    assert (table[60].boxes, table[60].frames, table[60].videos) == (1, 1, 1)
    assert sum(row.boxes for row in table) == 5


def test_the_picture_shows_boxes_where_they_are() -> None:
    black = training_set([frame(k, [instance(17)]) for k in range(9)], size=96, fill=0,
                         read=lambda one: np.zeros((64, 96, 3), np.uint8))  # fmt: skip
    sheet = label_mosaic(black, 4)
    assert sheet.shape == (192, 192, 3)
    # The box is 8…32 × 16…48 in a frame that lies 16 pixels below the top.
    assert sheet[32:64, 8].any(axis=1).all()
    assert not sheet[40:60, 12:28].any()


def test_a_name_at_the_right_edge_is_moved_into_its_tile() -> None:
    def columns_of_the_name(x: float) -> np.ndarray:
        black = training_set([frame(1, [instance(17, (x, 30, 20, 20))])], size=320, fill=0,
                             read=lambda one: np.zeros((64, 96, 3), np.uint8))  # fmt: skip
        return np.flatnonzero(label_mosaic(black, 1)[:148].max(axis=(0, 2)))  # above its box

    columns = [columns_of_the_name(x) for x in (10, 74)]
    assert columns[0][0] > 30
    assert columns[1][-1] < 320
    assert abs(np.ptp(columns[0]) - np.ptp(columns[1])) <= 1  # the same name, and all of it


@pytest.mark.parametrize(("count", "shape"), [(1, (96, 96)), (3, (192, 192)), (12, (288, 384)), (50, (288, 384))])
def test_the_picture_has_as_many_frames_as_there_are(count: int, shape: tuple[int, int]) -> None:
    assert label_mosaic(mixed_set(), count).shape == (*shape, 3)


def test_augmented_frames_can_be_looked_at() -> None:
    data = mixed_set()
    plain, changed = label_mosaic(data, 4), label_mosaic(data, 4, augment=Augment(), seed=1)
    assert plain.shape == changed.shape
    assert (plain != changed).any()


def test_no_frames_is_refused() -> None:
    with pytest.raises(BadInput, match="found 0 frames"):
        label_mosaic(mixed_set(), 0)


def test_training_needs_no_readers(tmp_path: Path) -> None:
    """A machine that trains on a packed set has no polars, no video decoder and no plotting."""
    save_packed(tmp_path / "train.safetensors", mixed_set())
    code = (
        "import sys; sys.modules.update(polars=None, av=None, vl_convert=None, numba=None)\n"
        "from pathlib import Path\n"
        "from surgeval.detector.data import Augment, batches, epoch_order, label_mosaic, load_packed\n"
        f"data = load_packed(Path({str(tmp_path / 'train.safetensors')!r}))\n"
        "order = epoch_order(data, epoch=0, seed=0, sampling='balanced')\n"
        "assert len(list(batches(data, batch=4, augment=Augment(), order=order, workers=2))) == 3\n"
        "assert label_mosaic(data, 4).any() and 'surgeval.datasets' not in sys.modules"
    )
    run([sys.executable, "-c", code], check=True, timeout=120)


def test_what_both_sets_left_out_is_told_and_which_classes_cannot_be_learnt() -> None:
    past = instance(17, (80, 8, 40, 20))
    learnt = training_set([frame(1, [instance(17)])])
    chosen_on = training_set([frame(2, [past, instance(60)], video="VID02")])
    told = told_problems(learnt, chosen_on)
    assert told[0].startswith("99 classes without a box: the detector cannot learn them (")
    assert told[1:] == [
        "validation: 1 box past the edge of the frame: cut there (VID02/000002)",
        "classes that only the validation videos show: 1 (hook,dissect,gallbladder); they cannot be learnt and lower "
        "its mAP",
    ]
    assert told_problems(learnt) == told[:1]
