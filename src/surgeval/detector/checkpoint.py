"""A detector as one file: weights, sizes and class names, read back only if they belong together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from surgeval.detector.classes import Classes
from surgeval.detector.network import SIZES, TDNet, empty_tdnet
from surgeval.detector.state import StateFile, save_state
from surgeval.errors import BadInput
from surgeval.models.weights import check_finite, compare_weights

__all__ = ["Loaded", "load_detector", "save_detector"]

_KIND = "tdnet"
_VERSION = 1
_EXPECTED = "a TDnet detector written by surgeval"
_LIMIT = 1 << 30  # bytes: size l with 10 000 classes in every head stays below
_LARGEST_IMAGE = 4096  # pixels


@dataclass(frozen=True)
class Loaded:
    """A detector from a file: the network in evaluation mode and float32, and what it was trained for."""

    model: TDNet
    classes: Classes
    size: str
    image_size: int
    extra: Mapping[str, Any]


def save_detector(
    path: str | Path,
    model: TDNet,
    classes: Classes,
    *,
    size: str,
    image_size: int,
    extra: Mapping[str, Any] | None = None,
    half: bool = False,
) -> None:
    """Write a network with its classes; `half` stores it in float16, and tensors that overflow there in float32.

    >>> import tempfile
    >>> from surgeval.detector import build_tdnet
    >>> from surgeval.vocab import load_labels
    >>> classes = Classes.of(load_labels("cholec80"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "tools.safetensors"
    ...     save_detector(file, build_tdnet("p", classes), classes, size="p", image_size=320, half=True)
    ...     loaded = load_detector(file)
    >>> loaded.classes.main, loaded.image_size, loaded.model.size
    ('i', 320, 'p')
    """
    path = Path(path)
    tensors = model.state_dict()
    if {name: value.shape for name, value in tensors.items()} != _shapes(size, classes, len(model.heads) > 1):
        raise BadInput(f"{path}: found a network that is fused, or not of size {size} for {classes.space.name}, "
                       "expected the one to be stored")  # fmt: skip
    if not _fits(image_size):
        raise BadInput(f"image size: found {image_size}, expected a multiple of 32 up to {_LARGEST_IMAGE}")
    save_state(
        path,
        {name: _narrow(value) if half else value.float() for name, value in tensors.items()},
        {
            "kind": _KIND,
            "version": _VERSION,
            "size": size,
            "aux": len(model.heads) > 1,
            "image_size": image_size,
            "classes": classes.to_json(),
            "extra": dict(extra or {}),
        },
    )


@lru_cache(maxsize=8)
def _shapes(size: str, classes: Classes, aux: bool) -> Mapping[str, torch.Size]:
    """The tensors of such a network; kept, because a training stores its network after every epoch."""
    return {name: value.shape for name, value in empty_tdnet(size, classes, aux=aux).state_dict().items()}


def load_detector(path: str | Path) -> Loaded:
    """Read what `save_detector` wrote; any other file is refused in one sentence, before its tensors get memory.

    >>> from surgeval.models import EMBEDDED
    >>> loaded = load_detector(EMBEDDED["tdnet-p"].path)
    >>> loaded.size, loaded.image_size, loaded.classes.main
    ('p', 320, 'ivt')
    >>> load_detector(Path("best.pt"))
    Traceback (most recent call last):
    surgeval.errors.DataError: best.pt: found no such file, expected a TDnet detector written by surgeval
    """
    path = Path(path)
    with StateFile(path, expected=_EXPECTED, limit=_LIMIT) as file:
        size, image_size, aux, extra = _read_metadata(file)
        classes = Classes.from_json(file.metadata.get("classes"), path)
        network = empty_tdnet(size, classes, aux=aux)
        _compare(file, network, classes)
        tensors = {name: value.float() for name, value in file.tensors().items()}
    check_finite(tensors, path)
    for name, value in tensors.items():
        if name.endswith("running_var") and bool((value < 0).any()):
            raise file.refusal("a variance below 0", "variances", field=name)
    network.load_state_dict(tensors, assign=True)
    network.requires_grad_(True)
    return Loaded(network.eval(), classes, size, image_size, extra)


def _read_metadata(file: StateFile) -> tuple[str, int, bool, dict[str, Any]]:
    metadata = file.metadata
    if metadata.get("kind") != _KIND:
        raise file.refusal(repr(metadata.get("kind"))[:80], f"{_KIND!r} ({_EXPECTED})", field="kind")
    if metadata.get("version") != _VERSION:
        raise file.refusal(repr(metadata.get("version"))[:80], f"version {_VERSION}", field="version")
    size, image_size, aux, extra = (metadata.get(key) for key in ("size", "image_size", "aux", "extra"))
    if not isinstance(size, str) or size not in SIZES:
        raise file.refusal(repr(size)[:80], f"one of {', '.join(SIZES)}", field="size")
    if type(image_size) is not int or not _fits(image_size):
        raise file.refusal(repr(image_size)[:80], f"a multiple of 32 up to {_LARGEST_IMAGE}", field="image_size")
    if not isinstance(aux, bool):
        raise file.refusal(repr(aux)[:80], "true or false", field="aux")
    if not isinstance(extra, dict):
        raise file.refusal(f"a {type(extra).__name__}", "an object", field="extra")
    return size, image_size, aux, extra


def _fits(image_size: int) -> bool:
    return 32 <= image_size <= _LARGEST_IMAGE and image_size % 32 == 0


def _compare(file: StateFile, network: TDNet, classes: Classes) -> None:
    """Refuse tensors that are not those of this network, by name and shape, while they are still on the disk."""
    wanted = network.state_dict()
    for head, count in classes.counts.items():
        last = file.entries.get(f"head.stacks.{head}.0.4.weight")
        if last and last.shape[:1] != (count,):
            raise file.refusal(f"weights for {last.shape[0] if last.shape else 0} classes",
                               f"{count}, the number of its class names", field=f"head {head}")  # fmt: skip
    compare_weights(wanted, file.entries, file.path, f"TDnet-{network.size}")


def _narrow(value: Tensor) -> Tensor:
    short = value.to(torch.float16)
    return short if bool(short.isfinite().all()) else value.float()
