"""Putting weights that strangers made into a network: every name and shape is compared first.

`build` makes the network without memory (torch's meta device), so a hostile configuration allocates nothing, and no
tensor can stay at its random start: what transformers only warns about is an error here.
"""

from __future__ import annotations

import copy
import hashlib
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

from surgeval.errors import BadInput, DataError
from surgeval.files import file_digest, read_json_object
from surgeval.models.io.checkpoint import first_line, read_torch
from surgeval.models.io.settings import refuse_kernels

__all__ = ["WeightsMismatch", "build", "configured", "digest", "fit", "foreign_prefix", "freeze", "read_config",
           "read_folder", "read_safetensors"]  # fmt: skip

Network = TypeVar("Network", bound=nn.Module)
_CONFIG_LIMIT = 4 << 20
_WRAPPERS = 4  # wrapped more often than this, a file is nobody's
_MOST_POSITIONS = 1 << 20  # tokens of a question and its reply
_MOST_LAYERS = 256  # a network is built, layer by layer, before its weights are compared


def _few(value: object) -> bool:
    return isinstance(value, int) and 1 <= value <= _MOST_LAYERS


def _length(value: object) -> bool:
    return isinstance(value, int) and 1 <= value <= _MOST_POSITIONS


def _share(value: object) -> bool:
    return isinstance(value, int | float) and 0 <= value <= 1


_FIELDS: tuple[tuple[str, Callable[[object], bool], str], ...] = (  # what transformers accepts and then fails with
    ("num_hidden_layers", _few, f"1 to {_MOST_LAYERS}"),
    ("num_attention_heads", _few, f"1 to {_MOST_LAYERS}"),
    ("max_position_embeddings", _length, f"1 to {_MOST_POSITIONS}"),
    ("return_dict", lambda value: value is True, "true: outputs by name"),
    ("layer_norm_eps", _share, "a number from 0 to 1"),
    ("attention_dropout", _share, "a number from 0 to 1"),
    ("attention_probs_dropout_prob", _share, "a number from 0 to 1"),
    ("hidden_dropout_prob", _share, "a number from 0 to 1"),
    ("chunk_size_feed_forward", lambda value: value == 0, "0: prompts read at once"),
)


class WeightsMismatch(DataError):
    """Weights that are not those of the network; `complaints` names every difference."""

    def __init__(self, file: object, complaints: list[str], network: str, tensors: int) -> None:
        self.complaints = tuple(complaints)
        others = len(complaints) - 1
        more = f" and {others} more difference{'s' if others > 1 else ''}" if others else ""
        super().__init__(
            file, f"found {complaints[0]}{more}, expected the {tensors} tensors of {network}", field="weights"
        )


def read_config(path: str | Path) -> dict[str, Any]:
    """A JSON object of modest size, which names no code.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "config.json").write_text('{"model_type": "clip"}')
    ...     read_config(f"{folder}/config.json")
    {'model_type': 'clip'}
    """
    settings = read_json_object(path, limit=_CONFIG_LIMIT)
    refuse_kernels(settings, path)
    return settings


