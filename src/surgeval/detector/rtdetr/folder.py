"""An RT-DETR as a folder: config.json and model.safetensors as transformers names them, surgeval.json with the classes.

transformers opens such a folder too (the part heads are then left over). Folders of strangers are hostile: only
safetensors, bounded configurations, every tensor's name and shape compared before memory is taken, no code.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from surgeval.detector.rtdetr.config import read_architecture
from surgeval.detector.rtdetr.network import RTDetr, bare_net, new_heads
from surgeval.errors import BadInput, DataError
from surgeval.files import make_folder, read_json_object, write_atomically
from surgeval.models import hub_folder
from surgeval.models.weights import build_network, fit_weights, read_config, read_safetensors

if TYPE_CHECKING:
    from surgeval.detector.classes import Classes

__all__ = ["CONFIG", "WEIGHTS", "is_rtdetr", "load_rtdetr", "pretrained_rtdetr", "save_rtdetr", "weights_folder"]

CONFIG, WEIGHTS, OURS = "config.json", "model.safetensors", "surgeval.json"
_KIND, _VERSION, _LIMIT = "rtdetr", 1, 8 << 20
_PARTS = "surgeval_parts."
_NO_NETWORK = (ValueError, RuntimeError, TypeError, LookupError, AttributeError, ArithmeticError, AssertionError)
_RENAMED = (  # transformers renamed these inside the network; files on the hub keep the first names
    (re.compile(r"\.o_proj\."), ".out_proj."),
    (re.compile(r"\.layers\.(\d+)\.mlp\.(fc\d)\."), r".layers.\1.\2."),
    (re.compile(r"\.encoder\.aifi\."), ".encoder.encoder."),
    (re.compile(r"^(class_embed|bbox_embed)\."), r"model.decoder.\1."),  # a second name for the same layers
)


def save_rtdetr(
    folder: str | Path, network: RTDetr, *, extra: Mapping[str, Any] | None = None, half: bool = False
) -> None:
    """Write a network as a folder; `half` stores the weights in float16 (statistics of norms stay float32).

    >>> import tempfile
    >>> from surgeval.detector import Classes
    >>> from surgeval.detector.rtdetr import build_rtdetr
    >>> from surgeval.vocab import load_labels
    >>> net = build_rtdetr("tiny", Classes.of(load_labels("phantom")), image_size=64)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_rtdetr(folder, net)
    ...     load_rtdetr(folder).image_size, sorted(path.name for path in Path(folder).iterdir())
    (64, ['config.json', 'model.safetensors', 'surgeval.json'])
    """
    from safetensors.torch import save

    root, learned = Path(folder), {name for name, _ in network.named_parameters()}
    tensors = {
        _stored(name): value.detach().to("cpu", torch.float16 if half and name in learned else value.dtype).contiguous()
        for name, value in network.state_dict().items()
    }
    main = network.classes.heads[network.classes.main]
    config = {name: value for name, value in network.config.items() if name != "num_labels"}
    config |= {"architectures": ["RTDetrForObjectDetection"], "id2label": dict(enumerate(main)),
               "label2id": {name: number for number, name in enumerate(main)}}  # fmt: skip
    ours = {"kind": _KIND, "version": _VERSION, "size": network.size, "image_size": network.image_size,
            "fill": network.fill, "aux": network.aux, "classes": network.classes.to_json(),
            "extra": dict(extra or {})}  # fmt: skip
    make_folder(root)
    write_atomically(root / WEIGHTS, save(tensors, metadata={"format": "pt"}))
    for name, data in ((CONFIG, config), (OURS, ours)):
        write_atomically(root / name, json.dumps(data, indent=1, ensure_ascii=False).encode())


def _stored(name: str) -> str:
    """The name of a tensor in a file, whatever the version of transformers calls it inside."""
    if name.startswith("parts."):
        return _PARTS + name.removeprefix("parts.")
    name = name.removeprefix("net.")
    for pattern, other in _RENAMED:
        name = pattern.sub(other, name)
    return name


def is_rtdetr(folder: Path) -> bool:
    """Whether a folder says that it is one of ours."""
    return (folder / OURS).is_file() and (folder / CONFIG).is_file()


def load_rtdetr(folder: str | Path, *, aux: bool = True) -> RTDetr:
    """A network that `save_rtdetr` wrote, ready to look; without `aux` its part heads are left out.

    >>> import tempfile
    >>> from surgeval.detector import Classes
    >>> from surgeval.detector.rtdetr import build_rtdetr
    >>> from surgeval.vocab import load_labels
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_rtdetr(folder, build_rtdetr("tiny", Classes.of(load_labels("phantom")), image_size=64))
    ...     network = load_rtdetr(folder)
    >>> network.size, network.image_size, network.classes.main
    ('tiny', 64, 'ivt')
    >>> load_rtdetr("nowhere")
    Traceback (most recent call last):
    surgeval.errors.DataError: nowhere/surgeval.json: no such file
    """
    from surgeval.detector.classes import Classes

    root = Path(folder)
    path = root / OURS
    ours = read_json_object(path, limit=_LIMIT)
    if ours.get("kind") != _KIND or ours.get("version") != _VERSION:
        kind, version = ours.get("kind"), ours.get("version")
        raise DataError(path, f"found {kind!r:.40} {version!r:.40}, expected {_KIND!r} {_VERSION}", field="kind")
    classes = Classes.from_json(ours.get("classes"), path)
    for field, least, most in (("image_size", 32, 4096), ("fill", 0, 255)):
        value = ours.get(field)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise DataError(
                path, f"found {repr(value)[:80]}, expected a whole number from {least} to {most}", field=field
            )
    if not isinstance(ours.get("aux"), bool):
        raise DataError(path, f"found {repr(ours.get('aux'))[:80]}, expected true or false", field="aux")
    net, config, parts = _read_net(root)
    if config["num_labels"] != len(classes.heads[classes.main]):
        raise DataError(
            root / CONFIG,
            f"found {config['num_labels']} classes, expected the {len(classes.heads[classes.main])} of {OURS}",
            field="id2label",
        )
    size = str(ours.get("size", ""))[:20]
    try:
        network = RTDetr(
            net, config, classes, image_size=ours["image_size"], fill=ours["fill"], aux=ours["aux"], size=size
        )
    except BadInput as error:
        raise DataError(
            path, f"found {ours['image_size']}, expected one that fits ({error})", field="image_size"
        ) from None
    fit_weights(network.parts, parts, root / WEIGHTS, prefix=_PARTS)
    if not aux:
        network.parts = nn.ModuleDict()
    network.name = root.name or network.name
    network.eval().requires_grad_(False)
    return network


def _read_net(folder: Path) -> tuple[nn.Module, dict[str, Any], dict[str, torch.Tensor]]:
    """The network of transformers, its configuration, and the tensors of part heads."""
    path, weights = folder / CONFIG, folder / WEIGHTS
    config = read_architecture(read_config(path), path)
    contents = read_safetensors(weights)
    parts = {name.removeprefix(_PARTS): value for name, value in contents.items() if name.startswith(_PARTS)}
    stored = {_stored(name): value for name, value in contents.items() if not name.startswith(_PARTS)}
    wanted = _names(config, path)
    tensors = {wanted.get(name, name): value for name, value in stored.items()
               if name in wanted or not name.endswith("num_batches_tracked")}  # fmt: skip
    net, _ = build_network(lambda: bare_net(config), tensors, weights)
    return net, config, parts


def _names(config: Mapping[str, Any], path: Path) -> dict[str, str]:
    """Names in files → names inside the network, which takes no memory here."""
    try:
        with torch.device("meta"):
            return {_stored(name): name for name in bare_net(config).state_dict()}
    except _NO_NETWORK as error:
        reason = str(error).splitlines()[0][:160] if str(error) else type(error).__name__
        raise DataError(
            path, f"found sizes that make no network ({reason}), expected a consistent configuration"
        ) from None


def weights_folder(where: str | Path) -> Path:
    """The folder itself, or the local copy of a hub's model: its configuration and its safetensors, nothing else."""
    if os.path.isdir(where):  # noqa: PTH112 (`Path.is_dir` raises for overlong names)
        return Path(where)
    return hub_folder(str(where), [CONFIG, WEIGHTS])


