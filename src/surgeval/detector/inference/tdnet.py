"""TDnet at work: normalisations folded, half precision and CUDA graphs where a GPU offers them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import torch

from surgeval.detector.checkpoint import Loaded
from surgeval.detector.classes import Classes
from surgeval.detector.inference.recorded import Recorded
from surgeval.detector.interface import Raw
from surgeval.errors import BadInput

__all__ = ["GREY", "Precision", "TDNetDetector", "fill_of"]

Precision: TypeAlias = Literal["float32", "float16", "bfloat16"]
GREY = 114
_MOST_GRAPHS = 8  # each keeps the memory of one pass


class TDNetDetector:
    """A loaded TDnet, ready to look.

    `aux=False` leaves the auxiliary heads out; `graph` records the kernels of each input shape once and replays them,
    which on a GPU takes away the time for starting them one by one.

    >>> from surgeval.detector import Classes, Loaded, build_tdnet
    >>> from surgeval.vocab import load_labels
    >>> classes = Classes.of(load_labels("cholec80"))
    >>> detector = TDNetDetector(Loaded(build_tdnet("p", classes), classes, "p", 64, {}), name="toy")
    >>> detector.raw(torch.zeros(2, 3, 64, 64, dtype=torch.uint8)).boxes.shape
    torch.Size([2, 84, 4])
    """

    def __init__(
        self,
        loaded: Loaded,
        *,
        name: str = "tdnet",
        device: torch.device | str = "cpu",
        precision: Precision = "float32",
        aux: bool = True,
        fuse: bool = True,
        graph: bool = False,
    ) -> None:
        self.name, self.classes, self.image_size = name, loaded.classes, loaded.image_size
        self.device = torch.device(device)
        self.fill = fill_of(loaded.extra, loaded.classes)
        self._dtype: torch.dtype = getattr(torch, precision)
        on_gpu = self.device.type == "cuda"
        if not on_gpu and self._dtype != torch.float32:
            raise BadInput(f"precision: found {precision} on {self.device.type}, expected float32: half needs a GPU")
        network = loaded.model.fused() if fuse else loaded.model.eval()
        layout = torch.channels_last if on_gpu else torch.contiguous_format
        self._network = network.to(self.device, self._dtype, memory_format=layout).requires_grad_(False)
        self.heads = network.heads if aux else (network.main,)
        self.recording = graph and on_gpu
        self._graphs: dict[tuple[int, ...], Recorded[Raw]] = {}

    def raw(self, images: torch.Tensor) -> Raw:
        """Look at pictures: bytes (batch, 3, side, side), RGB, on `device`.

        What a recorded pass gives is overwritten by the next one of its shape.
        """
        with torch.inference_mode():
            shape = tuple(images.shape)
            if not self.recording or (shape not in self._graphs and len(self._graphs) >= _MOST_GRAPHS):
                return self.plain(images)
            if shape not in self._graphs:
                self._graphs[shape] = Recorded(self.plain, images)
            recorded = self._graphs[shape]
            recorded.input.copy_(images)
            recorded.replay()
            return recorded.output

    def plain(self, images: torch.Tensor) -> Raw:
        """The same without a recording of its own: what a longer recording is made of."""
        with torch.inference_mode():
            output = self._network(images.to(self._dtype).div_(255), heads=self.heads)
            return Raw(output.boxes(), output.probabilities())


def fill_of(extra: Mapping[str, Any], classes: Classes) -> int:
    """The grey level that frames were padded with in training; where nothing is said, black for ProstaTD's classes.

    >>> from surgeval.detector import Classes
    >>> from surgeval.vocab import load_labels
    >>> fill_of({}, Classes.of(load_labels("prostatd"))), fill_of({"fill": 7}, Classes.of(load_labels("phantom")))
    (0, 7)
    """
    fill = extra.get("fill")
    if type(fill) is int and 0 <= fill <= 255:
        return fill
    return 0 if classes.space.name == "prostatd" else GREY
