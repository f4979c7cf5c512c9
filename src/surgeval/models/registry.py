"""`open_model`: one text names any model, and this finds the loader.

Importing this module imports no torch.
"""

from __future__ import annotations

import importlib
import os
from dataclasses import dataclass
from pathlib import Path

from surgeval.errors import MODEL_PACKAGES, BadInput, DataError, MissingExtra
from surgeval.models.contrastive import Contrastive
from surgeval.models.embedded import EMBEDDED, EMBEDDED_DETECTORS, EMBEDDED_GENERATIVE, embedded_folder
from surgeval.models.families import FAMILIES, ModelFamily, family_of_type
from surgeval.models.generative import Generative
from surgeval.models.io.hub import hub_folder

__all__ = ["PLACES", "ModelSpec", "open_contrastive", "open_generative", "open_model", "parse_spec", "require_torch"]

PLACES = {
    "FOLDER": "a transformers folder; config.json says whether it is CLIP, BLIP (by its contrast head) or LLaVA",
    "OWNER/NAME": "the same from the Hugging Face hub",
    "FILE": "a SurgVLP checkpoint (.pth or zip)",
}
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
    kind = head if colon and head in FAMILIES else ""
    if not kind:
        kind, rest = (text, "") if text in FAMILIES and not FAMILIES.is_builtin(text) else ("", text)
    if kind and not FAMILIES.is_builtin(kind):
        return ModelSpec(text, kind, rest)
    where, mark, vocab = rest.partition("?vocab=")
    if mark and not vocab:
        raise BadInput(f"model {text!r}: found ?vocab= without a file, expected the path of a vocab.txt")
    if kind and not where:
        raise BadInput(f"model {text!r}: found no place after {kind}:, expected {FAMILIES[kind].summary}")
    return ModelSpec(text, kind, where, vocab or None)


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
    if dtype not in ("float32", "bfloat16"):
        raise BadInput(f"dtype: found {dtype!r}, expected float32 or bfloat16")
    family = FAMILIES[parsed.kind] if parsed.kind else None
    if family is None or FAMILIES.is_builtin(family.name):
        require_torch()
    elif family.model_type is None:
        return family.open(parsed.where, parsed.text, dtype).to(device)
    return _open(parsed, family, dtype).to(device)


def _open(spec: ModelSpec, family: ModelFamily | None, dtype: str) -> Contrastive | Generative:
    """Open what a name stands for; without a family its kind is found out."""
    if spec.where in EMBEDDED | EMBEDDED_GENERATIVE and not spec.kind:
        return _open_folder(embedded_folder(spec.where), spec, None, dtype)
    if spec.where in EMBEDDED_DETECTORS and not os.path.exists(spec.where):  # noqa: PTH110 (as below)
        raise BadInput(f"model {spec.text!r}: found a detector, which finds boxes, expected a model that scores "
                       "prompts or answers in words")  # fmt: skip
    path = Path(spec.where)
    there = os.path.exists(path)  # noqa: PTH110 (`Path.exists` raises for overlong names)
    if there and path.is_file() and _of_folder(path):
        raise BadInput(f"model {spec.text!r}: found one file of a transformers folder, expected the folder that holds "
                       f"it and config.json: {path.parent}")  # fmt: skip
    if family is None and there and path.is_file():
        family = FAMILIES["surgvlp"]
    if family is not None and family.model_type is None:
        return family.open(path, spec.text, dtype, vocab=Path(spec.vocab) if spec.vocab else None)
    if spec.vocab:
        raise BadInput(f"model {spec.text!r}: found ?vocab= for a folder, which brings its own, expected a checkpoint")
    if not there:
        path = _download(spec)
    if not path.is_dir():
        raise BadInput(f"model {spec.text!r}: found a file, expected a transformers folder")
    return _open_folder(path, spec, family, dtype)


def _of_folder(path: Path) -> bool:
    """Whether the file is no checkpoint by itself but a part of a transformers folder."""
    known = path.name in ("config.json", "pytorch_model.bin", "model.safetensors.index.json")
    return path.suffix == ".safetensors" or (known and (path.parent / "config.json").is_file())


def _open_folder(folder: Path, spec: ModelSpec, family: ModelFamily | None, dtype: str) -> Contrastive | Generative:
    from surgeval.models.io.weights import read_config

    path = folder / "config.json"
    model_type = read_config(path).get("model_type")
    if family is not None and model_type != family.model_type:
        raise DataError(path, f"found {model_type!r}, expected {family.model_type!r}", field="model_type")
    family = family or family_of_type(model_type)
    if family is None:
        # Models that cut a picture into tiles or pieces of any size (qwen2_vl, llava_next …) are told by their name.
        known = dict.fromkeys(one.model_type for one in FAMILIES.load_all().values() if one.model_type)
        raise DataError(path, f"found {repr(model_type)[:80]}, expected one of {', '.join(known)}", field="model_type")
    return family.open(folder, spec.text, dtype)


def _download(spec: ModelSpec) -> Path:
    """The local copy of a hub model."""
    known = (*EMBEDDED, *EMBEDDED_GENERATIVE, *FAMILIES.plugins())
    return hub_folder(spec.where, _HUB_FILES, text=spec.text, others=known)
