"""What there is to look at in a run: predictions with their maps, frames with a region hidden, what moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from surgeval.arrays import Image
from surgeval.figures import FlowPipeline

__all__ = ["NO_EXTRAS", "Extras", "Hiding", "Item"]


@dataclass(frozen=True, eq=False)
class Item:
    """One prediction to look at."""

    picture: Image | bytes  # the frame with its boxes, beside it with map, region and motion; as stored: a JPEG
    video: str
    frame: str
    predicted: str
    present: tuple[str, ...]
    score: float
    ac: float | None
    aa: float | None
    chance: float | None
    right: bool
    grounded: bool | None
    flags: str

    @property
    def kind(self) -> str:
        """The cell of the right × grounded table."""
        state = "no map" if self.grounded is None else "grounded" if self.grounded else "ungrounded"
        return f"{'right' if self.right else 'wrong'} · {state}"


@dataclass(frozen=True, eq=False)
class Hiding:
    """A complete triplet match, and the top prompts before and after its attended region was hidden."""

    picture: Image | bytes  # the frame, and the frame without the region
    video: str
    frame: str
    truth: str
    before: tuple[tuple[str, float], ...]  # prompt and score, best first
    after: tuple[tuple[str, float], ...]

    @property
    def kept(self) -> bool:
        """Whether the triplet is still among the top prompts."""
        return self.truth in (prompt for prompt, _ in self.after)

    def outcome(self, labelled: Sequence[str]) -> str:
        """What hiding did to the matches of a frame with these labelled triplets."""
        if self.kept:
            return "complete match kept"
        others = any(prompt in labelled for prompt, _ in self.after)
        return "complete match of another triplet kept" if others else "no complete match left"


@dataclass(frozen=True, eq=False)
class Extras:
    """The paper's Figures 6 and 2 for one model."""

    hidings: tuple[Hiding, ...] = ()
    flow: FlowPipeline | None = None


NO_EXTRAS = Extras()
