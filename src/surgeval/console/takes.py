"""Commands whose options are the fields of a dataclass: many options, or options that two commands share."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields
from functools import wraps
from typing import Annotated, Any, TypeVar, get_origin, get_type_hints

__all__ = ["takes"]

Options = TypeVar("Options")


def takes(kind: type[Options]) -> Callable[[Callable[[Options], Any]], Callable[..., Any]]:
    """A command that is given the dataclass: its annotated fields are the options, in their order.

    A field without `Annotated` is no option and keeps its default: so a subclass takes an option away.

    >>> import typer
    >>> from dataclasses import make_dataclass
    >>> every = Annotated[int, typer.Option(help="Look at every N-th frame.")]
    >>> Looking = make_dataclass("Looking", [("every", every, 1), ("seed", int, 0)])
    >>> @takes(Looking)
    ... def look(chosen):
    ...     return chosen
    >>> list(inspect.signature(look).parameters), look(every=5)
    (['every'], Looking(every=5, seed=0))
    """
    hints = get_type_hints(kind, include_extras=True)
    parameters = [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, annotation=hints[field.name],
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
        )
        for field in fields(kind)  # type: ignore[arg-type]
        if get_origin(hints[field.name]) is Annotated
    ]  # fmt: skip

    def spread(command: Callable[[Options], Any]) -> Callable[..., Any]:
        @wraps(command)
        def with_options(**values: Any) -> Any:
            return command(kind(**values))

        vars(with_options)["__signature__"] = inspect.Signature(parameters)
        with_options.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return with_options

    return spread
