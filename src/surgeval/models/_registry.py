"""`open_model`: one text names any model, and this finds the loader.

A package adds models by an entry point of the group `surgeval.models`: a function of the text after `NAME:` that
returns a `Contrastive` or a `Generative`. Importing this module imports no torch.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from surgeval.errors import MODEL_PACKAGES, BadInput, DataError, MissingExtra, code_of_others
from surgeval.models._embedded import EMBEDDED, EMBEDDED_DETECTORS, EMBEDDED_GENERATIVE, embedded_folder
from surgeval.models.contrastive import Contrastive
from surgeval.models.generative import Generative
from surgeval.models.io._hub import hub_folder

__all__ = ["GROUP", "MODEL_KINDS", "PLACES", "ModelSpec", "open_contrastive", "open_generative", "open_model",
           "parse_spec", "plugins", "require_torch"]  # fmt: skip

GROUP = "surgeval.models"
MODEL_KINDS = {
    "clip": "CLIP, a transformers folder or hub name",
    "blip-itc": "BLIP image-text contrast, a transformers folder or hub name",
    "blip-itm": "BLIP image-text matching, a transformers folder or hub name",
    "surgvlp": "SurgVLP checkpoint (.pth or zip), with FILE?vocab=VOCAB or vocab.txt beside it",
    "hecvl": "HecVL checkpoint, as surgvlp",
    "peskavlp": "PeskaVLP checkpoint, as surgvlp",
    "llava": "LLaVA (it answers in words), a transformers folder or hub name",
}
PLACES = {
    "FOLDER": "a transformers folder; config.json says whether it is CLIP, BLIP (by its contrast head) or LLaVA",
    "OWNER/NAME": "the same from the Hugging Face hub",
    "FILE": "a SurgVLP checkpoint (.pth or zip)",
}
_CHECKPOINTS = ("surgvlp", "hecvl", "peskavlp")
_HUB_FILES = ["*.json", "*.safetensors", "pytorch_model.bin", "vocab.txt", "merges.txt", "chat_template.jinja"]


@dataclass(frozen=True)
class ModelSpec:
    """A model's name taken apart: `kind` (empty: find out), where it is, and the vocabulary of a checkpoint."""

    text: str
    kind: str
    where: str
    vocab: str | None = None


def parse_spec(text: str) -> ModelSpec:
    """Take `KIND:WHERE?vocab=FILE` apart; kind and vocabulary are optional.

    >>> parse_spec("surgvlp:weights/SurgVLP.pth?vocab=vocab.txt")
    ModelSpec(text='surgvlp:weights/SurgVLP.pth?vocab=vocab.txt', kind='surgvlp', where='weights/SurgVLP.pth',
              vocab='vocab.txt')
    """
    if not text.strip() or "\0" in text:
        raise BadInput(f"model: found {text!r}, expected a folder, a file or a name")
    head, colon, rest = text.partition(":")
    kind = head if colon and (head in MODEL_KINDS or head in plugins()) else ""
    if not kind:
        kind, rest = (text, "") if text in plugins() else ("", text)
    where, mark, vocab = rest.partition("?vocab=")
    if mark and not vocab:
        raise BadInput(f"model {text!r}: found ?vocab= without a file, expected the path of a vocab.txt")
    if kind in MODEL_KINDS and not where:
        raise BadInput(f"model {text!r}: found no place after {kind}:, expected {MODEL_KINDS[kind]}")
    return ModelSpec(text, kind, where, vocab or None)


def plugins() -> dict[str, EntryPoint]:
    """Models of other packages, by name.

    >>> "phantom-clip" in plugins()  # an embedded model, not a plugin
    False
    """
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def require_torch() -> None:
    """Say how to get torch and transformers where they are missing."""
    for name in MODEL_PACKAGES:
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise MissingExtra("models", name) from error


def open_contrastive(spec: str | Path, device: str = "cpu", dtype: str = "float32") -> Contrastive:
    """Load a model that scores prompts against images.

    `spec` is an embedded name (`phantom-clip`), a transformers folder, a hub name (`openai/clip-vit-base-patch32`), a
    SurgVLP-family checkpoint, or one of these after its kind (`blip-itm:FOLDER`). `dtype` bfloat16 halves memory and
    is faster on a GPU; its scores differ in the third digit.

    >>> model = open_contrastive("phantom-clip")
    >>> model.name, model.preparation.input_size
    ('phantom-clip', (128, 128))
    """
    model = open_model(spec, device, dtype)
    if not isinstance(model, Contrastive):
        raise BadInput(f"model {os.fspath(spec)!r}: found one that answers in words ({model.family}), expected one "
                       "that scores prompts against images")  # fmt: skip
    return model


