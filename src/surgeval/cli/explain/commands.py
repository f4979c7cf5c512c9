"""`surgeval explain`: heatmaps of one image, as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from surgeval.cli.explain.causes import is_own_picture, save_picture, say_unknown, show_causes
from surgeval.cli.explain.options import ExplainOptions
from surgeval.console import print_json, print_table, progress_bar, require_models, rich_console
from surgeval.console.commands import with_options
from surgeval.errors import BadInput, visible

if TYPE_CHECKING:
    import polars as pl


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(explain)


@with_options(ExplainOptions)
def explain(asked: ExplainOptions) -> None:
    """Show where a model looks for a prompt: the picture darkens what the model never saw and outlines its top pixels.

    A model that answers in words is asked the prompt, and has a picture for each word of its reply; with --causal, a
    causal graph for each generated token and head.

    Example: [bold]surgeval explain frame.png --model phantom-clip --prompt "The hook is in the image"[/bold]
    """
    require_models("explain")
    _writable(asked.place, asked.image)
    if asked.causal:
        show_causes(asked)
        return
    with progress_bar("pictures") as bar:
        bar.phase(f"loading {asked.model}")
        from surgeval.protocols.surgxbench import Explained, explain_image
        from surgeval.protocols.surgxbench.options import choose_map
    from surgeval.results import percent

    method = choose_map(asked.method, asked.order, asked.start_layer, asked.score_scale, asked.words)
    with progress_bar("pictures") as bar:
        bar.phase("looking")
        shown = explain_image(
            asked.image, asked.model, tuple(asked.prompt), method=method, keep_top=asked.keep_top, device=asked.device,
            max_tokens=asked.max_tokens,
        )  # fmt: skip
    save_picture(shown.picture, asked.place)
    name, table = next(iter(shown.tables.items()))
    replies = {} if isinstance(shown, Explained) else dict(shown.replies)
    if asked.json:
        print_json({"picture": str(asked.place), "model": shown.model, "visible": shown.visible, "method": shown.method,
                    "unknown": shown.unknown, **({"replies": replies} if replies else {}),
                    name: table.to_dicts()})  # fmt: skip
        return
    say_unknown(shown.model, shown.unknown)
    say = rich_console().print
    for question, reply in replies.items():
        say(visible(f"{question}: {reply or 'no word'}"))
    _tell(table)
    say(f"{visible(shown.model)} saw {percent(shown.visible)} of the frame; map: {_spoken(shown.method)}")
    say(f"open {visible(str(asked.place))}")


def _tell(table: pl.DataFrame) -> None:
    """The prompts or the words, with their numbers."""
    from surgeval.stats import number_text

    heads = {"prompt": "prompt", "word": "word", "score": "score", "probability": "probability",
             "area": "attended share", "flags": "flags"}  # fmt: skip
    columns = [column for column in heads if column in table.columns]
    units: dict[str, Literal["score", "share"]] = {"area": "share", "score": "score", "probability": "score"}
    rows = [[number_text(row[column], units[column]) if column in units else row[column] for column in columns]
            for row in table.iter_rows(named=True)]  # fmt: skip
    print_table("", [heads[column] for column in columns], rows)


def _spoken(method: Any) -> str:
    return ", ".join(str(value) if key == "name" else f"{key} {value}" for key, value in method.items())


def _writable(out: Path, image: Path) -> None:
    if out.suffix.casefold() != ".png":
        raise BadInput(f"--out {out}: found {out.suffix or 'no ending'}, expected a file that ends in .png")
    if out.exists() and image.exists() and out.samefile(image):
        raise BadInput(f"--out {out}: found the image itself, expected another file")
    if out.exists() and not is_own_picture(out):
        raise BadInput(f"--out {out}: holds a picture that explain did not write. Name another file")
