"""What every command that writes a page has, whoever wrote it: `--single-file`, and where the time went at its end."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

from surgeval.console import say_times
from surgeval.console.panels import RUNNING
from surgeval.progress import timed

_NAME = "single_file"
_SAYS = "Put the drawing library (0.9 MB) into the page instead of a file beside it."
_Option = Annotated[bool, typer.Option("--single-file", rich_help_panel=RUNNING, help=_SAYS)]


def writes_pages(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command with the option, which what it writes obeys; with `--json` no time is told."""

    @wraps(command)
    def with_option(**options: Any) -> Any:
        from surgeval.pages import single_file

        with single_file(options.pop(_NAME)), timed() as times:
            code = command(**options)
        if not options.get("json"):
            say_times(times)
        return code

    signature = inspect.signature(command, eval_str=True)
    parameter = inspect.Parameter(_NAME, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=_Option)
    parameters = [*signature.parameters.values(), parameter]
    vars(with_option)["__signature__"] = signature.replace(parameters=parameters)
    with_option.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return with_option
