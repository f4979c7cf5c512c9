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
    surgeval.errors.BadInput: device: found 'meta', which torch does not offer here, expected cpu, cuda, …
    """
    try:
        device = torch.device(name)
        float(torch.ones(1, device=device).sum())  # fails on `meta` too: there is nothing to read back
    except (RuntimeError, AssertionError, ImportError) as error:
        raise BadInput(f"device: found {name!r}, which torch does not offer here, expected cpu, cuda, …") from error
    return device
