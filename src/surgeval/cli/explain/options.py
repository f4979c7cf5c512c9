"""What `surgeval explain` can be told, in the order of its help."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from surgeval.console.options import JsonOption, MethodOption, OrderOption, StartLayerOption, WordsName

__all__ = ["ExplainOptions"]

LearnerName: TypeAlias = Literal["ordered", "icd"]
HeadRuleName: TypeAlias = Literal["image_over_text", "max_image"]
SinkName: TypeAlias = Literal["keep", "remove", "centre"]


@dataclass(frozen=True, kw_only=True)
class ExplainOptions:
    """The options of `explain`."""

    image: Annotated[Path, typer.Argument(help="An image file.", show_default=False)]
    model: Annotated[str, typer.Option(help="As in `surgeval models list`.", show_default=False)]
    prompt: Annotated[
        list[str], typer.Option(help="What to look for, or what to ask (repeatable).", show_default=False)
    ]
    out: Annotated[Path | None, typer.Option(help="The picture. Default: IMAGE-heatmap.png in this folder.")] = None
    method: MethodOption = "auto"
    order: OrderOption = "chefer"
    start_layer: StartLayerOption = 0
    score_scale: Annotated[str, typer.Option(help="cosine, logits or a factor.")] = "cosine"
    words: Annotated[
        WordsName, typer.Option(help="A word of several tokens: their mean map, the first, the maximum.")
    ] = "mean"
    keep_top: Annotated[float, typer.Option(help="Share of pixels outlined as attended.")] = 0.2
    max_tokens: Annotated[int, typer.Option(min=1, max=512, help="Of a reply, at most.")] = 64
    causal: Annotated[
        bool, typer.Option("--causal", help="Causal graphs behind each generated token, in place of heatmaps.")
    ] = False
    box: Annotated[list[str] | None, typer.Option(help="The relevant area: x1,y1,x2,y2 in pixels (repeatable).")] = None
    heads: Annotated[int, typer.Option(min=1, help="Heads per token: those most on the image.")] = 5
    radius: Annotated[int, typer.Option(min=1, help="Steps from the token in its graph.")] = 3
    learner: Annotated[LearnerName, typer.Option(help="The order of the tokens is causal, or not.")] = "ordered"
    head_rule: Annotated[HeadRuleName, typer.Option(help="What makes a head look at the image.")] = "image_over_text"
    sink: Annotated[SinkName, typer.Option(help="A token that all attend to: keep, remove, centre.")] = "keep"
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1 …")] = "cpu"
    json: JsonOption = False

    @property
    def place(self) -> Path:
        """Where the picture is written."""
        return self.out or Path(f"{self.image.stem}-{'causal' if self.causal else 'heatmap'}.png")
