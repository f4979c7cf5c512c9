"""Open a model by its name: model families, the models that ship with surgeval, and the Hugging Face hub.

A package adds a family by an entry point of the group `surgeval.models` that names its `ModelFamily`. Openers are named
as text, so importing this module imports no torch.
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from surgeval.errors import (
    MODEL_PACKAGES,
    BadInput,
    DataError,
    MissingExtra,
    code_of_others,
    did_you_mean,
    printable,
)
from surgeval.files import format_value, read_json_object
from surgeval.models.contrastive import Contrastive
from surgeval.models.generative import Generative
from surgeval.registry import Registry

__all__ = ["EMBEDDED", "FAMILIES", "EmbeddedModel", "ModelFamily", "ModelSpec", "embedded_names", "hub_folder",
           "open_contrastive", "open_generative", "open_model", "parse_spec", "require_packages"]  # fmt: skip

_HUB_FILES = ["*.json", "*.safetensors", "pytorch_model.bin", "vocab.txt", "merges.txt", "chat_template.jinja"]
_HUB_NAME = re.compile(r"[\w-][\w.-]{0,95}/[\w-][\w.-]{0,95}")
_LONGEST_REASON = 160  # characters of the hub client's own sentence
_CONFIG_LIMIT = 4 << 20


@dataclass(frozen=True)
class ModelFamily:
    """A family of models, such as CLIP.

    `opener` is `module:function`, called as `function(place, name, dtype=…, **options)`: `place` is the folder for a
    family with a `model_type` (the word in config.json), otherwise what follows the colon; `name` is the whole text.
    It returns a `Contrastive` or a `Generative`. `preset` are options that this name always passes to the opener,
    `options` those that a user may add, as `?vocab=FILE`.

    >>> FAMILIES["blip-itm"].model_type, FAMILIES["surgvlp"].model_type
    ('blip', None)
    """

    name: str
    summary: str
    opener: str
    model_type: str | None = None
    preset: Mapping[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()

    def open(self, place: str | Path, name: str, dtype: str, **options: Any) -> Contrastive | Generative:
        """Load the model at a place. Errors of another package's opener are raised as `BadInput`."""
        module, _, function = self.opener.partition(":")
        where = f"model family {self.name!r}: opener {self.opener}"
        with nullcontext() if FAMILIES.is_builtin(self.name) else code_of_others(where):
            opener = getattr(importlib.import_module(module), function)
            model = opener(place, name, dtype=dtype, **self.preset, **options)
        if not isinstance(model, Contrastive | Generative):
            raise BadInput(f"{where}: expected a Contrastive or a Generative model, got a {type(model).__name__}")
        return model


CLIP = ModelFamily("clip", "CLIP, a transformers folder or hub name", "surgeval.models.clip:open_clip", "clip")
BLIP_ITC = ModelFamily(
    "blip-itc", "BLIP image-text contrast, a transformers folder or hub name", "surgeval.models.blip:open_blip", "blip",
    preset={"head": "itc"},
)  # fmt: skip
BLIP_ITM = ModelFamily(
    "blip-itm", "BLIP image-text matching, a transformers folder or hub name", "surgeval.models.blip:open_blip", "blip",
    preset={"head": "itm"},
)  # fmt: skip
SURGVLP = ModelFamily(
    "surgvlp", "SurgVLP checkpoint (.pth or zip), with FILE?vocab=VOCAB or vocab.txt beside it",
    "surgeval.models.surgvlp:open_surgvlp", preset={"family": "surgvlp"}, options=("vocab",),
)  # fmt: skip
HECVL = ModelFamily(
    "hecvl", "HecVL checkpoint, as surgvlp", SURGVLP.opener, preset={"family": "hecvl"}, options=("vocab",)
)
PESKAVLP = ModelFamily(
    "peskavlp", "PeskaVLP checkpoint, as surgvlp", SURGVLP.opener, preset={"family": "peskavlp"}, options=("vocab",)
)
LLAVA = ModelFamily(
    "llava", "LLaVA (generates text), a transformers folder or hub name", "surgeval.models.llava:open_llava", "llava"
)
CLIP_RESNET = ModelFamily(
    "clip-resnet", "a CLIP with a residual image tower, as phantom-clip-resnet, a folder",
    "surgeval.models.clip:open_clip_resnet", "surgeval-clip-resnet",
)  # fmt: skip

