"""What training TDnet costs besides the network: assignment and loss of a batch, and choosing boxes at evaluation.

    python benchmarks/detector_losses.py [--device cuda] [--batch 16] [--size 640] [--classes 89] [--boxes 4]

The peer of the loss is a plain reading of the rules: everything for every box (padded ones too) at every point, dense
targets, gradients through all decoded boxes. The peer of the choice goes box by box through each class of each image.
Both are run on the same numbers and must agree.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch.nn import functional

from surgeval.detector.assign import BatchTruth
from surgeval.detector.geometry import ciou, decode, iou, iou_matrix
from surgeval.detector.losses import LossSettings, dfl, teacher_loss
from surgeval.detector.nms import Selecting, select

AUX = {"i": 7, "v": 10, "t": 10}


def main(arguments: list[str]) -> int:
    """Make an output that looks like a half-trained network's, run both ways, print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--size", type=int, default=640)
    parser.add_argument("--classes", type=int, default=89)
    parser.add_argument("--boxes", type=int, default=4, help="boxes per image on average; rows are padded to the most")
    parser.add_argument("--repeats", type=int, default=5)
    chosen = parser.parse_args(arguments)
    torch.manual_seed(0)
    head, truth = _scene(chosen.batch, chosen.size, {"ivt": chosen.classes, **AUX}, chosen.boxes, chosen.device)
    print(f"{chosen.batch} images, {len(head.points)} points, rows padded to {truth.mask.shape[1]}, {chosen.device}")
    losses = {}
    for label, loss in (("loss", _ours), ("plain loss", _plain)):
        losses[label], value = _timed(lambda loss=loss: _step(loss, head, truth), chosen)  # type: ignore[misc]
        print(f"{label}: {1000 * losses[label]:.1f} ms with its gradient (value {value:.4f})")
    print(f"ratio {losses['plain loss'] / losses['loss']:.1f}")
    boxes = decode(head.box.detach(), head.points, head.strides)
    probabilities = {name: values.detach().sigmoid() for name, values in head.logits.items()}
    count = int((probabilities["ivt"] > 0.001).sum()) // chosen.batch
    ours, found = _timed(lambda: sum(map(len, select(boxes, probabilities, "ivt"))), chosen)
    print(f"choosing boxes: {1000 * ours:.1f} ms for {count} candidates per image, {found / chosen.batch:.0f} kept")
    plain, same = _timed(lambda: _plain_select(boxes, probabilities["ivt"], Selecting()), chosen)
    print(f"plain choosing: {1000 * plain:.1f} ms, {same / chosen.batch:.0f} kept")
    print(f"ratio {plain / ours:.1f}")
    return 0


def _timed(work: Callable[[], Any], chosen: argparse.Namespace) -> tuple[float, Any]:
    value = work()  # warm
    took = []
    for _ in range(chosen.repeats):
        _wait(chosen.device)
        start = time.perf_counter()
        value = work()
        _wait(chosen.device)
        took.append(time.perf_counter() - start)
    return statistics.median(took), value


