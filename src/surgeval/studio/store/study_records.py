"""What comes out of reviews and of the agreement study; all frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from surgeval.studio.segments import Segment

__all__ = ["Decision", "Round", "Study", "StudyAnswer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamped:
    """Who said it, and when."""

    author: str = ""
    time: float = 0.0


@dataclass(frozen=True, slots=True)
class Round(Stamped):
    """A round of review and who is to see every frame in it."""

    number: int
    title: str = ""
    reviewers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Study(Stamped):
    """An agreement study: the segments that its annotators are shown, and the seed that they were drawn with."""

    id: str
    title: str
    group: str
    annotators: tuple[str, ...]
    segments: tuple[Segment, ...]
    seed: int


@dataclass(frozen=True, slots=True)
class StudyAnswer:
    """What an annotator said of an instance without seeing its label; an empty name: no class said."""

    annotator: str
    instance: str
    name: str
    values: Mapping[str, str]
    version: int = 0


@dataclass(frozen=True, slots=True)
class Decision(Stamped):
    """Who decided what of an instance on which people differ, and when; the last of several holds."""

    instance: str
    number: int
    choice: str  # keep, annotator or other
    annotator: str
    name_before: str
    values_before: Mapping[str, str]
    name_after: str
    values_after: Mapping[str, str]
    note: str
    video: str = ""
    frame: int = -1