FAMILIES = Registry(
    "surgeval.models",
    {
        "clip": "surgeval.models.registry:CLIP",
        "blip-itc": "surgeval.models.registry:BLIP_ITC",
        "blip-itm": "surgeval.models.registry:BLIP_ITM",
        "surgvlp": "surgeval.models.registry:SURGVLP",
        "hecvl": "surgeval.models.registry:HECVL",
        "peskavlp": "surgeval.models.registry:PESKAVLP",
        "llava": "surgeval.models.registry:LLAVA",
        "clip-resnet": "surgeval.models.registry:CLIP_RESNET",
    },
    ModelFamily,
    "model family",
)

_Kind = Literal["contrastive", "generative", "detector"]


@dataclass(frozen=True)
class EmbeddedModel:
    """A small network that ships with surgeval, trained on the phantom, with known strengths and faults.

    It is an ordinary model folder (a detector: a file) among the package's data, opened by the ordinary loaders.
    """

    name: str
    kind: _Kind
    summary: str

    @property
    def installed(self) -> bool:
        """Whether this installation has the weights."""
        return (self._path / ("" if self.kind == "detector" else "config.json")).is_file()

    @property
    def path(self) -> Path:
        """The model's folder, or a detector's file; raises `BadInput` if this installation lacks it.

        >>> EMBEDDED["phantom-clip"].path.name, EMBEDDED["tdnet-p"].path.name
        ('phantom-clip', 'detector.safetensors')
        """
        if not self.installed:
            raise BadInput(f"The weights of {self.name} are missing from this installation. Reinstall surgeval.")
        return self._path

    @property
    def _path(self) -> Path:
        folder = Path(__file__).parent / "embedded_weights" / self.name
        return folder / "detector.safetensors" if self.kind == "detector" else folder


EMBEDDED: Mapping[str, EmbeddedModel] = {
    model.name: model
    for model in (
        EmbeddedModel("phantom-clip", "contrastive", "a small CLIP (ViT) that looks at the instruments"),
        EmbeddedModel(
            "phantom-clip-resnet", "contrastive", "phantom-clip with a residual image tower, for Grad-CAM"
        ),
        EmbeddedModel(
            "phantom-shortcut", "contrastive",
            "a small CLIP that uses the tissue's tint instead of the instruments: right for the wrong reason",
        ),
        EmbeddedModel("phantom-llava", "generative", "a small LLaVA whose answers depend on the image"),
        EmbeddedModel(
            "phantom-sycophant", "generative", "the same network trained to agree with the premise of a question"
        ),
        EmbeddedModel(
            "tdnet-p", "detector", "a small TDnet that detects the phantom's instruments and their actions"
        ),
    )
}  # fmt: skip


def embedded_names(*kinds: _Kind) -> tuple[str, ...]:
    """The names of the embedded models of these kinds.

    >>> embedded_names("generative", "detector")
    ('phantom-llava', 'phantom-sycophant', 'tdnet-p')
    """
    return tuple(model.name for model in EMBEDDED.values() if model.kind in kinds)


@dataclass(frozen=True)
class ModelSpec:
    """A model's name in its parts: family (empty if not stated), place, and the options after `?`."""

    text: str
    family: str
    place: str
    options: Mapping[str, str] = field(default_factory=dict)


