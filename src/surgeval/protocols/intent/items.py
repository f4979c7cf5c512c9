"""The items of a set, and what they are to each other: competency items, traps, twins and sanitised twins."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath

from surgeval.asking import PremiseRejections
from surgeval.datasets import (
    Dataset,
    Problem,
    check_media,
    intent_record,
    keep_warnings,
    open_dataset,
    read_intent_items,
)
from surgeval.errors import BadInput, DataError, printable
from surgeval.files import holds_bytes, write_atomically
from surgeval.records import IntentQuestion

__all__ = ["ITEMS", "ItemSet", "OpenedItems", "load_items", "open_items", "rejecting_options", "save_items"]

ITEMS = "items.jsonl"  # in a run's folder: the items as they were asked


@dataclass(frozen=True)
class ItemSet:
    """Items in their order, and which clusters are for training."""

    items: tuple[IntentQuestion, ...]
    train: frozenset[str] = frozenset()

    @cached_property
    def by_id(self) -> Mapping[str, IntentQuestion]:
        """Every item by its id."""
        return {item.id: item for item in self.items}

    @cached_property
    def named(self) -> frozenset[str]:
        """The items that a trap names as its twin or sanitised twin: they measure no competency."""
        links = (name for item in self.items for name in (item.untrapped, item.twin))
        return frozenset(name for name in links if name is not None)

    @property
    def competency(self) -> tuple[IntentQuestion, ...]:
        """The items without trap that no other item names."""
        return tuple(item for item in self.items if item.trap is None and item.id not in self.named)

    @property
    def traps(self) -> tuple[IntentQuestion, ...]:
        """Perceptual and cognitive traps."""
        return tuple(item for item in self.items if item.trap is not None)

    @property
    def learnable(self) -> tuple[IntentQuestion, ...]:
        """The items of the training split; all of them where there is no such split."""
        return tuple(item for item in self.items if item.cluster in self.train) or self.items


@dataclass(frozen=True)
class OpenedItems(ItemSet):
    """Items with the dataset that holds their pictures; `warnings` are those of reading its files."""

    dataset: Dataset = field(kw_only=True)
    warnings: tuple[str, ...] = field(default=(), kw_only=True)


def open_items(data: str | Path, *, media: bool = True) -> OpenedItems:
    """The items of a file, of a folder that holds `items.jsonl`, or of a phantom; read and checked as a whole.

    With `media` the pictures have to be there.
    """
    dataset = _dataset(Path(data))
    problems: list[Problem] = []
    questions = dataset.questions(keep_warnings(problems))
    items = tuple(question for question in questions if isinstance(question, IntentQuestion))
    if not items:
        raise BadInput(f"{data}: found no multiple-choice items, expected the lines of an {ITEMS}")
    for item in items if media else ():
        check_media(dataset, item)
    train = frozenset(video.name for video in dataset.videos() if video.split == "train")
    warnings = tuple(str(problem) for problem in problems if problem.kind == "gaze-range")
    return OpenedItems(items, train, dataset=dataset, warnings=warnings)


def _dataset(path: Path) -> Dataset:
    if path.is_dir() and (path / ITEMS).is_file():
        path = path / ITEMS  # pictures beside it may look like another dataset
    if not path.is_file():
        return open_dataset(path)
    for folder in path.resolve().parents[:3]:
        own = folder / "questions" / "intent" / ITEMS
        if (folder / "phantom.json").is_file() and own.is_file() and own.samefile(path):
            return open_dataset(folder)  # which knows more of its items: scenes, and videos for training
    return open_dataset(path, "intent")


def rejecting_options(items: Sequence[IntentQuestion]) -> dict[str, int]:
    """The option that rejects the premise, by the id of each cognitive trap and of its true-premise twin.

    It is the option labelled `rejects`; without labels it is a trap's right answer, and in the twin the option of the
    same text. A twin that does not offer it is left out.

    >>> common = dict(scenario="s", cluster="v", media=(), dimension="spatial", skill="absolute", question="?")
    >>> trap = IntentQuestion("t", options=("to cut", "there is none"), answer=1, trap="cognitive", twin="u", **common)
    >>> rejecting_options([trap, IntentQuestion("u", options=("there is none", "to cut"), answer=1, **common)])
    {'t': 1, 'u': 0}
    """
    known = PremiseRejections(items)
    options = {item.id: known.option(item) for item in items}
    return {name: option for name, option in options.items() if option is not None}


def save_items(folder: Path, items: Sequence[IntentQuestion]) -> None:
    """Write the items into a run's folder; media are named from the folder that holds them all."""
    lines = []
    for item in items:
        record = intent_record(item, [_from_home(text) for text in item.media])
        lines.append(printable(json.dumps(record, ensure_ascii=False)))
    data = "".join(f"{line}\n" for line in lines).encode()
    path = folder / ITEMS
    if not holds_bytes(path, data):
        write_atomically(path, data)


def _from_home(media: str) -> str:
    """`../../frames/a.jpg` → `frames/a.jpg`: a name, not a way to the file."""
    return "/".join(part for part in PurePosixPath(media.replace("\\", "/")).parts if part != "..")


def load_items(folder: Path) -> ItemSet:
    """The items of a run, checked; their media are not needed."""
    path = folder / ITEMS
    if path.is_symlink():
        raise DataError(path, "found a link, expected the items of the run")
    return ItemSet(tuple(read_intent_items(path, root=folder)))
