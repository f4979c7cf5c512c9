"""`Classes`: what a detector can say, head by head, taken from a label space."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from surgeval.arrays import Ints
from surgeval.errors import BadInput, DataError
from surgeval.vocab import LabelSpace

__all__ = ["TASKS", "Classes", "Task"]

Task: TypeAlias = Literal["triplets", "instruments"]
TASKS: tuple[Task, ...] = ("triplets", "instruments")


@dataclass(frozen=True, eq=False)
class Classes:
    """The classes of each head of a detector; `main` is the head that decides what a box is.

    >>> from surgeval.vocab import load_labels
    >>> classes = Classes.of(load_labels("prostatd"))
    >>> classes.main, classes.counts
    ('ivt', {'ivt': 89, 'i': 7, 'v': 10, 't': 10})
    >>> Classes.of(load_labels("cholec80")).counts
    {'i': 7}
    """

    space: LabelSpace
    task: Task

    def __post_init__(self) -> None:
        if self.task not in TASKS:
            raise BadInput(f"task: found {self.task!r}, expected one of {', '.join(TASKS)}")
        if self.task == "triplets" and not self.space.triplets:
            raise BadInput(f"label space {self.space.name}: found no triplets, expected some for the task triplets")
        if not self.space.instruments:
            raise BadInput(f"label space {self.space.name}: found no instruments, expected at least one")

    @classmethod
    def of(cls, space: LabelSpace, task: Task | None = None) -> Classes:
        """The classes of a label space; without a task: triplets where the space has some, else instruments.

        >>> from surgeval.vocab import load_labels
        >>> Classes.of(load_labels("phantom"), "instruments").heads["i"][:2]
        ('grasper', 'bipolar')
        """
        return cls(space, task or ("triplets" if space.triplets else "instruments"))

    @property
    def main(self) -> str:
        """The head that names a box: `ivt`, or `i` where only instruments are detected."""
        return "ivt" if self.task == "triplets" else "i"

    @cached_property
    def heads(self) -> Mapping[str, tuple[str, ...]]:
        """Class names by head, the main head first."""
        if self.task == "instruments":
            return {"i": self.space.instruments}
        space = self.space
        return {"ivt": space.triplet_names, "i": space.instruments, "v": space.verbs, "t": space.targets}

    @property
    def counts(self) -> dict[str, int]:
        """Number of classes by head, the main head first."""
        return {head: len(names) for head, names in self.heads.items()}

    @cached_property
    def parts(self) -> Ints:
        """(classes of the main head, 3): instrument, verb and target id of each; −1 where it says nothing of it.

        >>> from surgeval.vocab import load_labels
        >>> Classes.of(load_labels("cholec80")).parts[:2].tolist()
        [[0, -1, -1], [1, -1, -1]]
        """
        if self.task == "triplets":
            table = np.asarray(self.space.triplets, dtype=np.int64).reshape(-1, 3)
        else:
            table = np.full((len(self.space.instruments), 3), -1, dtype=np.int64)
            table[:, 0] = np.arange(len(table))
        table.setflags(write=False)
        return table

    def to_json(self) -> dict[str, Any]:
        """What `from_json` reads back."""
        return {"task": self.task, "space": self.space.to_json()}

    @classmethod
    def from_json(cls, data: object, file: str | Path = "classes") -> Classes:
        """Classes from parsed JSON of a stranger; `file` is named when something is wrong with it.

        >>> from surgeval.vocab import load_labels
        >>> classes = Classes.of(load_labels("phantom"))
        >>> Classes.from_json(classes.to_json()) == classes
        True
        """
        if not isinstance(data, dict):
            raise DataError(file, f"found a {type(data).__name__}, expected an object", field="classes")
        task = data.get("task")
        if task not in TASKS:
            raise DataError(file, f"found {repr(task)[:80]}, expected one of {', '.join(TASKS)}", field="task")
        try:
            return cls(LabelSpace.from_json(data.get("space"), file), task)
        except BadInput as error:
            raise DataError(
                file,
                f"found what makes no detector ({error}), expected a label space with classes for its task",
                field="classes",
            ) from None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Classes) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash((self.task, self.space.name, self.space.instruments, self.space.triplets))
