"""`surgeval run` and `surgeval score`: every installed protocol brings its own command."""

from __future__ import annotations

import typer

from surgeval.protocols.registry import descriptors


def register(app: typer.Typer) -> None:
    """Add both groups with the commands of the protocols that have one."""
    for kind, says in (
        ("run", "Run a protocol on a model; a run that was stopped is resumed by the same command."),
        ("score", "Score predictions or answers that were made elsewhere."),
    ):
        app.add_typer(_group(kind, says), name=kind)


def _group(kind: str, says: str) -> typer.Typer:
    able = [one for one in descriptors().values() if getattr(one, kind)]
    asked = "\n\n".join(f"[bold]{one.name}[/bold]: {one.question}" for one in able)
    group = typer.Typer(help=f"{says}\n\n{asked}", no_args_is_help=True, rich_markup_mode="rich")
    group.callback()(_keep_names)
    for one in able:
        group.command(one.name)(one.part(kind))
    return group


def _keep_names() -> None:
    """Keeps a protocol's name a word of its own, whatever the number of protocols."""
