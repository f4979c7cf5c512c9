"""`surgeval run` and `surgeval score`: every installed protocol brings its own command."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import typer
from typer.exceptions import Abort, Exit, TyperException

from surgeval.cli._markup import literal, sound_help
from surgeval.cli._single_file import writes_pages
from surgeval.errors import BadInput, code_of_others, visible
from surgeval.protocols.descriptor import Descriptor
from surgeval.protocols.registry import broken_protocols, descriptors

# Exits are a command's own answer; for the others `surgeval` has sentences, whatever raised them.
_ANSWERED = (SystemExit, Exit, Abort, TyperException, OSError, MemoryError)


def register(app: typer.Typer) -> None:
    """Add both groups with the commands of the protocols that have one."""
    for problem in broken_protocols():
        typer.echo(f"surgeval: note: {visible(problem)}", err=True)
    for kind, says in (
        ("run", "Run a protocol on a model; a run that was stopped is resumed by the same command."),
        ("score", "Score predictions or answers that were made elsewhere."),
    ):
        app.add_typer(_group(kind, says), name=kind)


def _group(kind: str, says: str) -> typer.Typer:
    commands: dict[str, Callable[..., Any]] = {}
    for protocol in (protocol for protocol in descriptors().values() if getattr(protocol, kind)):
        try:
            commands[protocol.name] = _command(protocol, kind)
        except BadInput as error:  # a package of somebody else's must not take the command line away
            typer.echo(f"surgeval: note: {visible(str(error))}", err=True)
    asked = "\n\n".join(f"[bold]{literal(name)}[/bold]: {literal(descriptors()[name].question)}" for name in commands)
    text = "\n\n".join((says, asked, _example(next(iter(commands.values())).__doc__ if commands else "")))
    group = typer.Typer(help=sound_help(text), no_args_is_help=True, rich_markup_mode="rich")
    group.callback()(_keep_names)
    for name, command in commands.items():
        group.command(name)(command)
    return group


def _command(protocol: Descriptor, kind: str) -> Callable[..., Any]:
    """A protocol's command with what all have; built once here, since one that Typer cannot build stops all others."""
    with code_of_others(f"protocol {protocol.name}: {kind} = {getattr(protocol, kind)!r}"):
        command = writes_pages(_guarded(protocol, kind))
        command.__doc__ = sound_help(command.__doc__ or "")
        alone = typer.Typer()
        alone.command(protocol.name)(command)
        typer.main.get_command(alone)
    return command


def _guarded(protocol: Descriptor, kind: str) -> Callable[..., Any]:
    """A protocol's command, whose failures are one sentence if it is another package's."""
    command = protocol.part(kind)

    @wraps(command)
    def guarded(**options: Any) -> Any:
        with protocol.answers_for(kind, passing=_ANSWERED):
            return command(**options)

    return guarded


def _example(doc: str | None) -> str:
    """The first example of a command's own help."""
    paragraphs = [" ".join(part.split()) for part in (doc or "").split("\n\n")]
    return next((part for part in paragraphs if part.startswith("Example: ")), "")


def _keep_names() -> None:
    """Keeps a protocol's name a word of its own, whatever the number of protocols."""
