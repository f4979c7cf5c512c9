"""`surgeval run` and `surgeval score`: every installed protocol brings its own command, loaded when it is needed."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache, wraps
from typing import Any

import typer
from typer.core import TyperGroup
from typer.exceptions import Abort, Exit, TyperException

from surgeval.cli.markup import literal, sound_help
from surgeval.cli.single_file import writes_pages
from surgeval.cli.texts import take_only_text
from surgeval.console.panels import flow_help
from surgeval.errors import BadInput, LeftOut, code_of_others
from surgeval.protocols.descriptor import Descriptor
from surgeval.protocols.registry import descriptors

__all__ = ["RootGroup", "register"]

# Exits are a command's own answer; for the others `surgeval` has sentences, whatever raised them.
_ANSWERED = (SystemExit, Exit, Abort, TyperException, OSError, MemoryError)


class _DerivedHelp(TyperGroup):
    """A group whose help names the installed protocols: it is written when it is read."""

    _text = ""

    @property
    def help(self) -> str:
        """The group's own text, and what follows from the protocols."""
        return self.extend_help(self._text)

    @help.setter
    def help(self, text: str | None) -> None:
        self._text = text or ""

    def extend_help(self, text: str) -> str:
        """Add to the group's own text."""
        raise NotImplementedError


class RootGroup(_DerivedHelp):
    """The group `surgeval`, whose help lists the protocols with their questions."""

    def extend_help(self, text: str) -> str:
        """Add a line per protocol."""
        return "\n\n".join(
            (text, *(f"[bold]{literal(one.name)}[/bold]  {literal(one.question)}" for one in descriptors().values()))
        )


class _ProtocolGroup(_DerivedHelp):
    """The group `run` or `score`, which is also the name of the part that holds a protocol's command."""

    def __init__(self, *, name: str, **settings: Any) -> None:
        super().__init__(name=name, **(settings | {"commands": _Commands(name)}))

    def extend_help(self, text: str) -> str:
        """Add a line per command, and the first command's example."""
        commands = {name: command for name in self.commands if (command := self.commands.get(name)) is not None}
        asked = [f"[bold]{literal(name)}[/bold]: {literal(descriptors()[name].question)}" for name in commands]
        example = _example(next((command.help for command in commands.values()), ""))
        return sound_help("\n\n".join((text, *asked, example)))


class _Commands(Mapping[str, Any]):
    """The protocols' commands of one kind by name, each loaded when it is looked up."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def __iter__(self) -> Iterator[str]:
        return iter([name for name, protocol in descriptors().items() if getattr(protocol, self._kind)])

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __getitem__(self, name: str) -> Any:
        """The command; None if another package's cannot be loaded."""
        if name not in list(iter(self)):
            raise KeyError(name)
        return _load_command(descriptors()[name], self._kind)


def register(app: typer.Typer) -> None:
    """Add both groups with the commands of the protocols that have one."""
    for kind, says in (
        ("run", "Run a protocol on a model; a run that was stopped is resumed by the same command."),
        ("score", "Score predictions or answers that were made elsewhere."),
    ):
        group = typer.Typer(help=says, short_help=says, no_args_is_help=True, rich_markup_mode="rich",
                            cls=_ProtocolGroup)  # fmt: skip
        group.callback()(_keep_names)
        app.add_typer(group, name=kind)


@cache
def _load_command(protocol: Descriptor, kind: str) -> Any:
    """A protocol's command with the options that all have; None, with a warning, if it cannot be loaded."""
    try:
        with code_of_others(f"protocol {protocol.name}: {kind} = {getattr(protocol, kind)!r}"):
            command = writes_pages(_guarded(protocol, kind))
            command.__doc__ = sound_help(command.__doc__ or "")
            alone = typer.Typer(rich_markup_mode="rich", add_completion=False)
            alone.command(protocol.name)(command)
            flow_help(alone)
            take_only_text(alone)
            return typer.main.get_command(alone)
    except BadInput as error:
        if protocol.is_ours(kind):
            raise
        warnings.warn(str(error), LeftOut, stacklevel=2)
        return None


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