def configured(kind: Callable[[dict[str, Any]], Any], config: Mapping[str, Any], path: Path) -> Any:
    """A transformers configuration object from a file's contents, or the reason why it cannot be one."""
    for name, part in {"": config, **config}.items():
        if not isinstance(part, Mapping):
            continue
        for key, fits, expected in _FIELDS:
            if key in part and not fits(part[key]):
                field = ".".join(filter(None, (name, key)))
                raise DataError(path, f"found {repr(part[key])[:80]}, expected {expected}", field=field)
    from huggingface_hub.errors import StrictDataclassError

    try:
        return kind(copy.deepcopy(dict(config)))
    except (StrictDataclassError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
        raise DataError(
            path,
            f"found a configuration that is refused ({first_line(error.__cause__ or error)}), "
            "expected a transformers configuration",
        ) from error


def read_safetensors(path: str | Path) -> dict[str, torch.Tensor]:
    """Tensors by name, as stored.

    >>> import tempfile
    >>> from safetensors.torch import save_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_file({"head.bias": torch.zeros(2)}, f"{folder}/model.safetensors")
    ...     read_safetensors(f"{folder}/model.safetensors")
    {'head.bias': tensor([0., 0.])}
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    path = Path(path)
    if not path.is_file():
        raise DataError(path, "found no such file, expected weights in the safetensors format")
    try:
        tensors: dict[str, torch.Tensor] = load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise DataError(
            path, f"found a file that cannot be read ({first_line(error)}), expected safetensors weights"
        ) from error
    return tensors


def read_folder(folder: Path) -> tuple[dict[str, torch.Tensor], list[Path]]:
    """The weights of a transformers folder and the files they came from; safetensors first, else a safe pickle."""
    single, index, pickled = (folder / name for name in
                              ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin"))  # fmt: skip
    if single.is_file():
        return read_safetensors(single), [single]
    if index.is_file():
        parts = read_config(index).get("weight_map")
        if not isinstance(parts, dict) or not parts or not all(_plain(name) for name in parts.values()):
            raise DataError(index, "found something else, expected file names inside the folder", field="weight_map")
        files = [folder / name for name in sorted(set(parts.values()))]
        return {name: value for file in files for name, value in read_safetensors(file).items()}, files
    if pickled.is_file():
        return read_torch(pickled), [pickled]
    raise DataError(folder, "found no weights, expected model.safetensors or pytorch_model.bin")


def _plain(name: object) -> bool:
    return isinstance(name, str) and name.endswith(".safetensors") and not any(c in name for c in "/\\:\0")


def build(
    make: Callable[[], Network], tensors: Mapping[str, torch.Tensor], path: object
) -> tuple[Network, tuple[str, ...]]:
    """The network with these weights, frozen and in evaluation mode, and notes on what was done to make them fit.

    `path` is named when they do not.

    >>> weights = {"weight": torch.ones(1, 2), "bias": torch.zeros(1)}
    >>> network, notes = build(lambda: nn.Linear(2, 1), weights, "model.safetensors")
    >>> network(torch.tensor([[1.0, 2.0]])), notes
    (tensor([[3.]]), ())
    >>> build(lambda: nn.Linear(3, 1), weights, "model.safetensors")
    Traceback (most recent call last):
    surgeval.models.io.weights.WeightsMismatch: model.safetensors: weights: found weight of shape (1, 2) instead of ...
    """
    try:
        with torch.device("meta"):
            network = make()
    except (ValueError, RuntimeError, TypeError, LookupError, AttributeError, ArithmeticError, AssertionError) as error:
        raise DataError(
            path,
            f"found sizes that make no network ({first_line(error)}), expected a consistent configuration",
            field="config.json",
        ) from error
    prefix = foreign_prefix(tensors, network.state_dict())
    fit(network, {name.removeprefix(prefix): value for name, value in tensors.items()}, path)
    largest = max((value.numel() for value in tensors.values()), default=0)
    for name, buffer in list(network.named_buffers()):
        if buffer.is_meta:  # not stored in files: transformers fills these when it builds a model
            if buffer.numel() > largest:
                raise DataError(
                    path,
                    f"found a size that makes {name} {buffer.numel()} numbers, "
                    f"expected at most the {largest} of the largest tensor",
                    field="config.json",
                )
            owner, _, leaf = name.rpartition(".")
            network.get_submodule(owner).register_buffer(
                leaf, _constant(leaf, buffer, network.get_submodule(owner)), persistent=False
            )
    freeze(network)
    return network, (
        f"all {len(tensors)} names of weights begin with {prefix!r}, which was left out",
    ) if prefix else ()


def _constant(name: str, like: torch.Tensor, owner: Any) -> torch.Tensor:
    if name == "position_ids":
        return torch.arange(like.shape[-1]).expand(like.shape).contiguous()
    if name == "token_type_ids":
        return torch.zeros(like.shape, dtype=torch.long)
    if name in ("inv_freq", "original_inv_freq"):  # rotary frequencies, which the module computes when it is made
        frequencies: torch.Tensor = getattr(type(owner)(owner.config), name)
        return frequencies
    raise BadInput(f"transformers: found a version whose networks hold a constant {name!r}, expected one listed in "
                   "docs/dependencies.md")  # fmt: skip


def foreign_prefix(names: Iterable[str], wanted: Collection[str]) -> str:
    """What all names begin with and the network's do not: torch's wrappers add `module.` or `_orig_mod.`.

    >>> foreign_prefix(["module.head.weight", "module.body.bias"], ["head.weight", "body.bias"])
    'module.'
    """
    names = list(names)
    if any(name in wanted for name in names):
        return ""
    parts = names[0].split(".")[:-1] if names else []
    for count in range(1, min(len(parts), _WRAPPERS) + 1):
        prefix = ".".join([*parts[:count], ""])
        if not all(name.startswith(prefix) for name in names):
            break
        if any(name.removeprefix(prefix) in wanted for name in names):
            return prefix
    return ""


def fit(network: nn.Module, tensors: Mapping[str, torch.Tensor], path: object) -> None:
    """Give the network these weights as float32, or say which is missing, too many, of a wrong shape or not finite."""
    wanted = network.state_dict()
    tensors = {name: value for name, value in tensors.items() if not _obsolete(name, wanted)}
    complaints = [f"no {name}" for name in wanted if name not in tensors]
    complaints += [f"an unknown {name}" for name in tensors if name not in wanted]
    for name, value in wanted.items():
        if name in tensors and tensors[name].shape != value.shape:
            complaints.append(f"{name} of shape {tuple(tensors[name].shape)} instead of {tuple(value.shape)}")
        elif name in tensors and tensors[name].is_floating_point() != value.is_floating_point():
            complaints.append(f"{name} of type {tensors[name].dtype} instead of {value.dtype}")
    if complaints:
        raise WeightsMismatch(path, complaints, type(network).__name__, len(wanted))
    ready = {name: value.to(wanted[name].dtype).contiguous() for name, value in tensors.items()}
    for name, value in ready.items():
        # A sum shows NaN and infinity and is the fastest pass; only a sum that overflowed needs the second look.
        if value.is_floating_point() and not math.isfinite(value.sum()) and not bool(value.isfinite().all()):
            raise DataError(path, "found NaN or infinity, expected finite weights", field=name)
    network.load_state_dict(ready, assign=True)


def _obsolete(name: str, wanted: Mapping[str, torch.Tensor]) -> bool:
    # Older transformers stored this constant with the weights.
    return name.endswith("embeddings.position_ids") and name not in wanted


def freeze(network: nn.Module) -> None:
    """Evaluation mode, and no gradients for weights: explanations differentiate attentions and feature maps only."""
    network.eval()
    for parameter in network.parameters():
        parameter.requires_grad_(False)


def digest(files: Iterable[str | Path], *settings: object) -> str:
    """A hash of file contents (read in pieces) and settings: the identity that a run records.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "model.bin").write_bytes(b"weights")
    ...     same, other = (digest([f"{folder}/model.bin"], size) for size in (224, 448))
    >>> len(same), same == other
    (64, False)
    """
    total = hashlib.sha256()
    for path in files:
        total.update(bytes.fromhex(file_digest(path)))
    for setting in settings:
        total.update(hashlib.sha256(repr(setting).encode()).digest())
    return total.hexdigest()
