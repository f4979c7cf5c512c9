"""Which videos a fold learns from, is stopped by and is tested on: published folds, sources, or splits of your own.

Every video is tested at most once, by a model that never saw it; so one table of predictions serves all folds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from surgeval.datasets import Sources, name_sources
from surgeval.errors import BadInput
from surgeval.files import read_json_object, safe_name
from surgeval.records import Video
from surgeval.vocab import Split, fold_names, folds

__all__ = ["Fold", "Scheme", "SchemeSpec", "choose_folds"]

SchemeSpec: TypeAlias = str | Path | Mapping[str, Any]
_LIMIT = 10_000_000
_PARTS = ("train", "val", "test")
_TAKEN = ("mean", "std")


@dataclass(frozen=True, slots=True)
class Fold:
    """One training: its videos for learning, for validation (may be none) and for the test."""

    name: str
    train: tuple[str, ...]
    val: tuple[str, ...]
    test: tuple[str, ...]

    @property
    def folder(self) -> str:
        """Its name as a folder.

        >>> Fold("PSI/AVA", ("a",), (), ("b",)).folder
        'PSI-AVA'
        """
        return safe_name(self.name)

    def to_json(self) -> dict[str, list[str]]:
        """Plain values; a file of these is a scheme."""
        return {part: list(getattr(self, part)) for part in _PARTS}


@dataclass(frozen=True, slots=True)
class Scheme:
    """The folds; `sources` are left out one by one."""

    name: str
    kind: Literal["folds", "sources"]
    folds: tuple[Fold, ...]
    notes: tuple[str, ...] = ()

    def fold(self, name: str) -> Fold:
        """The fold of this name."""
        for fold in self.folds:
            if fold.name == name:
                return fold
        raise BadInput(f"fold {name!r}: expected one of {', '.join(fold.name for fold in self.folds)}")

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"name": self.name, "kind": self.kind, "folds": {fold.name: fold.to_json() for fold in self.folds}}


def choose_folds(videos: Sequence[Video], scheme: SchemeSpec, sources: Sources | None = None) -> Scheme:
    """The folds of a scheme over the videos of a dataset.

    `scheme` is a published name (`prostatd`, `prostatd-noval`, `cholect50-cv` …), `sources` (leave one source out),
    `videos` (leave one video out), `split` (the dataset's own), or a JSON file or mapping of folds: test videos, or
    `{"train": …, "val": …, "test": …}`, where `train` is by default every other video. `sources` says which videos are
    of which source, where the dataset does not: as `name_sources`.

    >>> four = [Video(name, source=name[0]) for name in ("A1", "A2", "B1", "B2")]
    >>> [(fold.name, fold.train) for fold in choose_folds(four, "sources").folds]
    [('A', ('B1', 'B2')), ('B', ('A1', 'A2'))]
    >>> choose_folds(four, {"first": {"test": ["A1"], "val": ["B2"]}}).fold("first").train
    ('A2', 'B1')
    """
    if not videos:
        raise BadInput("dataset: found no videos, expected at least two")
    names = tuple(video.name for video in videos)
    if sources is not None and scheme != "sources":
        raise BadInput("sources: used only with the folds named sources, which leave one source out.")
    notes: tuple[str, ...] = ()
    if scheme == "sources":
        chosen_scheme = Scheme("leave one source out", "sources", _by_source(name_sources(videos, sources)))
    elif scheme == "videos":
        chosen_scheme = Scheme("leave one video out", "folds", tuple(_rest(name, names, (name,)) for name in names))
    elif scheme == "split":
        chosen_scheme = Scheme("the dataset's split", "folds", (_own_split(videos),))
    elif isinstance(scheme, str) and scheme in fold_names():
        parts_of = {fold: _present(part, names) for fold, part in folds(scheme).items()}
        absent = sum(count for _, count in parts_of.values())
        notes = (f"{absent} training and validation videos of the scheme {scheme} are not in the dataset",) * bool(
            absent
        )
        chosen_scheme = Scheme(
            scheme, "folds", tuple(Fold(fold, *parts) for fold, (parts, _) in parts_of.items()), notes
        )
    else:
        chosen_scheme = _own(names, scheme)
    _check(chosen_scheme, names)
    return chosen_scheme


def _rest(name: str, names: Sequence[str], test: Sequence[str], val: Sequence[str] = ()) -> Fold:
    """A fold that learns from every other video."""
    return Fold(name, tuple(video for video in names if video not in (*test, *val)), tuple(val), tuple(test))


def _by_source(videos: Sequence[Video]) -> tuple[Fold, ...]:
    nameless = next((video.name for video in videos if not video.source), None)
    if nameless is not None:
        raise BadInput(
            f"folds sources: video {nameless} has no source. Name sources by video: sources PATTERN=NAME, or a file."
        )
    names = [video.name for video in videos]
    sources = dict.fromkeys(str(video.source) for video in videos)
    return tuple(_rest(source, names, [video.name for video in videos if video.source == source]) for source in sources)


def _own_split(videos: Sequence[Video]) -> Fold:
    parts = {part: tuple(video.name for video in videos if video.split == part) for part in _PARTS}
    if not parts["test"]:  # a set that is published without its test part
        parts = {"train": parts["train"], "val": (), "test": parts["val"]}
    return Fold("split", parts["train"], parts["val"], parts["test"])


def _present(part: Split, names: Sequence[str]) -> tuple[tuple[tuple[str, ...], ...], int]:
    """The videos of a published fold that are there; test videos must be, and how many others are absent."""
    present = [tuple(video for video in some if video in names) for some in (part.train, part.val)]
    return (*present, part.test), len(part.train) + len(part.val) - len(present[0]) - len(present[1])


def _own(names: Sequence[str], scheme: SchemeSpec) -> Scheme:
    if isinstance(scheme, Mapping):
        title, table = "own folds", dict(scheme)
    else:
        path = Path(scheme)
        if not path.is_file():
            known = ", ".join((*fold_names(), "sources", "videos", "split"))
            raise BadInput(f"folds {scheme}: found neither name nor file, expected {known} or a JSON file")
        title, table = path.name, read_json_object(path, limit=_LIMIT, distinct=True)
    return Scheme(title, "folds", tuple(_own_fold(title, fold, value, names) for fold, value in table.items()))


def _own_fold(title: str, fold: str, value: Any, names: Sequence[str]) -> Fold:
    parts = value if isinstance(value, Mapping) else {"test": value}
    lists: dict[str, tuple[str, ...]] = {}
    for key, some in parts.items():
        texts = isinstance(some, list | tuple) and all(isinstance(name, str) and name for name in some)
        if key not in _PARTS or not texts:
            found = json.dumps({str(key): some}, default=str)[:60]
            where = f"folds {title}: fold {fold[:60]}"
            raise BadInput(f"{where}: found {found}, expected lists of videos: train, val, test")
        lists[key] = tuple(some)
    test, val = lists.get("test", ()), lists.get("val", ())
    return Fold(fold, lists["train"], val, test) if "train" in lists else _rest(fold, names, test, val)


def _check(scheme: Scheme, names: Sequence[str]) -> None:
    """Refuse a scheme in which a model is tested on what it learned from, or that names unknown videos."""
    if not scheme.folds:
        raise BadInput(f"folds {scheme.name}: found no fold, expected at least one")
    tested: dict[str, str] = {}
    reserved = next((fold.name for fold in scheme.folds if fold.name in _TAKEN), None)
    if reserved is not None:
        raise BadInput(f"folds {scheme.name}: found a fold named {reserved}, expected another name: tables end with it")
    for fold in scheme.folds:
        where = f"folds {scheme.name}: fold {fold.name[:60]}"
        every = (*fold.train, *fold.val, *fold.test)
        unknown = [name for name in every if name not in names]
        if unknown:
            raise BadInput(f"{where}: found no video {', '.join(unknown[:5])} in the dataset, expected all of them")
        for part in ("test", "train"):
            if not getattr(fold, part):
                raise BadInput(f"{where}: found no {part} video, expected at least one")
        twice = _twice(every)
        if twice is not None:
            raise BadInput(f"{where}: found video {twice} twice, expected it in one of train, val and test")
        for name in fold.test:
            if name in tested:
                raise BadInput(f"{where}: found test video {name} in fold {tested[name]} too, expected it in one fold")
            tested[name] = fold.name
    if _twice(fold.folder for fold in scheme.folds) is not None:
        raise BadInput(f"folds {scheme.name}: found two folds whose names are one as folders, expected different names")


def _twice(names: Iterable[str]) -> str | None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None
