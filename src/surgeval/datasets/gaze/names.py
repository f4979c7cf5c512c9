"""Names of recordings that lost their end: EyeGaze holds DICOM ids without their last five digits."""

from __future__ import annotations

import re
from collections.abc import Iterable

from surgeval.errors import BadInput

__all__ = ["match_names", "whole_ids"]

CUT = 5  # characters that a name may lack
_DICOM_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{8}){4}")


def whole_ids(names: Iterable[str]) -> set[str]:
    """The names that are complete DICOM ids of MIMIC-CXR: a cut one may stand for one of them."""
    return {name for name in names if _DICOM_ID.fullmatch(name)}


def match_names(names: Iterable[str], known: Iterable[str]) -> dict[str, str]:
    """For each name the known name it stands for: the same, or the only one of which it lacks the last five characters.

    A name that stands for no known one stays as it is; one that could stand for two is an error.

    >>> match_names(["0a1b2c3d-4e5", "0a1b2c3d-4e5f6071"], ["0a1b2c3d-4e5f6071", "77777777-88888888"])
    {'0a1b2c3d-4e5': '0a1b2c3d-4e5f6071', '0a1b2c3d-4e5f6071': '0a1b2c3d-4e5f6071'}
    """
    whole = set(known)
    by_start: dict[str, list[str]] = {}
    for name in sorted(whole):
        by_start.setdefault(name[:-CUT], []).append(name)
    meant = {}
    for name in names:
        candidates = [] if name in whole else by_start.get(name, [])
        if len(candidates) > 1:
            raise BadInput(f"recording {name}: found {' and '.join(candidates[:2])} that start so, expected only one")
        meant[name] = candidates[0] if candidates else name
    return meant
