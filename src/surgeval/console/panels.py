"""Help that fits 80 columns: what most people need first, the rest in panels; short words for what a value is."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from copy import copy
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

__all__ = ["CAUSES", "JUDGING", "MAPS", "MOTION", "READING", "RUNNING", "SCORING", "flow_help", "grouped",
           "shorten_option"]  # fmt: skip

# What is not named in a panel stands first, under "Options".
READING = "Advanced: reading the data"
SCORING = "Advanced: scoring"
MAPS = "Advanced: maps and regions"
CAUSES = "Advanced: causal graphs"
MOTION = "Advanced: motion"
JUDGING = "Advanced: judging"
RUNNING = "Advanced: running"

_WORDS = {int: "N", float: "X"}
_LONGEST = 18  # letters of a list of choices beside the option; a longer one stands in its help

Command = TypeVar("Command", bound=Callable[..., Any])


def grouped(panels: Mapping[str, str]) -> Callable[[Command], Command]:
    """Put the options of a command into the panels of its help, by the names of its parameters.

    >>> import typer
    >>> from typing import Annotated
    >>> @grouped({"Advanced: running": "batch"})
    ... def look(batch: Annotated[int, typer.Option("--batch", help="Frames at a time.")] = 16) -> None: ...
    >>> look.__annotations__["batch"].__metadata__[0].rich_help_panel
    'Advanced: running'
    """

    def group(command: Command) -> Command:
        hints = {name: _copy_option(hint) for name, hint in get_type_hints(command, include_extras=True).items()}
        for panel, names in panels.items():
            for name in names.split():
                hints[name].__metadata__[0].rich_help_panel = panel
        for name, hint in hints.items():
            if name != "return":
                shorten_option(hint, get_args(hint)[1])
        command.__annotations__ = hints
        signature = inspect.signature(command)
        parameters = [one.replace(annotation=hints[name]) for name, one in signature.parameters.items()]
        vars(command)["__signature__"] = signature.replace(parameters=parameters)
        return command

    return group


def flow_help(app: Any) -> None:
    r"""Let the paragraphs of every command's help flow: line ends of the source would stand in the middle of a line.

    >>> import typer
    >>> app = typer.Typer()
    >>> @app.command()
    ... def look() -> None:
    ...     '''Look at it.
    ...
    ...     Example: surgeval look
    ...     --out D
    ...     '''
    >>> flow_help(app)
    >>> app.registered_commands[0].help
    'Look at it.\n\nExample: surgeval look --out D'
    """
    for command in app.registered_commands:
        text = command.help or inspect.getdoc(command.callback) or ""
        command.help = "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))
    for group in app.registered_groups:
        flow_help(group.typer_instance)


def _copy_option(hint: Any) -> Any:
    """The annotation with an option of its own: commands share options, and each has its own panels."""
    if get_origin(hint) is not Annotated:
        return hint
    kind, option, *more = get_args(hint)
    annotated: Any = Annotated
    return annotated[(kind, copy(option), *more)]


def shorten_option(hint: Any, option: Any) -> None:
    """Say what the value is in a letter or a word, and long lists of choices in the help.

    >>> import typer
    >>> every = typer.Option(help="Every N-th frame.")
    >>> shorten_option(Annotated[int, every], every)
    >>> every.metavar
    'N'
    """
    kinds = [kind for part in get_args(hint)[:1] for kind in (get_args(part) or (part,))]
    plain = get_args(hint)[0]
    choices = next((get_args(part) for part in (plain, *get_args(plain)) if get_origin(part) is Literal), ())
    if option.metavar is not None:
        return
    if choices and len("|".join(choices)) > _LONGEST:
        option.metavar, option.help = "NAME", f"{option.help} One of {', '.join(choices)}."
    else:
        option.metavar = next((_WORDS[kind] for kind in kinds if kind in _WORDS), None)
