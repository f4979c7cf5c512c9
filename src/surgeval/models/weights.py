"""Read the weights and configuration of an untrusted model, compare them with a network, and load them.

Checkpoints (.pth, .bin, or a zip around one) are opened with `weights_only=True`, so no code in them runs, and archives
are measured before they are unpacked. `build_network` makes the network without memory (torch's meta device), so a
configuration of absurd sizes allocates nothing, and every name and shape is compared: transformers would leave a
missing tensor random and only warn.
"""

from __future__ import annotations

import copy
import hashlib
import lzma
import math
import pickle
import re
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Annotated, Any, Literal, Protocol, TypeVar

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import nn

from surgeval.errors import BadInput, DataError
from surgeval.files import Location, file_digest, format_value, raise_errors, read_json_object, validate

__all__ = ["WeightsMismatch", "build_network", "check_finite", "compare_weights", "digest", "find_prefix", "first_line",
           "fit_weights", "freeze", "make_config", "read_config", "read_folder", "read_safetensors", "read_torch",
           "refuse_kernels", "walk_settings"]  # fmt: skip

Network = TypeVar("Network", bound=nn.Module)

LIMIT = 2 << 30  # bytes that a smaller file may unpack to: SurgVLP has 0.54 GB
_CONFIG_LIMIT = 4 << 20
_MOST_PREFIXES = 4  # parts of a prefix that wrappers may have put before all names
_MOST_POSITIONS = 1 << 20  # tokens of a question and its reply
_MOST_LAYERS = 256  # a network is built, layer by layer, before its weights are compared
_UNREADABLE = (pickle.UnpicklingError, RuntimeError, EOFError, ValueError, KeyError, AttributeError, TypeError,
               IndexError, OSError, struct.error, OverflowError, AssertionError)  # fmt: skip
_BROKEN_ZIP = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, NotImplementedError, EOFError, struct.error, ValueError,
               OverflowError)  # fmt: skip


class WeightsMismatch(DataError):
    """Weights that do not fit the network; `differences` names every difference."""

    def __init__(self, path: object, differences: list[str], network: str, tensors: int) -> None:
        self.differences = tuple(differences)
        others = len(differences) - 1
        more = f" and {others} more difference{'s' if others > 1 else ''}" if others else ""
        super().__init__(
            path,
            f"does not fit the {tensors} tensors of {network}: {differences[0]}{more}",
            field="weights",
            code="wrong-shape",
        )


def read_torch(path: str | Path, limit: int = LIMIT) -> dict[str, torch.Tensor]:
    """Read tensors by name from a checkpoint, or from a zip archive that holds one .pth file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     torch.save({"head.bias": torch.zeros(2)}, f"{folder}/net.pth")
    ...     read_torch(f"{folder}/net.pth")
    {'head.bias': tensor([0., 0.])}
    """
    path = Path(path)
    if not path.is_file():
        raise DataError(path, "no such file", code="file-missing")
    limit = max(limit, path.stat().st_size)  # the unpacked size may always be the size on disk
    with ExitStack() as stack:
        try:
            stream: IO[bytes] = stack.enter_context(path.open("rb"))
            if _is_zip(stream):
                stream = _open_archive(stream, path, limit, stack)
        except _BROKEN_ZIP as error:
            raise DataError(path, "the zip archive is truncated or damaged", code="file-broken") from error
        except RuntimeError as error:  # an encrypted member
            sentence = f"the zip archive cannot be opened: {first_line(error)}"
            raise DataError(path, sentence, code="file-broken") from error
        except OSError as error:
            sentence = f"cannot be read: {error.strerror or first_line(error)}"
            raise DataError(path, sentence, code="file-unreadable") from error
        loaded = _load_checkpoint(stream, path)
    return _check_tensors(loaded, path, limit)


def _is_zip(stream: IO[bytes]) -> bool:
    start = stream.read(4)
    stream.seek(0)
    return start.startswith(b"PK")


