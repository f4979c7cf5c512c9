"""A dataset that lives in memory: what a reader would yield, without files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, TypeAlias

import pytest

from surgeval.datasets import OnProblem, raise_errors
from surgeval.records import Box, Frame, Instance, Question, Triplet, Video
from surgeval.vocab import LabelSpace

SPACE = LabelSpace(
    "toy",
    ("grasper", "hook"),
    ("grasp", "dissect"),
    ("liver", "gallbladder"),
    ((0, 0, 0), (0, 0, 1), (1, 1, 1)),
    ("preparation", "dissection"),
)


TENTH = Box(0, 0, 20, 50)  # of a frame of 100 × 100


@dataclass
class MemoryDataset:
    """Videos with frames and questions."""

    content: Mapping[Video, Iterable[Frame]]
    space: LabelSpace = SPACE
    root: Path = Path("toy")
    asked: Sequence[Question] = ()
    format: ClassVar[str] = "memory"

    def videos(self, on_problem: OnProblem = raise_errors) -> tuple[Video, ...]:
        return tuple(self.content)

    def frames(self, video: str, on_problem: OnProblem = raise_errors) -> Iterator[Frame]:
        for known, frames in self.content.items():
            if known.name == video:
                yield from frames

    def questions(self, on_problem: OnProblem = raise_errors) -> Iterator[Question]:
        yield from self.asked


Make: TypeAlias = Callable[..., MemoryDataset]
Moment: TypeAlias = Callable[..., Frame]


@pytest.fixture(scope="session")
def make() -> Make:
    """The dataset's class."""
    return MemoryDataset


@pytest.fixture(scope="session")
def moment() -> Moment:
    """A frame at a second, holding these triplets; each with a box of 10 % of the frame unless `box` says otherwise."""

    def build(
        time: float | None,
        *triplets: tuple[int, int, int],
        phase: int | None = None,
        labelled: bool = True,
        box: Box | None = TENTH,
    ) -> Frame:
        instances = tuple(Instance(Triplet(*triplet), box) for triplet in triplets)
        name = "x" if time is None else f"{time:06.1f}"
        return Frame("v", name, 0, time, None, 100, 100, instances, labelled, phase)

    return build