def pretrained_rtdetr(
    where: str | Path, classes: Classes, *, image_size: int = 640, fill: int = 114, aux: bool = False, seed: int = 0
) -> RTDetr:
    """Weights to start from: a local folder or a hub name (`PekingU/rtdetr_r50vd`); layers that name classes are new.

    A folder of ours with the same classes keeps them.

    >>> import tempfile
    >>> from surgeval.detector import Classes
    >>> from surgeval.detector.rtdetr import build_rtdetr
    >>> from surgeval.vocab import load_labels
    >>> known, new = (Classes.of(load_labels(name)) for name in ("phantom", "cholec80"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_rtdetr(folder, build_rtdetr("tiny", known, image_size=64))
    ...     pretrained_rtdetr(folder, new, image_size=64).classes.main
    'i'
    >>> pretrained_rtdetr("nowhere", new)
    Traceback (most recent call last):
    surgeval.errors.BadInput: model 'nowhere': no such file or folder, and not a hub name OWNER/NAME
    """
    folder = weights_folder(where)
    if is_rtdetr(folder):
        known = load_rtdetr(folder)
        if known.classes == classes and known.aux == aux:
            again = RTDetr(known.net, known.config, classes, image_size=image_size, fill=fill, aux=aux, size=known.size)
            again.parts.load_state_dict(known.parts.state_dict())
            again.requires_grad_(True)
            return again
    net, config, _ = _read_net(folder)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        config = new_heads(net, config, len(classes.heads[classes.main]))
        network = RTDetr(net, config, classes, image_size=image_size, fill=fill, aux=aux)
    network.requires_grad_(True)
    return network
