"""Official splits of the public datasets, by video name."""

from __future__ import annotations

import re
from dataclasses import dataclass

from surgeval.errors import BadInput, did_you_mean
from surgeval.vocab.packaged import packaged


@dataclass(frozen=True, slots=True)
class Split:
    """Videos of one split or one cross-validation fold."""

    train: tuple[str, ...]
    val: tuple[str, ...]
    test: tuple[str, ...]


def fold_names() -> tuple[str, ...]:
    """The published schemes: single splits have one entry, cross-validations one per fold.

    >>> fold_names()[:2]
    ('cholect50', 'cholect50-challenge')
    """
    return ("cholect50", "cholect50-challenge", "cholect45-cv", "cholect50-cv", "prostatd", "prostatd-noval")


def folds(name: str) -> dict[str, Split]:
    """The folds of a scheme, by fold name.

    >>> folds("cholect50-cv")["1"].test[:3]
    ('VID79', 'VID02', 'VID51')
    >>> sorted(folds("prostatd")["fold1"].test)
    ['esadv1', 'psiv1', 'psiv4', 'pwhv8']
    """
    data = packaged("splits")
    if name in ("cholect50", "cholect50-challenge"):
        part = data[name]
        return {"official": Split(_vid(part["train"]), _vid(part["val"]), _vid(part["test"]))}
    if name in ("cholect45-cv", "cholect50-cv"):
        table = data[name.replace("-cv", "-crossval")]
        return {fold: _crossval(table, fold) for fold in table}
    if name in ("prostatd", "prostatd-noval"):
        result = {}
        for fold, part in data["prostatd_5fold"].items():
            train, val, test = (tuple(part[key]) for key in ("train", "val", "test"))
            # The authors' repository recommends training on the validation videos too.
            result[fold] = Split(train, val, test) if name == "prostatd" else Split(train + val, (), test)
        return result
    known = fold_names()
    raise BadInput(f"folds {name!r}: expected one of {', '.join(known)}{did_you_mean(name, known)}")


_PROSTATD = re.compile(r"(esad|psi|pwh)v\d+")
_SOURCES = {"esad": "ESAD", "psi": "PSI-AVA", "pwh": "PWH"}


def source_of(video: str) -> str:
    """The source of a video of ProstaTD, which its name begins with; '' for any other name.

    >>> source_of("psiv14"), source_of("VID01")
    ('PSI-AVA', '')
    """
    match = _PROSTATD.fullmatch(video)
    return _SOURCES[match[1]] if match else ""


def _vid(numbers: list[int]) -> tuple[str, ...]:
    return tuple(f"VID{number:02d}" for number in numbers)


def _crossval(table: dict[str, list[int]], fold: str) -> Split:
    rest = [number for other, numbers in table.items() if other != fold for number in numbers]
    return Split(_vid(rest[:-5]), _vid(rest[-5:]), _vid(table[fold]))
