"""RT-DETR of transformers (Apache-2.0), shown pictures and read as every detector here.

Its backbones are ResNets (18 or 50 layers): the `rtdetr-l` that the ProstaTD authors trained has another backbone
(HGNetv2), so a figure of theirs is not one of this network. Plain by default; with `aux` three linear heads read
instrument, verb and target from the last decoder layer's queries.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from surgeval.detector.interface import Raw
from surgeval.detector.rtdetr.config import architecture, least_side, transformers_config
from surgeval.errors import BadInput

if TYPE_CHECKING:
    from surgeval.detector.classes import Classes

__all__ = ["QueryOutput", "RTDetr", "bare_net", "build_rtdetr", "corners", "in_float32", "new_heads"]

_SHARE = 0.01  # of queries that show a class, as RT-DETR's authors start; transformers says 1 in classes + 1


@dataclass(frozen=True)
class QueryOutput:
    """Boxes as centre and size in shares of the picture, and logits, by query; `all` is what transformers gave."""

    boxes: torch.Tensor  # (batch, queries, 4), the last decoder layer, denoising queries left out
    logits: Mapping[str, torch.Tensor]  # head → (batch, queries, classes)
    all: Any


class RTDetr(nn.Module):
    """The network with its classes and the picture it wants; `parts` are the optional heads."""

    def __init__(
        self, net: nn.Module, config: Mapping[str, Any], classes: Classes, *, image_size: int, fill: int = 114,
        aux: bool = False, size: str = "",
    ) -> None:  # fmt: skip
        super().__init__()
        _check_side(image_size, config)
        self.net, self.config, self.classes = net, dict(config), classes
        self.image_size, self.fill, self.size, self.name = image_size, fill, size, f"rtdetr-{size or 'own'}"
        self.half_features = False  # on a GPU: backbone and encoder in float16
        width = int(config.get("d_model", 256))
        extra = [head for head in classes.heads if head != classes.main] if aux else []
        self.parts = nn.ModuleDict({head: nn.Linear(width, len(classes.heads[head])) for head in extra})
        for head, layer in self.parts.items():
            _start_class_layer(layer, 1 / (1 + len(classes.heads[head])))  # only matched queries learn here

    @property
    def aux(self) -> bool:
        """Whether it has heads for instrument, verb and target."""
        return bool(self.parts)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    def forward(self, images: torch.Tensor, labels: list[dict[str, torch.Tensor]] | None = None) -> QueryOutput:
        """Pictures (batch, 3, side, side) as numbers from 0 to 1; `labels` make denoising queries while training.

        Automatic mixed precision reaches backbone and encoder only: boxes are refined in float32, because bfloat16
        has 8 bits, 2.5 pixels at 640.
        """
        mixed = bool(torch.is_autocast_enabled(images.device.type))
        levels = self._levels(images) if mixed and _takes_levels() else None
        with in_float32(images.device):
            if levels is None:
                output = self.net.model(images, labels=labels)
            else:
                output = self.net.model(None, encoder_outputs=_encoded(levels), inputs_embeds=levels[0], labels=labels)
            queries = output.last_hidden_state
            if output.denoising_meta_values is not None:
                queries = queries[:, output.denoising_meta_values["dn_num_split"][0] :]
            count = queries.shape[1]
            logits = {self.classes.main: output.intermediate_logits[:, -1, -count:]}
            logits |= {head: layer(queries) for head, layer in self.parts.items()}
        return QueryOutput(output.intermediate_reference_points[:, -1, -count:], logits, output)

    def _levels(self, images: torch.Tensor) -> list[torch.Tensor]:
        """What the decoder reads of the pictures, in whatever precision is set around."""
        inner = self.net.model
        whole = torch.ones((images.shape[0], *images.shape[-2:]), device=images.device)
        seen = [project(features) for project, (features, _) in
                zip(inner.encoder_input_proj, inner.backbone(images, whole), strict=True)]  # fmt: skip
        return [level.float() for level in inner.encoder(seen).last_hidden_state]

    def raw(self, images: torch.Tensor) -> Raw:
        """Every query's box in input pixels with its probabilities, from bytes (batch, 3, side, side)."""
        half = self.half_features and images.is_cuda
        with torch.no_grad(), torch.autocast("cuda", torch.float16) if half else nullcontext():
            return self.look(images)

    def look(self, images: torch.Tensor) -> Raw:
        """The same, whatever the caller does about gradients and precision."""
        out = self(images.to(torch.float32) / 255)
        boxes = corners(out.boxes) * self.image_size
        return Raw(boxes, {head: values.sigmoid() for head, values in out.logits.items()})


@cache
def _takes_levels() -> bool:
    """Whether this transformers lets the decoder begin with given feature maps; where not, all is float32."""
    from transformers import RTDetrModel

    return "pixel_values is None" in inspect.getsource(RTDetrModel.forward)


