"""What `surgeval explain` can be told, in the order of its help."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from surgeval.console.commands import Help
from surgeval.console.panels import CAUSES, MAPS

__all__ = ["ExplainOptions"]

MapName: TypeAlias = Literal["auto", "rollout", "gradcam", "cross", "token-gradcam"]
WordsName: TypeAlias = Literal["mean", "first", "max"]  # how the maps of a name's tokens become one
LearnerName: TypeAlias = Literal["ordered", "icd"]
HeadRuleName: TypeAlias = Literal["image_over_text", "max_image"]
SinkName: TypeAlias = Literal["keep", "remove", "centre"]


@dataclass(frozen=True, kw_only=True)
class ExplainOptions:
    """The options of `explain`."""

    image: Annotated[Path, Help("An image file.", argument=True)]
    model: Annotated[str, Help("As in `surgeval models list`.")]
    prompt: Annotated[list[str], Help("What to look for, or what to ask (repeatable).")]
    out: Annotated[Path | None, Help("The picture. Default: IMAGE-heatmap.png in this folder.")] = None
    method: Annotated[MapName, Help("Default: what the tower allows.", MAPS)] = "auto"
    order: Annotated[str, Help("Rollout: chefer or seed.", MAPS)] = "chefer"
    start_layer: Annotated[int, Help("Rollout: first block; -1 = the last only.", MAPS)] = 0
    score_scale: Annotated[str, Help("cosine, logits or a factor.", MAPS)] = "cosine"
    words: Annotated[WordsName, Help("A word of several tokens: their mean map, the first, the maximum.", MAPS)] = (
        "mean"
    )
    keep_top: Annotated[float, Help("Share of pixels outlined as attended.", MAPS)] = 0.2
    max_tokens: Annotated[int, Help("Of a reply, at most.", least=1, most=512)] = 64
    causal: Annotated[bool, Help("Causal graphs behind each generated token, in place of heatmaps.", CAUSES)] = False
    box: Annotated[list[str] | None, Help("The relevant area: x1,y1,x2,y2 in pixels (repeatable).", CAUSES)] = None
    heads: Annotated[int, Help("Heads per token: those most on the image.", CAUSES, least=1)] = 5
    radius: Annotated[int, Help("Steps from the token in its graph.", CAUSES, least=1)] = 3
    learner: Annotated[LearnerName, Help("The order of the tokens is causal, or not.", CAUSES)] = "ordered"
    head_rule: Annotated[HeadRuleName, Help("What makes a head look at the image.", CAUSES)] = "image_over_text"
    sink: Annotated[SinkName, Help("A token that all attend to: keep, remove, centre.", CAUSES)] = "keep"
    device: str = "cpu"
    json: bool = False

    @property
    def place(self) -> Path:
        """Where the picture is written."""
        return self.out or Path(f"{self.image.stem}-{'causal' if self.causal else 'heatmap'}.png")