def _open_archive(stream: IO[bytes], path: Path, limit: int, stack: ExitStack) -> IO[bytes]:
    """The stream of a torch archive itself, or of the one .pth inside a plain zip; both measured first."""
    with zipfile.ZipFile(stream) as archive:
        members = archive.infolist()
        _check_unpacked_size(members, path, limit)
        if any(member.filename.rpartition("/")[2] == "data.pkl" for member in members):  # torch's own format
            stream.seek(0)
            return stream
        inner = [member for member in members if member.filename.endswith((".pth", ".pt")) and not member.is_dir()]
        if len(inner) != 1:
            sentence = f"the zip archive holds {len(inner)} .pth files; it must hold exactly one"
            raise DataError(path, sentence, code="file-broken")
        copied: IO[bytes] = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 (the stack closes it)
        with archive.open(inner[0]) as source:
            while piece := source.read(1 << 20):
                copied.write(piece)
                if copied.tell() > limit:  # the archive may declare a smaller size than a member has
                    sentence = f"unpacks to more than {limit} bytes, which is more than the archive declares"
                    raise DataError(path, sentence, record=inner[0].filename, code="file-too-large")
    copied.seek(0)
    if _is_zip(copied):
        with zipfile.ZipFile(copied) as archive:
            _check_unpacked_size(archive.infolist(), path, limit)
        copied.seek(0)
    return copied


def _check_unpacked_size(members: list[zipfile.ZipInfo], path: Path, limit: int) -> None:
    total = sum(member.file_size for member in members)
    if total > limit:
        raise DataError(path, f"the archive unpacks to {total} bytes; the limit is {limit}", code="file-too-large")


def _load_checkpoint(stream: IO[bytes], path: Path) -> object:
    try:
        return torch.load(stream, map_location="cpu", weights_only=True)
    except MemoryError as error:
        raise DataError(path, "the tensors are larger than this machine's memory", code="file-too-large") from error
    except _UNREADABLE as error:
        called = re.search(r"GLOBAL ([\w.]+)", str(error))
        if called:
            sentence = f"the file wants to run {called[1]}; only checkpoints that hold nothing but tensors are read"
        elif isinstance(error, pickle.UnpicklingError):
            sentence = "not a checkpoint, or a checkpoint that holds more than tensors"
        else:
            sentence = f"not a torch checkpoint: {first_line(error)}"
        raise DataError(path, sentence, code="file-broken") from error


def _check_tensors(state: Any, path: Path, limit: int) -> dict[str, torch.Tensor]:
    if not isinstance(state, dict):
        sentence = f"expected tensors by name, got a {type(state).__name__}"
        raise DataError(path, sentence, code="wrong-shape")
    for name, value in state.items():
        field = str(name)[:80]
        if not isinstance(name, str) or not isinstance(value, torch.Tensor):
            raise DataError(path, f"expected a tensor, got a {type(value).__name__}", field=field, code="wrong-shape")
        if value.layout != torch.strided or value.is_meta or value.is_quantized:
            sentence = "sparse, quantised and empty tensors are not supported"
            raise DataError(path, sentence, field=field, code="wrong-value")
        stored = value.untyped_storage().nbytes() // value.element_size()
        if value.numel() > stored:  # strides of 0 repeat one number any number of times
            sentence = f"shape {tuple(value.shape)}, but the file stores {stored} number{'s' * (stored != 1)}"
            raise DataError(path, sentence, field=field, code="wrong-shape")
    total = sum(value.nbytes for value in state.values())
    if total > 2 * limit:  # networks with tied weights name a tensor twice
        sentence = f"tensors that share numbers add up to {total} bytes; the limit is {2 * limit}"
        raise DataError(path, sentence, code="file-too-large")
    return dict(state)


def first_line(error: BaseException) -> str:
    r"""The first line of an exception's message, at most 160 characters.

    >>> first_line(ValueError("no such layer:\nlayer9"))
    'no such layer'
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:160].rstrip(".:") if lines else type(error).__name__


def read_safetensors(path: str | Path) -> dict[str, torch.Tensor]:
    """Read tensors by name, in the types they are stored in.

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
        raise DataError(path, "no such file", code="file-missing")
    try:
        tensors: dict[str, torch.Tensor] = load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise DataError(path, f"not a safetensors file: {first_line(error)}", code="file-broken") from error
    return tensors


