"""`surgeval explain`: one heatmap, as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from surgeval.console import (
    MAPS,
    JsonOption,
    console,
    grouped,
    print_json,
    print_table,
    progress,
    require_models,
)
from surgeval.errors import BadInput, visible
from surgeval.protocols.surgxbench.command import MethodName, heatmap_method


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(explain)


@grouped(
    {
        MAPS: "method order start_layer score_scale keep_top",
    }
)
def explain(
    image: Annotated[Path, typer.Argument(help="An image file.", show_default=False)],
    model: Annotated[str, typer.Option("--model", help="As in `surgeval models list`.", show_default=False)],
    prompt: Annotated[
        list[str], typer.Option("--prompt", help="What to look for (repeatable: a picture each).", show_default=False)
    ],
    out: Annotated[
        Path | None, typer.Option("--out", help="The picture. Default: IMAGE-heatmap.png in this folder.")
    ] = None,
    method: Annotated[MethodName, typer.Option("--method", help="Default: what the tower allows.")] = "auto",
    order: Annotated[str, typer.Option("--order", help="Rollout: chefer or seed.")] = "chefer",
    start_layer: Annotated[int, typer.Option("--start-layer", help="Rollout: first block; -1 = the last only.")] = 0,
    score_scale: Annotated[str, typer.Option("--score-scale", help="cosine, logits or a factor.")] = "cosine",
    keep_top: Annotated[float, typer.Option("--keep-top", help="Share of pixels outlined as attended.")] = 0.2,
    device: Annotated[str, typer.Option("--device", help="cpu, cuda, cuda:1 …")] = "cpu",
    json: JsonOption = False,
) -> None:
    """Show where a model looks for a prompt: the picture darkens what the model never saw and outlines its top pixels.

    Example: [bold]surgeval explain frame.png --model phantom-clip --prompt "The hook is in the image"[/bold]
    """
    require_models("explain")
    with progress("pictures") as bar:
        bar.phase(f"loading {model}")
        from surgeval.protocols.surgxbench import explain_image
    from surgeval.results import percent
    from surgeval.stats import number_text

    place = out or Path(f"{image.stem}-heatmap.png")
    chosen = heatmap_method(method, order, start_layer, score_scale)
    if place.suffix.casefold() != ".png":
        raise BadInput(f"--out {place}: found {place.suffix or 'no ending'}, expected a file that ends in .png")
    if place.exists() and image.exists() and place.samefile(image):
        raise BadInput(f"--out {place}: found the image itself, expected another file")
    with progress("pictures") as bar:
        bar.phase("looking")
        shown = explain_image(image, model, tuple(prompt), method=chosen, keep_top=keep_top, device=device)
    _save(shown.picture, place)
    rows = [(one.prompt, one.score, one.area, " ".join(sorted(one.flags))) for one in shown.prompts]
    if json:
        keys = ("prompt", "score", "area", "flags")
        print_json({"picture": str(place), "model": shown.model, "visible": shown.visible, "method": shown.method,
                    "unknown": shown.unknown,
                    "prompts": [dict(zip(keys, row, strict=True)) for row in rows]})  # fmt: skip
        return
    if shown.unknown:
        words = ", ".join(visible(repr(word)) for word in shown.unknown)
        note = f"note: {visible(shown.model)} does not know {words} and reads each as the same unknown word"
        typer.echo(note, err=True)
    told = [(text, number_text(score), number_text(area, "share"), flags) for text, score, area, flags in rows]
    print_table("", ["prompt", "score", "attended share", "flags"], told)
    say = console().print
    say(f"{visible(shown.model)} saw {percent(shown.visible)} of the frame; {_spoken(shown.method)}")
    say(f"open {visible(str(place))}")


def _spoken(method: Any) -> str:
    return ", ".join(f"{key} {value}" for key, value in method.items())


def _save(picture: Any, place: Path) -> None:
    from PIL import Image

    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture).save(place)
    except OSError as error:
        raise BadInput(f"{place}: the picture cannot be written: {error.strerror or error}") from error
