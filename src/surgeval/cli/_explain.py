"""`surgeval explain`: heatmaps of one image, as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from surgeval.cli._causes import Asked, HeadRuleName, LearnerName, SinkName, save_picture, say_unknown, show_causes
from surgeval.console import console, print_json, print_table, progress, require_models
from surgeval.console.options import JsonOption
from surgeval.console.panels import CAUSES, MAPS, grouped
from surgeval.errors import BadInput, visible
from surgeval.protocols.surgxbench.command import MethodOption, OrderOption, StartLayerOption, WordsName, heatmap_method

if TYPE_CHECKING:
    import polars as pl


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(explain)


@grouped(
    {
        MAPS: "method order start_layer score_scale words keep_top",
        CAUSES: "causal box heads radius learner head_rule sink",
    }
)
def explain(
    image: Annotated[Path, typer.Argument(help="An image file.", show_default=False)],
    model: Annotated[str, typer.Option(help="As in `surgeval models list`.", show_default=False)],
    prompt: Annotated[
        list[str], typer.Option(help="What to look for, or what to ask (repeatable).", show_default=False)
    ],
    out: Annotated[Path | None, typer.Option(help="The picture. Default: IMAGE-heatmap.png in this folder.")] = None,
    method: MethodOption = "auto",
    order: OrderOption = "chefer",
    start_layer: StartLayerOption = 0,
    score_scale: Annotated[str, typer.Option(help="cosine, logits or a factor.")] = "cosine",
    words: Annotated[
        WordsName, typer.Option(help="A word of several tokens: their mean map, the first, the maximum.")
    ] = "mean",
    keep_top: Annotated[float, typer.Option(help="Share of pixels outlined as attended.")] = 0.2,
    max_tokens: Annotated[int, typer.Option(min=1, max=512, help="Of a reply, at most.")] = 64,
    causal: Annotated[
        bool, typer.Option("--causal", help="Causal graphs behind each generated token, in place of heatmaps.")
    ] = False,
    box: Annotated[
        list[str] | None, typer.Option(help="The relevant area: x1,y1,x2,y2 in pixels (repeatable).")
    ] = None,
    heads: Annotated[int, typer.Option(min=1, help="Heads per token: those most on the image.")] = 5,
    radius: Annotated[int, typer.Option(min=1, help="Steps from the token in its graph.")] = 3,
    learner: Annotated[LearnerName, typer.Option(help="The order of the tokens is causal, or not.")] = ("ordered"),
    head_rule: Annotated[HeadRuleName, typer.Option(help="What makes a head look at the image.")] = ("image_over_text"),
    sink: Annotated[SinkName, typer.Option(help="A token that all attend to: keep, remove, centre.")] = "keep",
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1 …")] = "cpu",
    json: JsonOption = False,
) -> None:
    """Show where a model looks for a prompt: the picture darkens what the model never saw and outlines its top pixels.

    A model that answers in words is asked the prompt, and has a picture for each word of its reply; with --causal, a
    causal graph for each generated token and head.

    Example: [bold]surgeval explain frame.png --model phantom-clip --prompt "The hook is in the image"[/bold]
    """
    require_models("explain")
    place = out or Path(f"{image.stem}-{'causal' if causal else 'heatmap'}.png")
    _writable(place, image)
    if causal:
        show_causes(image, model, prompt, place, Asked(tuple(box or ()), heads, radius, learner, head_rule, sink),
                    device, max_tokens, json=json)  # fmt: skip
        return
    with progress("pictures") as bar:
        bar.phase(f"loading {model}")
        from surgeval.protocols.surgxbench import Explained, explain_image
    from surgeval.results import percent

    chosen = heatmap_method(method, order, start_layer, score_scale, words)
    with progress("pictures") as bar:
        bar.phase("looking")
        shown = explain_image(
            image, model, tuple(prompt), method=chosen, keep_top=keep_top, device=device, max_tokens=max_tokens
        )
    save_picture(shown.picture, place)
    name, table = next(iter(shown.tables.items()))
    replies = {} if isinstance(shown, Explained) else dict(shown.replies)
    if json:
        print_json({"picture": str(place), "model": shown.model, "visible": shown.visible, "method": shown.method,
                    "unknown": shown.unknown, **({"replies": replies} if replies else {}),
                    name: table.to_dicts()})  # fmt: skip
        return
    say_unknown(shown.model, shown.unknown)
    say = console().print
    for question, reply in replies.items():
        say(visible(f"{question}: {reply or 'no word'}"))
    _tell(table)
    say(f"{visible(shown.model)} saw {percent(shown.visible)} of the frame; {_spoken(shown.method)}")
    say(f"open {visible(str(place))}")


def _tell(table: pl.DataFrame) -> None:
    """The prompts or the words, with their numbers."""
    from surgeval.stats import number_text

    heads = {"prompt": "prompt", "word": "word", "score": "score", "probability": "probability",
             "area": "attended share", "flags": "flags"}  # fmt: skip
    kept = [column for column in heads if column in table.columns]
    units: dict[str, Literal["score", "share"]] = {"area": "share", "score": "score", "probability": "score"}
    rows = [[number_text(row[column], units[column]) if column in units else row[column] for column in kept]
            for row in table.iter_rows(named=True)]  # fmt: skip
    print_table("", [heads[column] for column in kept], rows)


def _spoken(method: Any) -> str:
    return ", ".join(f"{key} {value}" for key, value in method.items())


def _writable(place: Path, image: Path) -> None:
    if place.suffix.casefold() != ".png":
        raise BadInput(f"--out {place}: found {place.suffix or 'no ending'}, expected a file that ends in .png")
    if place.exists() and image.exists() and place.samefile(image):
        raise BadInput(f"--out {place}: found the image itself, expected another file")
