"""`surgeval explain --causal`: the causal graphs behind a reply, as a picture and a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from surgeval.console import print_json, print_table, progress_bar, rich_console
from surgeval.errors import BadInput, visible
from surgeval.files import atomic_path, failure_reason

if TYPE_CHECKING:
    from surgeval.cli.explain.options import ExplainOptions

__all__ = ["is_own_picture", "save_picture", "say_unknown", "show_causes"]

_SOFTWARE = "surgeval explain"


def show_causes(asked: ExplainOptions) -> None:
    """Ask, draw, print."""
    boxes = [_box(text) for text in asked.box or ()]
    with progress_bar("pictures") as bar:
        bar.phase(f"loading {asked.model}")
        from surgeval.explain.cleann import CausalSettings
        from surgeval.protocols.surgxbench import explain_causes

        bar.phase("looking")
        settings = CausalSettings(
            heads=asked.heads, radius=asked.radius, learner=asked.learner, head_rule=asked.head_rule, sink=asked.sink
        )
        shown = explain_causes(
            asked.image, asked.model, tuple(asked.prompt), boxes=boxes, settings=settings, device=asked.device,
            max_tokens=asked.max_tokens,
        )  # fmt: skip
    save_picture(shown.picture, asked.place)
    table = shown.to_frame()
    if asked.json:
        print_json({"picture": str(asked.place), "model": shown.model, "visible": shown.visible,
                    "unknown": shown.unknown, "settings": settings.record(), "replies": dict(shown.replies),
                    "graphs": table.to_dicts()})  # fmt: skip
        return
    say_unknown(shown.model, shown.unknown)
    say = rich_console().print
    for question, reply in shown.replies.items():
        say(visible(f"{question}: {reply or 'no word'}"))
    heads = {"word": "token", "head": "head", "nodes": "nodes", "edges": "edges", "explaining": "explain it",
             "image": "of the image", **({"near": "near the box"} if boxes else {})}  # fmt: skip
    print_table("", list(heads.values()), [[str(row[column]) for column in heads] for row in table.to_dicts()])
    say(_summary(table, bool(boxes)))
    say(f"open {visible(str(asked.place))}")


def _summary(table: Any, boxed: bool) -> str:
    from surgeval.results import percent

    explaining, image, near = (int(table[name].sum()) for name in ("explaining", "image", "near"))
    if not explaining:
        return "no token explains any of these"
    sentence = f"{percent(image / explaining)} of {explaining} explaining tokens are image tokens"
    if not boxed or not image:
        return sentence
    chance = float((table["image"] * table["chance"]).sum()) / image
    return f"{sentence}; {percent(near / image)} of these in or close to the box (chance {percent(chance)})"


def _box(text: str) -> tuple[float, float, float, float]:
    try:
        x1, y1, x2, y2 = (float(part) for part in text.split(","))
    except ValueError:
        raise BadInput(f"--box {visible(text)}: expected four numbers x1,y1,x2,y2") from None
    if not (-math.inf < x1 < x2 < math.inf and -math.inf < y1 < y2 < math.inf):
        raise BadInput(f"--box {visible(text)}: found no area, expected finite numbers with x1 < x2 and y1 < y2")
    return x1, y1, x2, y2


def say_unknown(model: str, words: Sequence[str]) -> None:
    """A note on words that the model reads as the same nothing."""
    if words:
        unread = ", ".join(visible(repr(word)) for word in words)
        typer.echo(f"note: {visible(model)} does not know {unread} and reads each as the same unknown word", err=True)


def is_own_picture(path: Path) -> bool:
    """Whether the metadata of a picture name `save_picture` as its writer."""
    from PIL import Image

    try:
        with Image.open(path) as picture:
            return bool(picture.info.get("Software") == _SOFTWARE)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return False


def save_picture(picture: Any, out: Path) -> None:
    """Write an RGB array as a PNG file that names surgeval as its software."""
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    info = PngInfo()
    info.add_text("Software", _SOFTWARE)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(out) as partial:
            Image.fromarray(picture).save(partial, pnginfo=info)
    except OSError as error:
        raise BadInput(f"{out}: the picture cannot be written: {failure_reason(error)}") from error
