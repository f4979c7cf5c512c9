"""The letterbox and the measures of overlap."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from surgeval.detector.geometry import Fit, ciou, ciou_matrix, decode, iou, iou_matrix
from surgeval.errors import BadInput


def test_a_frame_lies_in_the_middle_of_its_square_and_the_rest_is_filled() -> None:
    frame = np.full((4, 8, 3), 200, np.uint8)
    for fill in (0, 114):
        square = Fit.of(4, 8, 16).image(frame, fill)
        assert square.shape == (16, 16, 3)
        assert (square[4:12] == 200).all()
        assert (square[:4] == fill).all()
        assert (square[12:] == fill).all()


def test_a_frame_of_the_right_size_is_not_resampled() -> None:
    frame = np.random.default_rng(0).integers(0, 256, (32, 32, 3), dtype=np.uint8)
    assert (Fit.of(32, 32, 32).image(frame, 0) == frame).all()


def test_a_mark_in_the_frame_lies_where_forward_says() -> None:
    frame = np.zeros((401, 703, 3), np.uint8)
    frame[100:200, 300:500] = 255
    fit = Fit.of(401, 703, 640)
    x1, y1, x2, y2 = fit.forward(np.array([300.0, 100, 500, 200]))
    rows, columns = np.nonzero(fit.image(frame, 0)[..., 0] > 127)
    measured = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
    assert measured == pytest.approx([x1, y1, x2, y2], abs=0.6)


def test_arrays_and_tensors_are_fitted_alike_and_stay_what_they_are() -> None:
    fit, boxes = Fit.of(360, 641, 320), np.array([[3.0, 5.0, 400.0, 300.0]])
    tensor = torch.from_numpy(boxes)
    assert np.array_equal(fit.forward(tensor).numpy(), fit.forward(boxes))
    assert np.array_equal(fit.back(tensor).numpy(), fit.back(boxes))
    assert boxes.tolist() == [[3.0, 5.0, 400.0, 300.0]]
    assert fit.forward(np.array([[1, 2, 3, 4]])).dtype == np.float64
    assert fit.back(torch.tensor([[1.0, 2, 3, 4]], dtype=torch.float16)).dtype == torch.float32
    assert fit.back(boxes.astype(np.float32)).dtype == np.float32


def test_boxes_go_back_clipped_to_the_frame() -> None:
    fit = Fit.of(720, 1280, 640)
    assert fit.back(np.array([-50.0, 0, 900, 640])).tolist() == [0, 0, 1280, 720]


def test_the_thinnest_frame_keeps_a_pixel() -> None:
    assert Fit.of(1, 4000, 640).resized_hw == (1, 640)


def test_wrong_pictures_and_sizes_are_refused() -> None:
    with pytest.raises(BadInput, match="found a frame of 0 x 5"):
        Fit.of(0, 5, 640)
    with pytest.raises(BadInput, match=r"found a picture uint8 \(3, 4, 3\), expected uint8 \(4, 3, 3\)"):
        Fit.of(4, 3, 8).image(np.zeros((3, 4, 3), np.uint8), 0)


def test_boxes_without_area_overlap_nothing() -> None:
    flat = torch.tensor([[5.0, 5, 5, 20]])
    assert iou(flat, flat).tolist() == [0]
    assert iou(flat, torch.tensor([[0.0, 0, 30, 30]])).tolist() == [0]


def test_the_matrix_has_every_pair() -> None:
    a, b = torch.rand(2, 3, 4).cumsum(-1), torch.rand(2, 5, 4).cumsum(-1)
    for pairwise, matrix in ((iou, iou_matrix), (ciou, ciou_matrix)):
        for i in range(3):
            for j in range(5):
                assert torch.equal(matrix(a, b)[:, i, j], pairwise(a[:, i], b[:, j]))


def test_half_precision_boxes_are_compared_in_single() -> None:
    a = torch.tensor([[600.0, 600, 640, 640]], dtype=torch.bfloat16)
    assert iou(a, a).dtype == torch.float32
    assert ciou(a, a).tolist() == [1]


def test_decoded_distances_are_cells_from_the_point() -> None:
    logits = torch.full((1, 4, 16), -100.0)
    for side, cells in enumerate((1, 2, 3, 4)):
        logits[0, side, cells] = 100
    box = decode(logits.flatten(1), torch.tensor([[100.0, 50]]), torch.tensor([16.0]))
    assert box.tolist() == [[100 - 16, 50 - 32, 100 + 48, 50 + 64]]