def in_float32(device: torch.device) -> AbstractContextManager[object]:
    """Inside, mixed precision is off; where it is off already nothing is done, and a traced graph knows none of it."""
    if not torch.is_autocast_enabled(device.type):
        return nullcontext()
    context: AbstractContextManager[object] = torch.autocast(device.type, enabled=False)
    return context


def _encoded(levels: list[torch.Tensor]) -> Any:
    from transformers.modeling_outputs import BaseModelOutput

    return BaseModelOutput(last_hidden_state=levels)


def corners(boxes: torch.Tensor) -> torch.Tensor:
    """Centre and size → x1, y1, x2, y2.

    >>> corners(torch.tensor([[0.5, 0.5, 0.2, 0.4]]))
    tensor([[0.4000, 0.3000, 0.6000, 0.7000]])
    """
    middle, half = boxes[..., :2], boxes[..., 2:] / 2
    return torch.cat([middle - half, middle + half], dim=-1)


def build_rtdetr(
    size: str, classes: Classes, *, image_size: int = 640, fill: int = 114, aux: bool = False, seed: int = 0
) -> RTDetr:
    """An untrained network of size `tiny`, `r18` or `r50`; the same seed gives the same weights.

    >>> from surgeval.detector import Classes
    >>> from surgeval.vocab import load_labels
    >>> net = build_rtdetr("tiny", Classes.of(load_labels("phantom")), image_size=64)
    >>> net.eval().raw(torch.zeros(1, 3, 64, 64, dtype=torch.uint8)).probabilities["ivt"].shape
    torch.Size([1, 60, 100])
    """
    config = architecture(size, len(classes.heads[classes.main]))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = bare_net(config)
        _start(net)
        return RTDetr(net, config, classes, image_size=image_size, fill=fill, aux=aux, size=size)


def bare_net(config: Mapping[str, Any]) -> nn.Module:
    """The network of transformers for a configuration, every layer under one name.

    Some versions keep the decoder's heads a second time at the top; nothing here reads them there.
    """
    from transformers import RTDetrForObjectDetection

    net: nn.Module = RTDetrForObjectDetection(transformers_config(config))
    for name in ("class_embed", "bbox_embed"):
        net._modules.pop(name, None)
    return net


def _check_side(side: int, config: Mapping[str, Any]) -> None:
    least = least_side(config)
    if side % 32 or not least <= side <= 4096:
        raise BadInput(f"image size: found {side}, expected a multiple of 32 from {least} to 4096: "
                       f"each of {config.get('num_queries', 300)} queries starts from a point of its own")  # fmt: skip


def _start(net: nn.Module) -> None:
    """Random weights that can learn.

    transformers draws them for networks that get trained ones at once: with convolutions and norms of about 0.01, ten
    in a row, no picture gets through to the decoder.
    """
    own = ("sampling_offsets", "attention_weights", "class_embed", "bbox_embed", "score_head", "denoising")
    for name, module in net.named_modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.ones_(module.weight)
        elif isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        elif isinstance(module, nn.Linear) and not any(part in name for part in own):
            nn.init.xavier_uniform_(module.weight)
    for head in (*net.model.decoder.bbox_embed, net.model.enc_bbox_head):
        for layer in head.layers[:-1]:
            nn.init.xavier_uniform_(layer.weight)
        nn.init.zeros_(head.layers[-1].weight)
        nn.init.zeros_(head.layers[-1].bias)
    for layer in (*net.model.decoder.class_embed, net.model.enc_score_head):
        _start_class_layer(layer)


def _start_class_layer(layer: nn.Linear, share: float = _SHARE) -> None:
    """Every class has this probability at first: most queries are background, and would drown the loss."""
    nn.init.kaiming_uniform_(layer.weight, a=math.sqrt(5))
    nn.init.constant_(layer.bias, -math.log(1 / share - 1))


def new_heads(net: nn.Module, config: Mapping[str, Any], labels: int) -> dict[str, Any]:
    """Replace what knows the classes by new layers for `labels` classes; the configuration that fits comes back."""
    width = int(config.get("d_model", 256))

    def linear() -> nn.Linear:
        layer = nn.Linear(width, labels)
        _start_class_layer(layer)
        return layer

    net.model.enc_score_head = linear()
    net.model.decoder.class_embed = nn.ModuleList([linear() for _ in net.model.decoder.class_embed])
    if config.get("num_denoising", 100) > 0:
        net.model.denoising_class_embed = nn.Embedding(labels + 1, width, padding_idx=labels)
        nn.init.xavier_uniform_(net.model.denoising_class_embed.weight)
    changed = {**config, "num_labels": labels}
    net.config = net.model.config = transformers_config(changed)
    return changed