def read_folder(folder: Path) -> tuple[dict[str, torch.Tensor], list[Path]]:
    """Read the weights of a transformers folder; the second value lists the files they came from.

    Safetensors are preferred to a pickle.

    >>> from surgeval.models import EMBEDDED
    >>> tensors, files = read_folder(EMBEDDED["phantom-clip"].path)
    >>> tensors["visual_projection.weight"].dtype, [path.name for path in files]
    (torch.float16, ['model.safetensors'])
    """
    single, index, pickled = (folder / name for name in
                              ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin"))  # fmt: skip
    if single.is_file():
        return read_safetensors(single), [single]
    if index.is_file():
        parts = read_config(index).get("weight_map")
        if not isinstance(parts, dict) or not parts or not all(_is_file_name(name) for name in parts.values()):
            sentence = "expected names of safetensors files inside the folder"
            raise DataError(index, sentence, field="weight_map", code="path-escape")
        files = [folder / name for name in sorted(set(parts.values()))]
        return {name: value for file in files for name, value in read_safetensors(file).items()}, files
    if pickled.is_file():
        return read_torch(pickled), [pickled]
    raise DataError(folder, "has no weights: model.safetensors or pytorch_model.bin is missing", code="file-missing")


def _is_file_name(name: object) -> bool:
    return isinstance(name, str) and name.endswith(".safetensors") and not any(c in name for c in "/\\:\0")


def read_config(path: str | Path) -> dict[str, Any]:
    """Read a model's JSON configuration of modest size, and refuse one that names code.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "config.json").write_text('{"model_type": "clip"}')
    ...     read_config(f"{folder}/config.json")
    {'model_type': 'clip'}
    """
    settings = read_json_object(path, limit=_CONFIG_LIMIT)
    refuse_kernels(settings, path)
    return settings


def refuse_kernels(settings: Mapping[str, Any], path: object) -> None:
    """Raise `DataError` if a setting names an implementation that is not part of transformers.

    transformers takes `attn_implementation: someone/kernel` for a compiled program on the hub, fetches and runs it if
    the package for that is installed; no option of it forbids that.

    >>> refuse_kernels({"_attn_implementation": "sdpa"}, "config.json")
    >>> refuse_kernels({"_attn_implementation": "someone/kernel"}, "config.json")
    Traceback (most recent call last):
    surgeval.errors.DataError: config.json: _attn_implementation: expected an implementation that is part of ...
    """
    for name, value in walk_settings(settings):
        implementation = any(part.endswith("_implementation") for part in name.split("."))
        if implementation and isinstance(value, str) and not value.replace("_", "").isalnum():
            sentence = f"expected an implementation that is part of transformers, got {format_value(value)}"
            raise DataError(path, sentence, field=name[:80], code="wrong-value")


def walk_settings(settings: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the dotted names and the values of a configuration and of those nested in it.

    >>> list(walk_settings({"a": 1, "text_config": {"b": 2}}))
    [('a', 1), ('text_config', {'b': 2}), ('text_config.b', 2)]
    """
    for name, value in settings.items():
        yield f"{above}{name}", value
        if isinstance(value, Mapping):
            yield from walk_settings(value, f"{above}{name}.")


_Count = Annotated[int, Field(ge=1, le=_MOST_LAYERS)]
_Share = Annotated[float, Field(ge=0, le=1)]


class _NetworkConfig(BaseModel):
    """Limits of the settings that transformers accepts and then fails with, or that cost much time."""

    model_config = ConfigDict(strict=True)

    num_hidden_layers: _Count = 1
    num_attention_heads: _Count = 1
    max_position_embeddings: Annotated[int, Field(ge=1, le=_MOST_POSITIONS)] = 1
    return_dict: Literal[True] = True  # outputs by name
    layer_norm_eps: _Share = 0.0
    attention_dropout: _Share = 0.0
    attention_probs_dropout_prob: _Share = 0.0
    hidden_dropout_prob: _Share = 0.0
    chunk_size_feed_forward: Literal[0] = 0


class _ModelConfig(_NetworkConfig):
    text_config: _NetworkConfig | None = None
    vision_config: _NetworkConfig | None = None


def make_config(kind: Callable[[dict[str, Any]], Any], config: Mapping[str, Any], path: Path) -> Any:
    """Make a configuration object of transformers, or raise `DataError` that says why it cannot be made.

    `kind` makes the object, such as `CLIPConfig.from_dict`.

    >>> make_config(dict, {"num_hidden_layers": 12}, Path("config.json"))
    {'num_hidden_layers': 12}
    >>> make_config(dict, {"num_hidden_layers": 10**9}, Path("config.json"))
    Traceback (most recent call last):
    surgeval.errors.DataError: config.json: num_hidden_layers: expected a value less than or equal to 256, ...
    """
    validate(_ModelConfig, dict(config), Location(str(path), raise_errors))
    from huggingface_hub.errors import StrictDataclassError

    try:
        return kind(copy.deepcopy(dict(config)))
    except (StrictDataclassError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
        sentence = f"transformers refuses this configuration: {first_line(error.__cause__ or error)}"
        raise DataError(path, sentence, code="wrong-value") from error


def build_network(
    make: Callable[[], Network], tensors: Mapping[str, torch.Tensor], path: object
) -> tuple[Network, tuple[str, ...]]:
    """Make a network and load these weights; it is frozen and in evaluation mode.

    The second value are notes on what was changed to make the weights fit. `path` is named in errors.

    >>> weights = {"weight": torch.ones(1, 2), "bias": torch.zeros(1)}
    >>> network, notes = build_network(lambda: nn.Linear(2, 1), weights, "model.safetensors")
    >>> network(torch.tensor([[1.0, 2.0]])), notes
    (tensor([[3.]]), ())
    >>> build_network(lambda: nn.Linear(3, 1), weights, "model.safetensors")
    Traceback (most recent call last):
    surgeval.models.weights.WeightsMismatch: model.safetensors: weights: does not fit the 2 tensors of Linear: weight
    has shape (1, 2) instead of (1, 3)
    """
    try:
        with torch.device("meta"):
            network = make()
    except (ValueError, RuntimeError, TypeError, LookupError, AttributeError, ArithmeticError, AssertionError) as error:
        sentence = f"no network can be built with these sizes: {first_line(error)}"
        raise DataError(path, sentence, field="config.json", code="wrong-value") from error
    prefix = find_prefix(tensors, network.state_dict())
    fit_weights(network, {name.removeprefix(prefix): value for name, value in tensors.items()}, path)
    largest = max((value.numel() for value in tensors.values()), default=0)
    for name, buffer in list(network.named_buffers()):
        if not buffer.is_meta:
            continue
        # Constants are not stored in files: transformers fills them when it builds a model.
        if buffer.numel() > largest:
            sentence = f"makes {name} {buffer.numel()} numbers long; the largest stored tensor has {largest}"
            raise DataError(path, sentence, field="config.json", code="wrong-value")
        owner, _, leaf = name.rpartition(".")
        module = network.get_submodule(owner)
        module.register_buffer(leaf, _make_constant(leaf, buffer, module), persistent=False)
    freeze(network)
    note = f"The names of all {len(tensors)} tensors begin with {prefix!r}, which was removed."
    return network, (note,) if prefix else ()


def _make_constant(name: str, like: torch.Tensor, owner: Any) -> torch.Tensor:
    if name == "position_ids":
        return torch.arange(like.shape[-1]).expand(like.shape).contiguous()
    if name == "token_type_ids":
        return torch.zeros(like.shape, dtype=torch.long)
    if name in ("inv_freq", "original_inv_freq"):  # rotary frequencies, which the module computes when it is made
        frequencies: torch.Tensor = getattr(type(owner)(owner.config), name)
        return frequencies
    raise BadInput(f"This version of transformers has an unknown constant {name!r}. Install a version that "
                   "docs/dependencies.md lists.")  # fmt: skip


def find_prefix(names: Iterable[str], wanted: Collection[str]) -> str:
    """Find what all names begin with and the network's do not: torch's wrappers add `module.` or `_orig_mod.`.

    >>> find_prefix(["module.head.weight", "module.body.bias"], ["head.weight", "body.bias"])
    'module.'
    """
    names = list(names)
    if any(name in wanted for name in names):
        return ""
    parts = names[0].split(".")[:-1] if names else []
    for count in range(1, min(len(parts), _MOST_PREFIXES) + 1):
        prefix = ".".join([*parts[:count], ""])
        if not all(name.startswith(prefix) for name in names):
            break
        if any(name.removeprefix(prefix) in wanted for name in names):
            return prefix
    return ""


def fit_weights(
    network: nn.Module, tensors: Mapping[str, torch.Tensor], path: object, *, in_place: bool = False, prefix: str = ""
) -> None:
    """Load weights into a network, or raise `WeightsMismatch` that names every difference.

    The tensors replace the network's own, in the network's types. With `in_place` they are copied into the tensors that
    the network has, and their types must be the same. `prefix` is put before the names in errors.

    >>> network = nn.Linear(2, 1)
    >>> fit_weights(network, {"weight": torch.ones(1, 2), "bias": torch.zeros(1)}, "model.safetensors")
    >>> network(torch.tensor([[1.0, 2.0]])).item()
    3.0
    """
    wanted = network.state_dict()
    # Older transformers stored this constant with the weights.
    tensors = {
        name: value for name, value in tensors.items() if name in wanted or not name.endswith("embeddings.position_ids")
    }
    compare_weights(wanted, tensors, path, type(network).__name__, same_type=in_place, prefix=prefix)
    ready = tensors if in_place else {name: value.to(wanted[name].dtype) for name, value in tensors.items()}
    check_finite(ready, path, prefix)
    network.load_state_dict({name: value.contiguous() for name, value in ready.items()}, assign=not in_place)


class _Described(Protocol):
    """A tensor, or the description of one in a file's header."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> torch.dtype: ...


def compare_weights(
    wanted: Mapping[str, torch.Tensor], found: Mapping[str, _Described], path: object, network: str, *,
    same_type: bool = False, prefix: str = "",
) -> None:  # fmt: skip
    """Raise `WeightsMismatch` unless the names and shapes are those of `wanted`.

    Floating-point types may differ unless `same_type`; whole numbers never stand for them. `found` may be a file's
    header, so that nothing is read before it fits.

    >>> wanted = nn.Linear(2, 1).state_dict()
    >>> compare_weights(wanted, wanted, "model.safetensors", "Linear")
    >>> compare_weights(wanted, {"weight": torch.ones(1, 2)}, "model.safetensors", "Linear")
    Traceback (most recent call last):
    surgeval.models.weights.WeightsMismatch: model.safetensors: weights: does not fit the 2 tensors of Linear: bias is
    missing
    """
    differences = [f"{prefix}{name} is missing" for name in wanted if name not in found]
    differences += [f"{prefix}{name} is not part of the network" for name in found if name not in wanted]
    for name, value in wanted.items():
        if name not in found:
            continue
        shape, dtype = tuple(found[name].shape), found[name].dtype
        if shape != tuple(value.shape):
            differences.append(f"{prefix}{name} has shape {shape} instead of {tuple(value.shape)}")
        elif dtype != value.dtype and (same_type or dtype.is_floating_point != value.dtype.is_floating_point):
            types = [str(one).removeprefix("torch.") for one in (dtype, value.dtype)]
            differences.append(f"{prefix}{name} has type {types[0]} instead of {types[1]}")
    if differences:
        raise WeightsMismatch(path, differences, network, len(wanted))


def check_finite(tensors: Mapping[str, torch.Tensor], path: object, prefix: str = "") -> None:
    """Raise `DataError` for the first tensor with NaN or infinity.

    >>> check_finite({"weight": torch.ones(2)}, "model.safetensors")
    >>> check_finite({"weight": torch.tensor([1.0, torch.nan])}, "model.safetensors")
    Traceback (most recent call last):
    surgeval.errors.DataError: model.safetensors: weight: contains NaN or infinity
    """
    for name, value in tensors.items():
        # A sum shows NaN and infinity and is the fastest pass; only a sum that overflowed needs the second look.
        if value.is_floating_point() and not math.isfinite(value.sum()) and not bool(value.isfinite().all()):
            raise DataError(path, "contains NaN or infinity", field=f"{prefix}{name}", code="not-finite")


def freeze(network: nn.Module) -> None:
    """Set evaluation mode and turn off gradients of weights.

    Explanations differentiate attentions and feature maps only.

    >>> network = nn.Linear(2, 1)
    >>> freeze(network)
    >>> network.training, network.weight.requires_grad
    (False, False)
    """
    network.eval()
    for parameter in network.parameters():
        parameter.requires_grad_(False)


def digest(files: Iterable[str | Path], *settings: object) -> str:
    """Hash the contents of files and settings: the identity of a model that a run records.

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
