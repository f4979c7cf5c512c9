"""Official splits of the public datasets, by video name."""

from __future__ import annotations

import re
from dataclasses import dataclass

from surgeval.errors import BadInput, did_you_mean
from surgeval.vocab.label_space import read_packaged

__all__ = ["Split", "fold_names", "folds", "source_of"]


@dataclass(frozen=True, slots=True)
class Split:
    """Videos of one split or one cross-validation fold."""

    train: tuple[str, ...]
    val: tuple[str, ...]
    test: tuple[str, ...]


def fold_names() -> tuple[str, ...]:
    """The published schemes. A cross-validation has a split per fold, every other scheme one split.

    >>> fold_names()[:2]
    ('cholect50', 'cholect50-challenge')
    """
    return tuple(read_packaged("splits"))


def folds(name: str) -> dict[str, Split]:
    """The folds of a scheme, by fold name.

    `prostatd-noval` trains on the validation videos too, as the authors' repository recommends.

    >>> folds("cholect50-cv")["1"].test[:3]
    ('VID79', 'VID02', 'VID51')
    >>> sorted(folds("prostatd")["fold1"].test)
    ['esadv1', 'psiv1', 'psiv4', 'pwhv8']
    """
    schemes = read_packaged("splits")
    if name not in schemes:
        raise BadInput(f"Unknown folds {name!r}. Use one of {', '.join(schemes)}{did_you_mean(name, schemes)}")
    return {
        fold: Split(tuple(part["train"]), tuple(part["val"]), tuple(part["test"]))
        for fold, part in schemes[name].items()
    }


_PROSTATD = re.compile(r"(esad|psi|pwh)v\d+")
_SOURCES = {"esad": "ESAD", "psi": "PSI-AVA", "pwh": "PWH"}


def source_of(video: str) -> str:
    """The source that the name of a ProstaTD video begins with; "" for any other name.

    >>> source_of("psiv14"), source_of("VID01")
    ('PSI-AVA', '')
    """
    match = _PROSTATD.fullmatch(video)
    return _SOURCES[match[1]] if match else ""
