"""RT-DETR's own loss, and the part heads on the queries that its matcher chose.

transformers builds the same sum inside its model class, but its versions differ (before 5.22 the last layer's
denoising queries were matched too) and the matching is not handed out; so the loss is put together here from its
published pieces: varifocal, L1 and GIoU of every decoder layer, of the encoder's proposals and of denoising queries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits

from surgeval.detector.losses import Losses
from surgeval.detector.rtdetr.network import in_float32
from surgeval.errors import RunError

if TYPE_CHECKING:
    from surgeval.detector.assign import BatchTruth
    from surgeval.detector.rtdetr.network import QueryOutput, RTDetr

__all__ = ["DetrLoss", "Targets", "targets_of"]

_BOXES = {"l1": "loss_bbox", "giou": "loss_giou"}


@dataclass(frozen=True)
class Targets:
    """Labels as transformers wants them, and which box of the truth each one came from."""

    labels: list[dict[str, torch.Tensor]]
    owners: list[torch.Tensor]

    @property
    def count(self) -> int:
        """How many there are in the batch."""
        return sum(len(boxes) for boxes in self.owners)


def targets_of(truth: BatchTruth, main: str, side: int) -> Targets:
    """One target per box and class of the main head: RT-DETR knows no box with two classes, so such a box comes twice.

    A box without a class of the main head is no target.
    """
    labels, owners = [], []
    for boxes, classes, there in zip(truth.boxes, truth.labels[main], truth.mask, strict=True):
        owner, number = (classes.bool() & there[:, None]).nonzero(as_tuple=True)
        inside = boxes[owner].float().clamp(0, side) / side
        low, high = inside[:, :2], inside[:, 2:]
        labels.append({"class_labels": number, "boxes": torch.cat([(low + high) / 2, high - low], dim=1)})
        owners.append(owner)
    return Targets(labels, owners)


class DetrLoss:
    """The loss of a network for a batch. `aux` weighs the part heads: 0.1, as TDnet's.

    TDnet divides its auxiliary losses by the sum of its soft targets; here they are divided by the number of targets in
    the batch, as RT-DETR divides all of its own. Only matched queries of the last layer count, with target 1 for the
    parts of their box and 0 for the others; denoising queries have no part in it.
    """

    def __init__(self, network: RTDetr, *, aux: float = 0.1) -> None:
        from transformers.loss.loss_rt_detr import RTDetrLoss

        self.criterion: Any = RTDetrLoss(network.net.config)
        self.main, self.side, self.aux = network.classes.main, network.image_size, aux

    def __call__(self, network: nn.Module, images: torch.Tensor, truth: BatchTruth) -> Losses:
        """Pictures as numbers from 0 to 1; the network should be in training mode, or nothing is denoised."""
        targets = targets_of(truth, self.main, self.side)
        out: QueryOutput = network(images, targets.labels)
        with in_float32(images.device):
            if not bool(torch.isfinite(out.boxes).all()):  # the matcher would stop with a sentence about corners
                raise RunError("rtdetr: found boxes that are not numbers, expected a training that does not diverge; "
                               "a lower learning rate helps")  # fmt: skip
            losses = self.criterion(_outputs(out, self.main), targets.labels)
            parts = {
                name: torch.stack([value for key, value in losses.items() if key.startswith(kind)]).sum()
                for name, kind in {**_BOXES, self.main: "loss_vfl"}.items()
            }
            parts |= self._part_losses(out, truth, targets)
        positives = torch.tensor(targets.count, device=images.device)
        return Losses(torch.stack(list(parts.values())).sum(), parts, positives)

    def _part_losses(self, out: QueryOutput, truth: BatchTruth, targets: Targets) -> dict[str, torch.Tensor]:
        """The heads beside the main one, on matched queries."""
        heads = [head for head in out.logits if head != self.main]
        if not heads:
            return {}
        # The criterion keeps its matching to itself.
        matched = self.criterion.matcher({"logits": out.logits[self.main], "pred_boxes": out.boxes}, targets.labels)
        losses = {}
        for head in heads:
            logits = torch.cat([values[query] for values, (query, _) in zip(out.logits[head], matched, strict=True)])
            wanted = [labels[owner[target.to(owner.device)]] for labels, owner, (_, target) in
                      zip(truth.labels[head], targets.owners, matched, strict=True)]  # fmt: skip
            marks = torch.cat(wanted).to(logits.dtype)
            entropy = binary_cross_entropy_with_logits(logits, marks, reduction="none")
            known = marks.any(dim=1, keepdim=True)  # a box whose verb nobody labelled does not train that head
            losses[head] = self.aux * (entropy * known).sum() / max(targets.count, 1)
        return losses


def _outputs(out: QueryOutput, main: str) -> dict[str, Any]:
    """All that is compared with the truth: last layer, earlier layers, the encoder's proposals, denoising queries."""
    decoded = out.all
    logits, boxes = decoded.intermediate_logits, decoded.intermediate_reference_points
    outputs: dict[str, Any] = {"logits": out.logits[main], "pred_boxes": out.boxes}
    if decoded.denoising_meta_values is not None:
        noisy = decoded.denoising_meta_values["dn_num_split"][0]
        outputs["dn_auxiliary_outputs"] = _by_layer(logits[:, :, :noisy], boxes[:, :, :noisy])
        outputs["denoising_meta_values"] = decoded.denoising_meta_values
        logits, boxes = logits[:, :, noisy:], boxes[:, :, noisy:]
    proposals = {"logits": decoded.enc_topk_logits, "pred_boxes": decoded.enc_topk_bboxes}
    outputs["auxiliary_outputs"] = [*_by_layer(logits[:, :-1], boxes[:, :-1]), proposals]
    return outputs


def _by_layer(logits: torch.Tensor, boxes: torch.Tensor) -> list[dict[str, torch.Tensor]]:
    pairs = zip(logits.unbind(1), boxes.unbind(1), strict=True)
    return [{"logits": layer_logits, "pred_boxes": layer_boxes} for layer_logits, layer_boxes in pairs]
