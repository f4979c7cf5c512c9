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
    commands = {one.name: one.part(kind) for one in able}
    asked = "\n\n".join(f"[bold]{one.name}[/bold]: {one.question}" for one in able)
    text = "\n\n".join((says, asked, _example(next(iter(commands.values())).__doc__ if commands else "")))
    group = typer.Typer(help=text, no_args_is_help=True, rich_markup_mode="rich")
    group.callback()(_keep_names)
    for name, command in commands.items():
        group.command(name)(command)
    return group


def _example(doc: str | None) -> str:
    """The first example of a command's own help."""
    paragraphs = [" ".join(part.split()) for part in (doc or "").split("\n\n")]
    return next((part for part in paragraphs if part.startswith("Example: ")), "")


def _keep_names() -> None:
    """Keeps a protocol's name a word of its own, whatever the number of protocols."""