def open_generative(spec: str | Path, device: str = "cpu", dtype: str = "float32") -> Generative:
    """Load a model that answers questions about images in words: an embedded name, a LLaVA folder or hub name.

    >>> model = open_generative("phantom-llava")
    >>> model.name, model.family
    ('phantom-llava', 'llava')
    >>> open_generative("phantom-clip")
    Traceback (most recent call last):
    surgeval.errors.BadInput: model 'phantom-clip': found one that scores prompts (clip), expected one that answers ...
    """
    model = open_model(spec, device, dtype)
    if not isinstance(model, Generative):
        raise BadInput(f"model {os.fspath(spec)!r}: found one that scores prompts ({model.family}), expected one that "
                       "answers in words")  # fmt: skip
    return model


def open_model(spec: str | Path, device: str = "cpu", dtype: str = "float32") -> Contrastive | Generative:
    """Load a model of either kind, as `open_contrastive` and `open_generative` do.

    >>> open_model("phantom-clip").family
    'clip'
    """
    parsed = parse_spec(os.fspath(spec))
    if parsed.kind and parsed.kind not in MODEL_KINDS:
        return _plugin(parsed).to(device)
    if dtype not in ("float32", "bfloat16"):
        raise BadInput(f"dtype: found {dtype!r}, expected float32 or bfloat16")
    require_torch()
    return _loader(parsed)(dtype=dtype).to(device)


def _plugin(spec: ModelSpec) -> Contrastive | Generative:
    with code_of_others(f"entry point {GROUP}.{spec.kind}: found an opener that fails with"):
        opener = plugins()[spec.kind].load()
        model = opener(spec.text.partition(":")[2])
    if not isinstance(model, Contrastive | Generative):
        raise BadInput(f"entry point {GROUP}.{spec.kind}: found a {type(model).__name__}, expected a Contrastive or "
                       "a Generative model")  # fmt: skip
    return model


def _loader(spec: ModelSpec) -> Callable[..., Contrastive | Generative]:
    """The function that opens the model; all but the precision is decided here."""
    if spec.where in EMBEDDED | EMBEDDED_GENERATIVE and not spec.kind:
        return _folder_loader(embedded_folder(spec.where), spec)
    if spec.where in EMBEDDED_DETECTORS and not os.path.exists(spec.where):  # noqa: PTH110 (as below)
        raise BadInput(f"model {spec.text!r}: found a detector, which finds boxes, expected a model that scores "
                       "prompts or answers in words")  # fmt: skip
    path = Path(spec.where)
    there = os.path.exists(path)  # noqa: PTH110 (`Path.exists` raises for overlong names)
    if there and path.is_file() and _of_folder(path):
        raise BadInput(f"model {spec.text!r}: found one file of a transformers folder, expected the folder that holds "
                       f"it and config.json: {path.parent}")  # fmt: skip
    if spec.kind in _CHECKPOINTS or (not spec.kind and there and path.is_file()):
        from surgeval.models.networks._surgvlp import open_surgvlp

        vocab = Path(spec.vocab) if spec.vocab else None
        return partial(open_surgvlp, path, spec.text, vocab, spec.kind or "surgvlp")
    if spec.vocab:
        raise BadInput(f"model {spec.text!r}: found ?vocab= for a folder, which brings its own, expected a checkpoint")
    if not there:
        path = _download(spec)
    if not path.is_dir():
        raise BadInput(f"model {spec.text!r}: found a file, expected a transformers folder")
    return _folder_loader(path, spec)


def _of_folder(path: Path) -> bool:
    """Whether the file is no checkpoint by itself but a part of a transformers folder."""
    known = path.name in ("config.json", "pytorch_model.bin", "model.safetensors.index.json")
    return path.suffix == ".safetensors" or (known and (path.parent / "config.json").is_file())


def _folder_loader(folder: Path, spec: ModelSpec) -> Callable[..., Contrastive | Generative]:
    from surgeval.models.io._weights import read_config

    path = folder / "config.json"
    model_type = read_config(path).get("model_type")
    wanted = spec.kind.partition("-")[0]
    if wanted and model_type != wanted:
        raise DataError(path, field="model_type", found=repr(model_type), expected=repr(wanted))
    if model_type == "clip":
        from surgeval.models.networks._clip import open_clip

        return partial(open_clip, folder, spec.text)
    if model_type == "surgeval-clip-resnet":
        from surgeval.models.networks._clip import open_clip_resnet

        return partial(open_clip_resnet, folder, spec.text)
    if model_type == "blip":
        from surgeval.models.networks._blip import open_blip

        return partial(open_blip, folder, spec.text, "itm" if spec.kind == "blip-itm" else "itc")
    if model_type == "llava":
        from surgeval.models.networks._llava import open_llava

        return partial(open_llava, folder, spec.text)
    # Models that cut a picture into tiles or pieces of any size (qwen2_vl, llava_next …) are told by their name.
    raise DataError(path, field="model_type", found=repr(model_type)[:80],
                    expected="clip, blip, llava or surgeval-clip-resnet")  # fmt: skip


def _download(spec: ModelSpec) -> Path:
    """The local copy of a hub model."""
    return hub_folder(spec.where, _HUB_FILES, text=spec.text, others=(*EMBEDDED, *EMBEDDED_GENERATIVE, *plugins()))
