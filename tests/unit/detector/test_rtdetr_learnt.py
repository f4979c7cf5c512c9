"""A few updates on two pictures: RT-DETR finds every box with its triplet, and its ONNX file finds the same ones."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.unit.detector.rtdetr_scene import BOXES, CLASSES, SIDE, TRIPLETS, scene
from torch import nn

from surgeval.detector.inference import open_detector
from surgeval.detector.inference.export import export_onnx
from surgeval.detector.rtdetr import DetrLoss, RTDetr, build_rtdetr, save_rtdetr


@pytest.fixture(scope="module")
def learnt() -> RTDetr:
    torch.set_num_threads(1)
    images, truth = scene()
    network = build_rtdetr("tiny", CLASSES, image_size=SIDE, aux=True)
    network.train()
    loss = DetrLoss(network)
    torch.manual_seed(0)
    optimiser = torch.optim.AdamW(network.parameters(), lr=1e-3, weight_decay=1e-4)
    for _ in range(60):
        optimiser.zero_grad()
        loss(network, images / 255, truth).total.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 0.1)
        optimiser.step()
    network.eval().requires_grad_(False)
    return network


def test_every_box_is_found_with_its_triplet_and_its_instrument(learnt: RTDetr) -> None:
    raw = learnt.raw(scene()[0])
    for b, (boxes, triplets) in enumerate(zip(BOXES, TRIPLETS, strict=True)):
        for box, triplet in zip(boxes, triplets, strict=True):
            best = int(raw.probabilities["ivt"][b, :, triplet].argmax())
            assert float((raw.boxes[b, best] - torch.tensor(box)).abs().max()) < 6
            assert int(raw.probabilities["ivt"][b, best].argmax()) == triplet
            assert int(raw.probabilities["i"][b, best].argmax()) == int(CLASSES.parts[triplet, 0])


@pytest.mark.long  # writing the graph takes half a minute; test_onnx.py does it for TDnet
def test_as_onnx_it_finds_the_same_boxes_whatever_their_order(learnt: RTDetr, tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    save_rtdetr(tmp_path / "mine", learnt)
    detector = open_detector(export_onnx(tmp_path / "mine", tmp_path / "mine.onnx"))
    assert (detector.classes, detector.image_size, detector.fill) == (CLASSES, SIDE, learnt.fill)
    images = torch.cat([scene()[0], scene()[0].flip(3)])[:3]  # three: the file takes any number
    ours, theirs = learnt.raw(images), detector.raw(images)
    assert set(theirs.probabilities) == {"ivt", "i", "v", "t"}
    for b in range(len(images)):
        found = [torch.cat([raw.boxes[b], *(raw.probabilities[head][b] for head in CLASSES.heads)], dim=1)
                 for raw in (ours, theirs)]  # fmt: skip
        apart = torch.cdist(*found, p=torch.inf)
        assert float(apart.min(dim=1).values.max()) < 1e-3 and float(apart.min(dim=0).values.max()) < 1e-3
