"""Boxes come back on the frame they were found on, whatever its size and whoever makes it square."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.detector.inference.conftest import picture
from tests.unit.detector.inference.detectors import FindsWhite, operation

from surgeval.detector import Raw, load_detector
from surgeval.detector.geometry import Fit
from surgeval.detector.inference import Looker, TDNetDetector, letterbox_on_device, open_detector
from surgeval.detector.inference.look import unpacked
from surgeval.detector.nms import Selecting, select
from surgeval.errors import BadInput, RunError

SIZES = st.tuples(st.integers(8, 120), st.integers(8, 120))


@given(SIZES, st.sampled_from([32, 64, 96]), st.integers(0, 1000))
def test_both_letterboxes_agree_to_one_grey_level(size: tuple[int, int], side: int, seed: int) -> None:
    frames = np.random.default_rng(seed).integers(0, 256, (2, *size, 3), dtype=np.uint8)
    fit = Fit.of(*size, side)
    on_device = letterbox_on_device(torch.from_numpy(frames), fit, 114).numpy().astype(int)
    on_host = np.stack([fit.image(frame, 114) for frame in frames]).astype(int)
    assert np.abs(on_device - on_host).max() <= 1


@settings(max_examples=25)
@given(st.integers(64, 200), st.integers(64, 200))
def test_a_found_box_lies_where_it_was_drawn(width: int, height: int) -> None:
    box = (width // 4, height // 4, width // 4 * 3, height // 4 * 3)
    found = Looker(FindsWhite(image_size=128)).look([picture(box, width, height)])[0]
    pixel = max(width, height) / 128  # of the network's input, on the frame
    assert found.classes.tolist()[0] == 0
    assert np.abs(found.boxes[0].numpy() - np.array(box)).max() <= 1.5 * pixel


def test_what_lies_in_the_bars_is_left_out_and_the_rest_is_cut_at_the_edge() -> None:
    class Everywhere(FindsWhite):
        def raw(self, images: torch.Tensor) -> Raw:
            boxes = torch.tensor([[[0.0, 0.0, 64.0, 15.0], [-9.0, 10.0, 32.0, 32.0]]])
            return Raw(boxes, {head: torch.full((1, 2, n), 0.5) for head, n in self.classes.counts.items()})

    found = Looker(Everywhere(), Selecting(multi_label=False)).look([picture(None, 128, 64)])[0]
    assert found.boxes.tolist() == [[0.0, 0.0, 64.0, 32.0]]  # 128 × 64 in 64 × 64: 16 rows of bar above and below
    assert (len(found.scores), len(found.classes), len(found.heads["v"])) == (1, 1, 1)


def test_a_batch_says_what_single_pictures_say(trained: Path) -> None:
    looker = Looker(open_detector(trained), Selecting(confidence=0.1))
    frames = [operation(10 + n, 448 + 16 * (n % 2)) for n in range(4)]
    together, alone = looker.look(frames), [looker.look([frame])[0] for frame in frames]
    assert sum(len(one) for one in together) > 4
    for one, other in zip(together, alone, strict=True):
        assert one.classes.tolist() == other.classes.tolist()
        assert torch.allclose(one.boxes, other.boxes, atol=1e-3)
        assert torch.allclose(one.heads["v"], other.heads["v"], atol=1e-5)


def test_folding_normalisations_and_leaving_heads_out_changes_no_box(trained: Path) -> None:
    loaded = load_detector(trained / "detector.safetensors")
    images = torch.from_numpy(np.stack([operation(10 + n, 320, 320) for n in range(2)])).permute(0, 3, 1, 2)
    kinds = ((False, True), (True, True), (True, False))
    plain, folded, lean = (TDNetDetector(loaded, fuse=fuse, aux=aux).raw(images) for fuse, aux in kinds)
    assert torch.allclose(plain.boxes, folded.boxes, atol=1e-3)
    assert torch.allclose(plain.probabilities["t"], folded.probabilities["t"], atol=1e-5)
    assert torch.equal(folded.boxes, lean.boxes)
    assert torch.equal(folded.probabilities["ivt"], lean.probabilities["ivt"])
    assert list(lean.probabilities) == ["ivt"]


def test_half_precision_needs_a_gpu(trained: Path) -> None:
    with pytest.raises(BadInput, match="found float16 on cpu, expected float32: half needs a GPU"):
        open_detector(trained, half=True)


def test_numbers_that_overflow_are_told_and_not_reported_as_nothing_found() -> None:
    class Broken(FindsWhite):
        def raw(self, images: torch.Tensor) -> Raw:
            whole = super().raw(images)
            return Raw(whole.boxes, {head: values * float("nan") for head, values in whole.probabilities.items()})

    with pytest.raises(RunError, match="white: found numbers that overflow, expected finite boxes and scores"):
        Looker(Broken()).look([picture(None)])


def test_fetching_in_one_transfer_changes_nothing(trained: Path) -> None:
    images = torch.from_numpy(np.stack([operation(10 + n, 320, 320) for n in range(4)])).permute(0, 3, 1, 2)
    raw = open_detector(trained).raw(images)
    chosen = select(raw.boxes, dict(raw.probabilities), "ivt", settings=Selecting(confidence=0.01))
    assert len({len(one) for one in chosen}) > 1
    for one, other in zip(unpacked(chosen), chosen, strict=True):
        assert torch.equal(one.boxes, other.boxes)
        assert torch.equal(one.scores, other.scores)
        assert torch.equal(one.classes, other.classes)
        assert all(torch.equal(one.heads[head], other.heads[head]) for head in ("ivt", "i", "v", "t"))
