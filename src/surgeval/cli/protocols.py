"""`surgeval run` and `surgeval score`: a command from each protocol's function, loaded when it is needed."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import Abort, Exit, TyperException

from surgeval.cli.markup import literal, sound_help
from surgeval.cli.single_file import writes_pages
from surgeval.cli.texts import take_only_text
from surgeval.console import claim_folder, keep_times, print_json, print_pieces, rich_console
from surgeval.console.commands import command_from
from surgeval.console.panels import flow_help
from surgeval.errors import BadInput, visible
from surgeval.progress import phases, timed
from surgeval.protocols.descriptor import Descriptor
from surgeval.protocols.registry import descriptors

if TYPE_CHECKING:
    import polars as pl

    from surgeval.datasets import Problem

__all__ = ["RootGroup", "call_protocol", "print_result", "register"]

Tables: TypeAlias = "Callable[[Any], Mapping[str, pl.DataFrame]]"
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
    """The group `run` or `score`, which is also the name of the part that declares a protocol's command."""

    def __init__(self, *, name: str, **settings: Any) -> None:
        super().__init__(name=name, **(settings | {"commands": _Commands(name)}))

    def extend_help(self, text: str) -> str:
        """Add the first command's example."""
        examples = [
            example for name in self.commands for example in descriptors()[name].command(self.name or "").examples
        ]
        return sound_help("\n\n".join((text, *(f"Example: [bold]{literal(one)}[/bold]" for one in examples[:1]))))


class _Commands(Mapping[str, Any]):
    """The protocols' commands of one kind by name."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def __iter__(self) -> Iterator[str]:
        return iter([name for name, protocol in descriptors().items() if protocol.address(self._kind)])

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __getitem__(self, name: str) -> Any:
        if name not in list(iter(self)):
            raise KeyError(name)
        return _ProtocolCommand(descriptors()[name], self._kind)


class _ProtocolCommand(TyperCommand):
    """A protocol's command, whose function is imported when its options are asked for."""

    def __init__(self, protocol: Descriptor, kind: str) -> None:
        self._protocol, self._kind = protocol, kind
        super().__init__(name=protocol.name, short_help=literal(protocol.question), rich_markup_mode="rich")

    def _derived(name: str) -> Any:  # type: ignore[misc]  # noqa: N805 - makes properties of this class
        def read(self: Any) -> Any:
            return getattr(_load_command(self._protocol, self._kind), name)

        return property(read, lambda _self, _value: None)

    params, callback, help = _derived("params"), _derived("callback"), _derived("help")


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
    """A protocol's command, made from its function."""
    declared = protocol.command(kind)
    with protocol.answers_for(kind):
        command = command_from(
            protocol.part(kind), partial(call_protocol, protocol, kind), text=declared.text, examples=declared.examples
        )
        command.__doc__ = sound_help(command.__doc__ or "")
        alone = typer.Typer(rich_markup_mode="rich", add_completion=False)
        alone.command(protocol.name)(writes_pages(command))
        flow_help(alone)
        take_only_text(alone)
        return typer.main.get_command(alone)


def call_protocol(
    protocol: Descriptor, kind: str, function: Callable[..., Any], arguments: dict[str, Any], json: bool
) -> int:
    """Call a protocol's function, write the page of its result, and print what came of it."""
    out, declared = arguments.get("out"), protocol.command(kind)
    if declared.mark and out is not None and not (out / "run.json").exists():
        claim_folder(out, declared.mark)
    if json and any(judge.partition(":")[0] == "manual" for judge in arguments.get("judge") or ()):
        raise BadInput("--judge manual asks on the screen, which --json keeps for its output. Leave one of them out.")
    warned: list[str] = []

    def warn(problem: Problem) -> None:
        from surgeval.datasets import raise_errors

        raise_errors(problem)
        typer.echo(visible(f"warning: {problem}"), err=True)
        warned.append(str(problem))

    own = {"progress": not json, "on_problem": warn}
    known = inspect.signature(function).parameters
    with protocol.answers_for(kind, passing=_ANSWERED), timed() as times:
        result = function(**arguments, **{name: value for name, value in own.items() if name in known})
        scores = result.scored if hasattr(result, "scored") else result if hasattr(result, "headlines") else None
        page = None
        if scores is not None and out is not None:
            with phases(show=not json) as shown:
                shown.phase("page")
                page = protocol.part("page")([scores], out)
        if json:
            details = scores.json_details() if scores is not None and result is scores else {}
            print_json({**result.to_json(), **details, "report": str(page) if page is not None else None})
        else:
            print_result(result, scores, protocol.tables(kind), warned)
            if page is not None:
                if (page.parent / "tables").is_dir():
                    rich_console().print(visible(f"every table, unrounded: {page.parent / 'tables'}"))
                rich_console().print(visible(f"open {page}"))
            elif scores is not None:
                rich_console().print("--out FOLDER writes every table, with a page")
    if kind == "run" and not json and page is not None:
        keep_times(times, page.parent)
    return getattr(result, "exit_code", 0)


def print_result(result: Any, scores: Any, tables: Tables, warned: Sequence[str] = ()) -> None:
    """The summary, warnings, verdict, tables and notes of a result; notes that were printed before are left out."""
    say = rich_console().print
    if result is not scores:
        for line in str(result).splitlines():
            say(visible(line))
    if scores is not None:
        for warning in scores.reply_warnings:
            say(f"warning: {visible(warning)}")
        verdict = scores.verdict()
        say(visible(f"{scores.name}: {verdict}" if verdict is not None else scores.name))
        for sentence in scores.sentences():
            say(visible(sentence))
        for title, table in tables(scores).items():
            print_pieces(title, table)
        for note in scores.notes:
            if note not in warned:
                say(visible(f"note: {note}"))


def _keep_names() -> None:
    """Keeps a protocol's name a word of its own, whatever the number of protocols."""
