"""The models that ship with surgeval: small real networks, trained on the phantom, whose faults are known.

Their weights are package data; each is an ordinary model folder that the ordinary loaders open.
"""

from __future__ import annotations

from pathlib import Path

from surgeval.errors import BadInput

__all__ = ["EMBEDDED", "EMBEDDED_DETECTORS", "EMBEDDED_GENERATIVE", "embedded_detector", "embedded_folder"]

EMBEDDED = {
    "phantom-clip": "a small CLIP (ViT) that looks at the instruments",
    "phantom-clip-resnet": "the same with a residual image tower, for Grad-CAM",
    "phantom-shortcut": "a small CLIP that reads the tissue's tint instead: right for the wrong reason",
}
EMBEDDED_GENERATIVE = {
    "phantom-llava": "a small LLaVA that looks at the picture before it answers",
    "phantom-sycophant": "the same, taught to agree with what a question presumes",
}
EMBEDDED_DETECTORS = {
    "tdnet-p": "a small TDnet that finds the phantom's instruments and what they do",
}
_WEIGHTS = Path(__file__).parent / "weights"


def embedded_folder(name: str) -> Path:
    """The folder of an embedded model.

    >>> embedded_folder("phantom-clip").name
    'phantom-clip'
    >>> embedded_folder("phantom-eye")
    Traceback (most recent call last):
    surgeval.errors.BadInput: model 'phantom-eye': expected one of phantom-clip, phantom-clip-resnet, phantom-shortcut,
    phantom-llava, phantom-sycophant
    """
    if name not in EMBEDDED | EMBEDDED_GENERATIVE:
        raise BadInput(f"model {name!r}: expected one of {', '.join(EMBEDDED | EMBEDDED_GENERATIVE)}")
    folder = _WEIGHTS / name
    if not (folder / "config.json").is_file():
        raise BadInput(f"model {name}: found no weights in this installation, expected {folder.name}/config.json "
                       "among the package's data")  # fmt: skip
    return folder


def embedded_detector(name: str) -> Path:
    """The file of an embedded detector.

    >>> embedded_detector("tdnet-p").name
    'detector.safetensors'
    >>> embedded_detector("tdnet-xl")
    Traceback (most recent call last):
    surgeval.errors.BadInput: detector 'tdnet-xl': expected one of tdnet-p
    """
    if name not in EMBEDDED_DETECTORS:
        raise BadInput(f"detector {name!r}: expected one of {', '.join(EMBEDDED_DETECTORS)}")
    return _WEIGHTS / name / "detector.safetensors"
