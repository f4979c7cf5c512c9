"""The `surgeval` command: the tree of sub-commands, and the one place where errors become sentences."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.exceptions import Abort, Exit, TyperException

from surgeval import __version__
from surgeval.cli import (
    INTERRUPTED,
)
from surgeval.cli import (
    compare as _compare,
)
from surgeval.cli import (
    demo as _demo,
)
from surgeval.cli import (
    detect as _detect,
)
from surgeval.cli import (
    models as _models,
)
from surgeval.cli import (
    phantom as _phantom,
)
from surgeval.cli import (
    protocols as _protocols,
)
from surgeval.cli import (
    rank as _rank,
)
from surgeval.cli import (
    report as _report,
)
from surgeval.cli import (
    studio as _studio,
)
from surgeval.cli import (
    weak as _weak,
)
from surgeval.cli.data import commands as _data
from surgeval.cli.data import frames, importing
from surgeval.cli.data import phantom as _data_phantom
from surgeval.cli.explain import commands as _explain
from surgeval.cli.questions import commands as _questions
from surgeval.cli.texts import take_only_text
from surgeval.cli.train import commands as _train
from surgeval.console import release_folders, standard_streams
from surgeval.console.panels import flow_help
from surgeval.errors import (
    MODEL_PACKAGES,
    LeftOut,
    MissingExtra,
    NotScored,
    SurgevalError,
    UnclearFormat,
    visible,
)
from surgeval.files import NO_ROOM, failure_reason
from surgeval.progress import quiet

app = typer.Typer(
    name="surgeval",
    help=(
        "Can a vision or vision-language model for surgery be trusted?\n\n"
        "Start with [bold]surgeval demo[/bold]: it makes a small surgical phantom and takes it through the protocols. "
        "Then look at your own data: [bold]surgeval data check FOLDER[/bold], [bold]surgeval report FOLDER[/bold].\n\n"
        "The protocols, each with its question:"
    ),
    cls=_protocols.RootGroup,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(_data.app, name="data")
importing.register(_data.app)
_data_phantom.register(_data.app)
frames.register(_data.app)
for _part in (
    _demo,
    _protocols,
    _report,
    _explain,
    _compare,
    _rank,
    _questions,
    _models,
    _phantom,
    _train,
    _weak,
    _studio,
):
    _part.register(app)
_detect.register(app, _models.app)
_PANELS = {
    "Start here": ("demo",),
    "Data: what is in it, and is it sound?": ("data", "report"),
    "A model: how good is it, and for the right reason?": ("run", "score", "explain"),
    "Several models: which is better, and how sure is that?": ("compare", "rank"),
    "Questions: write and review them": ("questions",),
    "Detectors": ("train", "detect", "weak-boxes"),
    "Labels: draw them, review them": ("studio",),
    "Tools": ("models", "phantom"),
}
for _title, _names in _PANELS.items():
    for _one in app.registered_commands:
        if (_one.name or getattr(_one.callback, "__name__", "")) in _names:
            _one.rich_help_panel = _title
    for _group in app.registered_groups:
        if _group.name in _names:
            _group.rich_help_panel = _title
flow_help(app)
take_only_text(app)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"surgeval {__version__}")
        raise Exit(0)


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options that stand before the command."""


def run(argv: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    try:
        with standard_streams(), quiet("--json" in argv), _notes():
            return _exit_code(argv)
    except OSError as error:  # what was printed last could not be stored
        return _complain(_os_sentence(error), 2)
    finally:
        release_folders()


@contextmanager
def _notes() -> Iterator[None]:
    """Parts of other packages that are left out are told in a line each, without the place in our source."""
    usual = warnings.formatwarning

    def told(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> str:
        note = f"surgeval: note: {visible(str(message))}\n"
        return note if issubclass(category, LeftOut) else usual(message, category, *where, **more)

    setattr(warnings, "formatwarning", told)  # noqa: B010 (an assignment would need its exact signature)
    try:
        yield
    finally:
        warnings.formatwarning = usual


def _exit_code(argv: Sequence[str]) -> int:
    try:
        result = app(args=list(argv), prog_name="surgeval", standalone_mode=False)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in MODEL_PACKAGES:
            raise
        return _complain(str(MissingExtra(_command(argv), package)), MissingExtra.exit_code)
    except SurgevalError as error:
        first, *more = error.lines
        return _complain(f"{first}{_advice(error)}", error.exit_code, more)
    except (Abort, KeyboardInterrupt):
        return _complain(INTERRUPTED, 130)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 2
    except TyperException as error:
        # No arguments at all: the help has been shown already and the message is empty.
        message = " ".join(error.format_message().split())
        return _complain(f"{message.rstrip('.')}. Try '{_command(argv)} --help'.", 2) if message else 2
    except OSError as error:
        return _complain(_os_sentence(error), 2)
    except MemoryError as error:
        line = str(error).partition("\n")[0]
        return _complain(f"memory: found too little{f' ({line})' if line else ''}, expected room for this command", 2)
    if result == 130:  # Typer's answer to Ctrl-C, without a word
        return _complain(INTERRUPTED, 130)
    return result if isinstance(result, int) else 0


def _advice(error: SurgevalError) -> str:
    """The option or command that helps, which only a person at a terminal can use."""
    if isinstance(error, NotScored):
        return f"; `surgeval score {error.protocol}` does that"
    if isinstance(error, UnclearFormat):
        return f", here --format {error.formats[0]}" if error.formats else " (`surgeval data list` describes them)"
    return " with --labels" if error.code == "labels-unknown" else ""


def _complain(message: str, code: int, more: Sequence[str] = ()) -> int:
    typer.echo("\n".join(map(visible, (f"surgeval: {message}", *more))), err=True)
    return code


def _command(argv: Sequence[str]) -> str:
    """The command words of a command line, for a pointer to its help."""
    words, here = ["surgeval"], typer.main.get_command(app)
    for word in argv:
        inner = getattr(here, "commands", {}).get(word)
        if inner is None:
            break
        words.append(word)
        here = inner
    return " ".join(words)


def _os_sentence(error: OSError) -> str:
    prefix = f"{error.filename}: " if error.filename else ""
    if error.errno in NO_ROOM:
        reason = failure_reason(error)
        return f"{prefix}{reason[0].lower()}{reason[1:]}"
    return f"{prefix}{(error.strerror or str(error)).lower()}"
