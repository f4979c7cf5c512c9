"""`surgeval run`: ask or explain a model, in a folder that can be stopped at any moment and resumed."""

from __future__ import annotations

import typer

app = typer.Typer(
    help="Run a protocol on a model; a run that was stopped is resumed by the same command.\n\n"
    "Example: [bold]surgeval run focus --data my_dataset --model prior --out runs/prior[/bold]",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


def register(main: typer.Typer) -> None:
    """Add the command."""
    main.add_typer(app, name="run")


@app.callback()
def _run() -> None:
    """Keeps a protocol's name a word of its own, whatever the number of protocols."""
