"""Which videos are scored together: all of them, the test videos of each fold, or each source alone.

One prediction file serves every scheme: in a cross-validation each video's predictions come from the model that did
not see it, so a fold is scored on its own test videos and never ranked together with another fold's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from surgeval.errors import BadInput, DataError
from surgeval.files import read_json_object
from surgeval.records import Video
from surgeval.vocab import fold_names, folds

__all__ = ["Folds", "Group", "VideoGroups", "choose_videos"]

Folds: TypeAlias = str | Path | Mapping[str, Sequence[str]]
_MAX_BYTES = 10_000_000


@dataclass(frozen=True, slots=True)
class Group:
    """Videos whose predictions are ranked together, and the videos their model learned from, where known."""

    name: str
    videos: tuple[str, ...]
    train: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class VideoGroups:
    """The groups; a headline number is the mean over them."""

    kind: Literal["all", "folds", "sources"]
    name: str
    groups: tuple[Group, ...]

    @property
    def videos(self) -> tuple[str, ...]:
        """Every scored video once."""
        return tuple(dict.fromkeys(video for group in self.groups for video in group.videos))

    def to_json(self) -> dict[str, Any]:
        """What two scores must share to be compared."""
        return {"kind": self.kind, "groups": {group.name: list(group.videos) for group in self.groups}}


def choose_videos(
    videos: Sequence[Video], *, split: str | None = None, folds: Folds | None = None, leave_source_out: bool = False
) -> VideoGroups:
    """The scheme that the options ask for.

    >>> both = [Video("v1", source="A", split="test"), Video("v2", source="B", split="train")]
    >>> choose_videos(both, split="test").videos
    ('v1',)
    >>> [group.name for group in choose_videos(both, leave_source_out=True).groups]
    ['A', 'B']
    """
    if folds is not None and (split is not None or leave_source_out):
        other = "split" if split is not None else "leave_source_out"
        raise BadInput(f"folds and {other}: expected one of them, because folds name the scored videos themselves")
    if not videos:
        raise BadInput("dataset: found no videos, expected at least one")
    if folds is not None:
        return _by_folds(videos, folds)
    selected = [video for video in videos if split is None or video.split == split]
    if not selected:
        known = sorted({video.split for video in videos if video.split})
        raise BadInput(f"split {split}: found no such video, expected one of {', '.join(known) or 'no split at all'}")
    if leave_source_out:
        return _by_source(selected, videos)
    train = tuple(video.name for video in videos if video.split == "train")
    return VideoGroups("all", split or "all", (Group(split or "all", tuple(video.name for video in selected), train),))


def _by_source(selected: Sequence[Video], videos: Sequence[Video]) -> VideoGroups:
    nameless = next((video.name for video in selected if not video.source), None)
    if nameless is not None:
        raise BadInput(
            f"leave_source_out: video {nameless} has no source. Name sources by video: sources PATTERN=NAME, or a file."
        )
    sources = dict.fromkeys(video.source for video in selected)
    if len(sources) < 2:
        raise BadInput(f"leave_source_out: found only source {next(iter(sources))}, expected at least two")
    groups = [
        Group(
            source,
            tuple(video.name for video in selected if video.source == source),
            tuple(video.name for video in videos if video.source != source),
        )
        for source in sources
    ]
    return VideoGroups("sources", "leave one source out", tuple(groups))


def _by_folds(videos: Sequence[Video], asked: Folds) -> VideoGroups:
    if isinstance(asked, Mapping):
        name, table = "own folds", {fold: Group(fold, tuple(tests)) for fold, tests in asked.items()}
    elif str(asked) in fold_names():
        name = str(asked)
        table = {fold: Group(fold, part.test, part.train) for fold, part in folds(name).items()}
    else:
        name, table = Path(asked).name, _read_folds(Path(asked))
    if not table:
        raise BadInput(f"folds {name}: found no fold, expected at least one")
    known = {video.name for video in videos}
    for group in table.values():
        missing = [video for video in group.videos if video not in known]
        if missing or not group.videos:
            found = f"no video {', '.join(missing[:5])} in the dataset" if missing else "no test video"
            expected = f"all {len(group.videos)} test videos of the fold" if missing else "at least one"
            raise BadInput(f"folds {name}: fold {group.name}: found {found}, expected {expected}")
    return VideoGroups("folds", name, tuple(table.values()))


def _read_folds(path: Path) -> dict[str, Group]:
    """A file of folds: `{"fold1": ["VID01", …]}`, or `{"fold1": {"train": […], "test": […]}}`."""
    if not path.is_file():
        raise BadInput(f"folds {path}: found neither name nor file, expected {', '.join(fold_names())} or a JSON file")
    data = read_json_object(path, limit=_MAX_BYTES, distinct=True)
    return {fold: _read_fold(path, fold, value) for fold, value in data.items()}


def _read_fold(path: Path, fold: str, value: Any) -> Group:
    parts = value if isinstance(value, dict) else {"test": value}
    lists: dict[str, tuple[str, ...]] = {}
    for key in ("test", "train"):
        names = parts.get(key, [] if key == "train" else None)
        if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
            raise DataError(
                path,
                f"found {json.dumps(names)[:60]}, expected a list of videos",
                record=f"fold {fold[:60]}",
                field=key,
            )
        if len(set(names)) != len(names):
            raise DataError(
                path, "found a video twice, expected each video once", record=f"fold {fold[:60]}", field=key
            )
        lists[key] = tuple(names)
    return Group(fold, lists["test"], lists["train"])
