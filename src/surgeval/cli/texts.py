"""Text that commands are given: names, titles and the like, which end in tables, pages and files and must be UTF-8."""

from __future__ import annotations

import getpass
from collections.abc import Callable
from functools import wraps
from typing import Any

import typer

from surgeval.errors import BadInput

__all__ = ["login_name", "take_only_text"]

_NOBODY = "annotator"  # many containers have no name for the account that they run under


def login_name() -> str:
    """The name that you logged in with, or "annotator" where the machine knows none."""
    try:
        return getpass.getuser() or _NOBODY
    except (KeyError, ImportError, OSError):
        return _NOBODY


def take_only_text(app: typer.Typer) -> None:
    r"""Let every command refuse bytes that are no UTF-8 before it begins; paths (`Path`) may hold any.

    >>> app = typer.Typer()
    >>> @app.command()
    ... def look(author: str) -> None: ...
    >>> take_only_text(app)
    >>> app.registered_commands[0].callback(author=b"Ad\xff".decode("utf-8", "surrogateescape"))
    Traceback (most recent call last):
    surgeval.errors.BadInput: author: found bytes that are no text, expected UTF-8
    """
    for command in app.registered_commands:
        if command.callback is not None:
            command.callback = _checked(command.callback)
    for group in app.registered_groups:
        if group.typer_instance is not None:
            take_only_text(group.typer_instance)


def _checked(command: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(command)
    def check(**given: Any) -> Any:
        for name, value in given.items():
            texts = value if isinstance(value, list | tuple) else (value,)
            if not all(_sound(text) for text in texts if isinstance(text, str)):
                raise BadInput(f"{name}: found bytes that are no text, expected UTF-8")
        return command(**given)

    return check


def _sound(text: str) -> bool:
    """Whether the text can be written: bytes of a command line that are no UTF-8 arrive as halves of pairs."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
