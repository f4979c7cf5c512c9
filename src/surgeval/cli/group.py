"""A group of commands, such as `surgeval data …`: its help shows an example, and alone it prints that help."""

from __future__ import annotations

import typer

__all__ = ["command_group"]


def command_group(about: str, example: str) -> typer.Typer:
    """An empty group."""
    text = f"{about}\n\nExample: [bold]{example}[/bold]"
    return typer.Typer(help=text, no_args_is_help=True, rich_markup_mode="rich")