def _wait(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def _scene(batch: int, size: int, classes: dict[str, int], boxes: int, device: str) -> tuple[Any, BatchTruth]:
    points, strides = [], []
    for stride in (8, 16, 32):
        side = (torch.arange(size // stride) + 0.5) * stride
        points.append(torch.stack((side.repeat(len(side)), side.repeat_interleave(len(side))), -1))
        strides.append(torch.full((len(side) ** 2,), float(stride)))
    grid, steps = torch.cat(points), torch.cat(strides)
    counts = torch.randint(0, 2 * boxes + 1, (batch,)).tolist()
    corners, labels = [], []
    for count in counts:
        centre, half = torch.rand(count, 2) * size, (torch.rand(count, 2) * 0.2 + 0.05) * size
        corners.append(torch.cat((centre - half, centre + half), 1).clamp(0, size))
        labels.append(
            {
                name: functional.one_hot(torch.randint(number, (count,)), number).bool()
                for name, number in classes.items()
            }
        )
    truth = BatchTruth.of(corners, labels)
    box, logits = torch.randn(batch, len(grid), 64), {}
    for name, number in classes.items():
        logits[name] = torch.randn(batch, len(grid), number) - 10
    for image, (image_boxes, image_labels) in enumerate(zip(corners, labels, strict=True)):
        _learn(
            box[image], {name: values[image] for name, values in logits.items()}, grid, steps, image_boxes, image_labels
        )
    head = SimpleNamespace(
        box=box.to(device).requires_grad_(),
        logits={name: values.to(device).requires_grad_() for name, values in logits.items()},
        points=grid.to(device), strides=steps.to(device),
    )  # fmt: skip
    return head, truth.to(device)


def _learn(box: Any, logits: dict[str, Any], grid: Any, steps: Any, boxes: Any, labels: dict[str, Any]) -> None:
    """Points inside a box are half sure of it, and a little of every class."""
    for row, corners in enumerate(boxes):
        inside = ((grid > corners[:2]) & (grid < corners[2:])).all(1)
        sides = torch.cat((grid - corners[:2], corners[2:] - grid), 1) / steps[:, None]
        near = -(sides.clamp(0, 15)[..., None] - torch.arange(16)).square()
        box[inside] += near.flatten(1)[inside]
        for name, values in logits.items():
            values[inside] += 1.5 + 5 * labels[name][row]


def _step(loss: Callable[[Any, BatchTruth], torch.Tensor], head: Any, truth: BatchTruth) -> float:
    for leaf in (head.box, *head.logits.values()):
        leaf.grad = None
    value = loss(head, truth)
    value.backward()
    return float(value.detach())


def _ours(head: Any, truth: BatchTruth) -> torch.Tensor:
    return teacher_loss(head, truth, "ivt").total


def _plain(head: Any, truth: BatchTruth) -> torch.Tensor:
    """Rule `paper`, one label per box, as a first reading of it would be written."""
    gains = LossSettings()
    boxes = decode(head.box, head.points, head.strides)
    with torch.no_grad():
        x, y = head.points.unbind(-1)
        x1, y1, x2, y2 = truth.boxes[..., None].unbind(-2)
        inside = (x > x1) & (x < x2) & (y > y1) & (y < y2) & truth.mask[..., None]
        label = truth.labels["ivt"].long().argmax(-1)
        scores = head.logits["ivt"].sigmoid().transpose(1, 2)
        scores = scores.gather(1, label[..., None].expand(-1, -1, scores.shape[-1]))
        overlap = iou_matrix(truth.boxes, boxes) * inside
        s = scores**0.5 * overlap**6 * inside
        chosen = torch.zeros_like(inside).scatter(2, s.topk(10).indices, True) & (s > 0)
        claimed = s * chosen
        owner = claimed.argmax(1)
        mine = chosen & (torch.arange(s.shape[1], device=s.device)[:, None] == owner[:, None])
        t = (s * mine) / (s * mine).amax(-1, keepdim=True).clamp(min=1e-30) * (overlap * mine).amax(-1, keepdim=True)
        weight = t.sum(1)
        positive = mine.any(1)
        pick = owner[..., None]
        target = weight[..., None] * truth.labels["ivt"].gather(1, pick.expand(-1, -1, truth.labels["ivt"].shape[-1]))
        wanted = truth.boxes.gather(1, pick.expand(-1, -1, 4))
        total = target.sum().clamp(min=1)
    points, strides = head.points.expand_as(boxes[..., :2]), head.strides.expand(boxes.shape[:2])
    near = torch.cat((points - wanted[..., :2], wanted[..., 2:] - points), -1) / strides[..., None]
    loss = gains.box * ((1 - ciou(boxes[positive], wanted[positive])) * weight[positive]).sum()
    loss = loss + gains.dfl * (dfl(head.box.unflatten(-1, (4, 16))[positive], near[positive]) * weight[positive]).sum()
    loss = (
        loss
        + gains.cls
        * functional.binary_cross_entropy_with_logits(head.logits["ivt"], target.float(), reduction="none").sum()
    )
    for name in AUX:
        marks = truth.labels[name].gather(1, pick.expand(-1, -1, truth.labels[name].shape[-1])).float()
        loss = loss + gains.aux * functional.binary_cross_entropy_with_logits(
            head.logits[name][positive], marks[positive], reduction="sum"
        )
    return loss / total * len(boxes)


def _plain_select(boxes: torch.Tensor, scores: torch.Tensor, settings: Selecting) -> int:
    kept = 0
    for image in range(len(boxes)):
        found = 0
        for label in range(scores.shape[-1]):
            wanted = (scores[image, :, label] > settings.confidence).nonzero()[:, 0]
            wanted = wanted[scores[image, wanted, label].sort(descending=True, stable=True).indices]
            while len(wanted):
                found += 1
                overlap = iou(boxes[image, wanted[:1]], boxes[image, wanted[1:]])
                wanted = wanted[1:][overlap <= settings.iou]
        kept += min(found, settings.most)
    return kept


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
