"""Batches are the same with any number of threads, and no thread outlives its iterator."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import cv2
import numpy as np
import pytest
import torch
from tests.unit.detector.data.small_sets import frame, instance, mixed_set, training_set

from surgeval.arrays import Image as Pixels
from surgeval.detector.data import Augment, Batch, TrainingSet, batches, epoch_order
from surgeval.detector.data.pictures import ScaledPictures
from surgeval.errors import BadInput, DataError

DATA = mixed_set(size=64, count=14)


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("surgeval-")]


def joined(parts: list[Batch]) -> dict[tuple[str, int], bytes]:
    """Each picture with its boxes by frame and how often it was seen before."""
    content: dict[tuple[str, int], bytes] = {}
    for batch in parts:
        for k, name in enumerate(batch.frames):
            count = sum(known[0] == name for known in content)
            boxes = batch.truth.boxes[k][batch.truth.mask[k]]
            content[name, count] = batch.images[k].numpy().tobytes() + boxes.numpy().tobytes()
    return content


@pytest.mark.parametrize("workers", [1, 3])
def test_threads_change_neither_order_nor_content(workers: int) -> None:
    order = epoch_order(DATA, epoch=2, seed=5)
    settings = {"batch": 4, "epoch": 2, "seed": 5, "augment": Augment(), "order": order}
    alone = list(batches(DATA, **settings))  # type: ignore[arg-type]
    together = list(batches(DATA, **settings, workers=workers))  # type: ignore[arg-type]
    assert [b.frames for b in alone] == [b.frames for b in together]
    for one, other in zip(alone, together, strict=True):
        assert torch.equal(one.images, other.images)
        assert torch.equal(one.truth.boxes, other.truth.boxes)
        assert all(torch.equal(one.truth.labels[head], other.truth.labels[head]) for head in one.truth.labels)


def test_content_hangs_on_neither_order_nor_batch() -> None:
    order = epoch_order(DATA, epoch=0, seed=1)
    one = joined(list(batches(DATA, batch=3, epoch=7, seed=1, augment=Augment(), order=order)))
    other = joined(list(batches(DATA, batch=5, epoch=7, seed=1, augment=Augment(), order=order[::-1])))
    assert one == other


def test_a_frame_shown_again_is_drawn_anew() -> None:
    parts = joined(list(batches(DATA, batch=2, augment=Augment(), order=[3, 3, 3])))
    assert len(set(parts.values())) == 3


def test_batches_hold_what_samples_are() -> None:
    (batch,) = batches(DATA, batch=5, order=[1, 2, 3, 7, 0])
    assert batch.images.shape == (5, 3, 64, 64) and batch.images.dtype == torch.uint8
    for k, index in enumerate([1, 2, 3, 7, 0]):
        sample = DATA.sample(index)
        count = len(sample.boxes)
        assert (batch.images[k].permute(1, 2, 0).numpy() == sample.image).all()
        assert batch.truth.mask[k].tolist() == [True] * count + [False] * (batch.truth.mask.shape[1] - count)
        assert (batch.truth.boxes[k, :count].numpy() == sample.boxes).all()
        assert not batch.truth.boxes[k, count:].any()
        for head, rows in sample.labels.items():
            assert (batch.truth.labels[head][k, :count].numpy() == rows).all()
            assert not batch.truth.labels[head][k, count:].any()
    assert batch.frames == tuple(DATA.name(k) for k in (1, 2, 3, 7, 0))


def test_rows_are_padded_to_eights() -> None:
    for boxes, rows in ((0, 8), (3, 8), (8, 8), (9, 16)):
        crowd = [instance(17, (float(k), 8, 24, 32)) for k in range(boxes)]
        data = training_set([frame(1, crowd), frame(2, [instance()])], size=64)
        (batch,) = batches(data, batch=1, order=[0])
        assert batch.truth.boxes.shape == (1, rows, 4)
        assert int(batch.truth.mask.sum()) == boxes


def test_the_last_batch_is_short_or_left_out() -> None:
    assert [len(b.frames) for b in batches(DATA, batch=4)] == [4, 4, 4, 2]
    assert [len(b.frames) for b in batches(DATA, batch=4, drop_last=True, workers=2)] == [4, 4, 4]
    assert list(batches(DATA, batch=4, order=[])) == []


class Slow(ScaledPictures):
    """Pictures that count how many were read, and break at one of them."""

    def __init__(self, data: TrainingSet, breaks_at: int | None = None) -> None:
        super().__init__(self.slow_read, {})
        self.source, self.breaks_at, self.read_count = data.pictures, breaks_at, 0

    def slow_read(self, number: int) -> Pixels:
        self.read_count += 1
        time.sleep(0.002)
        if number == self.breaks_at:
            raise DataError("gone.jpg", "found no such file, expected an image")
        return self.source[number]


def test_leaving_early_ends_the_threads() -> None:
    stream = batches(replace(DATA, pictures=Slow(DATA)), batch=2, order=np.arange(14).repeat(20), workers=3)
    next(stream)
    assert threads()
    stream.close()  # type: ignore[attr-defined]
    assert not threads()
    for _ in batches(DATA, batch=2, workers=2):
        break
    assert not threads()


def test_an_error_comes_out_and_ends_the_threads() -> None:
    slow = Slow(DATA, breaks_at=9)
    stream = batches(replace(DATA, pictures=slow), batch=2, workers=3)
    with pytest.raises(DataError, match=r"gone\.jpg: found no such file"):
        list(stream)
    assert not threads()
    assert list(stream) == []


def test_only_a_few_batches_are_made_ahead() -> None:
    slow = Slow(DATA)
    stream = batches(replace(DATA, pictures=slow), batch=2, order=np.arange(14).repeat(50), workers=4)
    next(stream)
    time.sleep(0.2)
    assert slow.read_count <= 2 * (1 + 3)
    stream.close()  # type: ignore[attr-defined]


def test_opencv_has_its_threads_back_afterwards() -> None:
    before = cv2.getNumThreads()
    cv2.setNumThreads(2)
    try:
        stream = batches(DATA, batch=2, workers=2)
        next(stream)
        assert cv2.getNumThreads() == 1
        list(stream)
        assert cv2.getNumThreads() == 2
    finally:
        cv2.setNumThreads(before)


def test_impossible_requests_are_refused_at_once() -> None:
    for wrong in ({"batch": 0}, {"batch": 2, "workers": -1}, {"batch": 2, "order": [14]}, {"batch": 2, "order": [-1]}):
        with pytest.raises(BadInput):
            batches(DATA, **wrong)


@pytest.mark.skipif(torch.cuda.is_available(), reason="an accelerator is here")
def test_pinned_memory_needs_an_accelerator() -> None:
    with pytest.raises(BadInput, match="found no accelerator"):
        batches(DATA, batch=2, pin=True)
