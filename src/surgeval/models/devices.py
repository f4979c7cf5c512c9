"""Where a network can compute: a device is tried with one number before anything is moved to it.

torch knows the names of many devices that an installation cannot use, and one, `meta`, that keeps no numbers at all.
"""

from __future__ import annotations

import torch

from surgeval.errors import BadInput

__all__ = ["usable_device"]


def usable_device(name: str) -> torch.device:
    """The device of that name, if torch computes there.

    >>> usable_device("cpu")
    device(type='cpu')
    >>> usable_device("meta")
    Traceback (most recent call last):
    surgeval.errors.BadInput: device: found 'meta', which keeps no numbers, expected cpu...
    """
    try:
        device = torch.device(name)
        float(torch.ones(1, device=device).sum())  # fails on `meta` too: there is nothing to read back
    except (RuntimeError, AssertionError, ImportError) as error:
        raise BadInput(f"device: found {name!r}, {_why(name)}, expected {_offered()}") from error
    return device


def _why(name: str) -> str:
    """Why torch does not compute there, as far as it can be told."""
    kind, _, number = name.partition(":")
    if kind == "meta":
        return "which keeps no numbers"
    if kind == "cuda":
        if torch.version.cuda is None and torch.version.hip is None:
            return f"but this torch ({torch.__version__}) is built without CUDA"
        if not torch.cuda.is_available():
            return "but torch finds no GPU or no driver for it here"
        if number.isdecimal() and int(number) >= torch.cuda.device_count():
            return f"but this machine has {torch.cuda.device_count()} of them, counted from 0"
    if kind == "mps" and not torch.backends.mps.is_available():
        return "but torch finds no Apple GPU here"
    return "which torch does not offer here"


def _offered() -> str:
    """The devices of this machine."""
    names = ["cpu", *(f"cuda:{n}" for n in range(torch.cuda.device_count()))]
    return " or ".join([*names, *(["mps"] if torch.backends.mps.is_available() else [])])