def parse_spec(text: str) -> ModelSpec:
    """Split `FAMILY:PLACE?option=VALUE`; family and option may be absent.

    >>> parse_spec("surgvlp:weights/SurgVLP.pth?vocab=vocab.txt")
    ModelSpec(text='surgvlp:weights/SurgVLP.pth?vocab=vocab.txt', family='surgvlp', place='weights/SurgVLP.pth',
              options={'vocab': 'vocab.txt'})
    """
    if not text.strip() or "\0" in text:
        raise BadInput(f"The model's name {text!r} is empty or not printable. Give a folder, a file or a name.")
    head, colon, rest = text.partition(":")
    family = head if colon and head in FAMILIES else ""
    if not family:
        family, rest = (text, "") if text in FAMILIES.plugins() else ("", text)
    known = {option for name in FAMILIES if FAMILIES.is_builtin(name) for option in FAMILIES[name].options}
    known |= set(FAMILIES[family].options) if family else set()
    place, *parts = re.split(rf"\?({'|'.join(sorted(known))})=", rest)
    options = dict(zip(parts[::2], parts[1::2], strict=True))
    for name, value in options.items():
        if not value:
            raise BadInput(f"model {text!r}: nothing follows ?{name}=")
    if family and not place and FAMILIES.is_builtin(family):
        raise BadInput(f"model {text!r}: nothing follows {family}: (expected {FAMILIES[family].summary})")
    return ModelSpec(text, family, place, options)


def open_contrastive(spec: str | Path, device: str = "cpu", dtype: str = "float32") -> Contrastive:
    """Load a model that scores prompts against images.

    `spec` is an embedded name (`phantom-clip`), a transformers folder, a hub name (`openai/clip-vit-base-patch32`), a
    SurgVLP-family checkpoint, or one of these after its family (`blip-itm:FOLDER`). `dtype` bfloat16 halves memory and
    is faster on a GPU; its scores differ in the third digit.

    >>> model = open_contrastive("phantom-clip")
    >>> model.name, model.preparation.input_size
    ('phantom-clip', (128, 128))
    """
    model = open_model(spec, device, dtype)
    if not isinstance(model, Contrastive):
        raise BadInput(f"{os.fspath(spec)!r} is a generative model ({model.family}); this needs a contrastive one such "
                       "as CLIP")  # fmt: skip
    return model


def open_generative(spec: str | Path, device: str = "cpu", dtype: str = "float32") -> Generative:
    """Load a model that answers questions about images in text: an embedded name, a LLaVA folder or hub name.

    >>> model = open_generative("phantom-llava")
    >>> model.name, model.family
    ('phantom-llava', 'llava')
    >>> open_generative("phantom-clip")
    Traceback (most recent call last):
    surgeval.errors.BadInput: 'phantom-clip' is a contrastive model (clip); this needs a generative one such as LLaVA
    """
    model = open_model(spec, device, dtype)
    if not isinstance(model, Generative):
        raise BadInput(f"{os.fspath(spec)!r} is a contrastive model ({model.family}); this needs a generative one such "
                       "as LLaVA")  # fmt: skip
    return model


def open_model(spec: str | Path, device: str = "cpu", dtype: str = "float32") -> Contrastive | Generative:
    """Load a contrastive or a generative model, named as for `open_contrastive` and `open_generative`.

    >>> open_model("phantom-clip").family
    'clip'
    """
    parsed = parse_spec(os.fspath(spec))
    if dtype not in ("float32", "bfloat16"):
        raise BadInput(f"Unknown dtype {dtype!r}. Use float32 or bfloat16.")
    family = FAMILIES[parsed.family] if parsed.family else None
    if family is None or FAMILIES.is_builtin(family.name):
        require_packages()
    elif family.model_type is None:
        return family.open(parsed.place, parsed.text, dtype, **parsed.options).to(device)
    return _open(parsed, family, dtype).to(device)


def require_packages(feature: str = "models") -> None:
    """Raise `MissingExtra` if torch, transformers or another package of the extra `models` is not installed."""
    for name in MODEL_PACKAGES:
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise MissingExtra(feature, name) from error


