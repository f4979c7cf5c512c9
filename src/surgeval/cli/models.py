"""`surgeval models`: which models there are, and whether a downloaded one can be used."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from surgeval.cli.group import command_group
from surgeval.console import print_json, print_table, rich_console
from surgeval.console.options import JsonOption
from surgeval.errors import visible

if TYPE_CHECKING:
    from surgeval.models import ModelCheck

SHOWN = 20  # differences to print; a file of another model has hundreds

app = command_group("Look at models and check downloaded ones.", "surgeval models check SurgVLP.pth")


def register(root: typer.Typer) -> None:
    """Add the group of commands."""
    root.add_typer(app, name="models")


@app.command("list")
def list_models(json: JsonOption = False) -> None:
    """List the models that ship with surgeval, how your own are named, and those of other packages.

    Example: [bold]surgeval models list[/bold]
    """
    from surgeval.models import EMBEDDED, FAMILIES

    others = FAMILIES.plugins()
    families = {name: FAMILIES[name] for name in FAMILIES if FAMILIES.is_builtin(name)}
    kinds = {name: family.summary for name, family in families.items()}
    types = dict.fromkeys(family.model_type for family in families.values() if family.model_type)
    places = {
        "FOLDER": f"a transformers folder whose config.json has one of the model types {', '.join(types)}",
        "OWNER/NAME": "the same from the Hugging Face hub",
        "FILE": "a SurgVLP checkpoint (.pth or zip)",
    }
    embedded = {name: model.summary for name, model in EMBEDDED.items()}
    if json:
        print_json({"embedded": embedded, "places": places, "kinds": kinds, "plugins": others})
        return
    print_table("embedded", ["name", "what"], embedded.items())
    rich_console().print()
    print_table("your own, written as", ["place", "what"], places.items())
    rich_console().print()
    print_table("or with its family, written FAMILY:PLACE", ["family", "place"], kinds.items())
    if others:
        rich_console().print()
        print_table("other packages", ["name", "from"], others.items())


@app.command()
def check(
    path: Annotated[str, typer.Argument(help="A folder, checkpoint file or name.", show_default=False)],
    json: JsonOption = False,
) -> int:
    """Load a model, show it one frame and one prompt, and say what is missing; exit code 2 if anything is.

    Example: [bold]surgeval models check "surgvlp:SurgVLP.pth?vocab=vocab.txt"[/bold]
    """
    from surgeval.models import check_model, embedded_names

    if path in embedded_names("detector") and not Path(path).exists():
        return _check_detector(path, json)
    result = check_model(path)
    if json:
        print_json(result.to_json())
    else:
        _print(result)
    return 0 if result.usable else 2


def _check_detector(name: str, json: bool) -> int:
    """Load an embedded detector and name the command that uses it."""
    from surgeval.detector.inference import open_detector

    space = open_detector(name, device="cpu").classes.space.name
    use = f"surgeval detect SOURCE --model {name} --out OUT"
    if json:
        print_json({"spec": name, "loads": True, "usable": True, "family": "detector", "use": use})
    else:
        rich_console().print(f"{name}: a detector of the classes of {space}; it can be used: {use}")
    return 0


def _print(result: ModelCheck) -> None:
    out = rich_console()
    if result.loads:
        rows, columns = result.input_size or (0, 0)
        facts = {
            "family": result.family,
            "weights": f"{result.tensors} tensors" if result.tensors is not None else None,
            "identity": (result.identity or "")[:16],
            "reads": f"{columns}×{rows} pixels, {100 * (result.visible or 0):.1f} % of a 16:9 frame",
            "explained by": result.explains or "nothing: no attention or feature maps to read",
        }
        print_table(result.spec, ["", ""], [(name, value) for name, value in facts.items() if value])
    for problem in result.problems[:SHOWN]:
        out.print(visible(f"problem: {problem}"))
    if len(result.problems) > SHOWN:
        out.print(f"… and {len(result.problems) - SHOWN} more")
    for note in result.notes:
        out.print(visible(f"note: {note}"))
    verdict = "it can be used" if result.usable else "images only" if result.loads else "it cannot be loaded"
    out.print(visible(f"{result.spec}: {verdict}"))