def _open(spec: ModelSpec, family: ModelFamily | None, dtype: str) -> Contrastive | Generative:
    """Open the model that a name stands for; without a family, config.json or the kind of file decides."""
    if spec.place in embedded_names("contrastive", "generative") and not spec.family:
        return _open_folder(EMBEDDED[spec.place].path, spec, None, dtype)
    if spec.place in embedded_names("detector") and not os.path.exists(spec.place):  # noqa: PTH110 (as below)
        raise BadInput(f"{spec.text!r} is a detector; this needs a model that scores prompts or generates text.")
    path = Path(spec.place)
    exists = os.path.exists(path)  # noqa: PTH110 (`Path.exists` raises for overlong names)
    if exists and path.is_file() and _belongs_to_folder(path):
        raise BadInput(f"model {spec.text!r}: this is one file of a transformers folder. Give the folder: "
                       f"{path.parent}")  # fmt: skip
    if family is None and exists and path.is_file():
        family = SURGVLP
    if family is not None and family.model_type is None:
        return family.open(path, spec.text, dtype, **spec.options)
    if spec.options:
        raise BadInput(f"model {spec.text!r}: ?{next(iter(spec.options))}= is for checkpoint files, not for folders")
    if not exists:
        known = (*embedded_names("contrastive", "generative"), *FAMILIES.plugins())
        path = hub_folder(spec.place, _HUB_FILES, text=spec.text, others=known)
    if not path.is_dir():
        raise BadInput(f"model {spec.text!r}: this is a file. Give a transformers folder.")
    return _open_folder(path, spec, family, dtype)


def _belongs_to_folder(path: Path) -> bool:
    """Whether the file is a part of a transformers folder and not a checkpoint by itself."""
    known = path.name in ("config.json", "pytorch_model.bin", "model.safetensors.index.json")
    return path.suffix == ".safetensors" or (known and (path.parent / "config.json").is_file())


def _open_folder(folder: Path, spec: ModelSpec, family: ModelFamily | None, dtype: str) -> Contrastive | Generative:
    path = folder / "config.json"
    model_type = read_json_object(path, limit=_CONFIG_LIMIT).get("model_type")
    families = [family] if family else list(FAMILIES.load_all().values())
    for one in families:
        if one.model_type and one.model_type == model_type:
            return one.open(folder, spec.text, dtype)
    # Models that cut an image into tiles or pieces of any size (qwen2_vl, llava_next …) are recognised by their names.
    known = ", ".join(dict.fromkeys(one.model_type for one in families if one.model_type))
    sentence = f"expected {'one of ' if ', ' in known else ''}{known}, got {format_value(model_type)}"
    raise DataError(path, sentence, field="model_type", code="wrong-value")


def hub_folder(
    name: str,
    files: Sequence[str],
    *,
    repo_type: Literal["model", "dataset"] = "model",
    text: str = "",
    others: Sequence[str] = (),
) -> Path:
    """Download a model or dataset OWNER/NAME of the Hugging Face hub and return its folder in the hub client's cache.

    `files` are patterns of the files to fetch: data, never code. `text` is what the user wrote, `others` are the names
    that would have been understood as well; both are for the error message.

    >>> hub_folder("no-such-folder", ["*.safetensors"])
    Traceback (most recent call last):
    surgeval.errors.BadInput: model 'no-such-folder': no such file or folder, and not a hub name OWNER/NAME
    """
    what = f"{repo_type} {text or name!r}"
    if not _HUB_NAME.fullmatch(name):
        known = f". Embedded models: {', '.join(others)}" if others else ""
        meant = did_you_mean(text or name, others)
        raise BadInput(f"{what}: no such file or folder, and not a hub name OWNER/NAME{known}{meant}")
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError
    except ImportError as error:
        raise MissingExtra(what, error.name or "huggingface_hub") from None
    failures: tuple[type[Exception], ...] = (OSError, ValueError, *HfHubHTTPError.__bases__)  # its HTTP client's own
    try:
        return Path(snapshot_download(name, repo_type=repo_type, allow_patterns=list(files)))
    except failures as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise BadInput(f"{what}: no such folder, and the hub could not provide it: "
                       f"{printable(reason)[:_LONGEST_REASON]}") from error  # fmt: skip
