"""A command from a Python function: its parameters are the options, its docstring is the help.

A parameter is an option if the command line can give its type: text, a number, a path, a choice (`Literal`), a list of
these, or settings as NAME=VALUE (`Mapping`). Other parameters keep their defaults. `COMMON` has the help of parameters
that many commands share; `Annotated[int, Help("…")]` gives a parameter its own.
"""

from __future__ import annotations

import builtins
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from datetime import datetime
from functools import wraps
from importlib import import_module
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

import typer
from rich.markup import escape

from surgeval.console.panels import READING, RUNNING, SCORING, shorten_option
from surgeval.errors import BadInput
from surgeval.files import BrokenJson, parse_json
from surgeval.progress import phases

__all__ = ["COMMON", "NO_OPTION", "Help", "OptionsOf", "command_from", "common", "load_function", "shared_option",
           "with_options"]  # fmt: skip

Values: TypeAlias = Mapping[str, Any]
Made = TypeVar("Made")


@dataclass(frozen=True)
class Help:
    """What the command line says about a parameter, and how it is given there where that differs from Python.

    `name` is the option's own name (`--pred`; several with spaces; `--aux/--no-aux` for a switch that can be off),
    `kind` the type the command line takes, `least` and `most` the range, `required` an option that Python can leave
    out; an `argument` has no name.
    """

    text: str
    panel: str = ""
    _: KW_ONLY
    name: str = ""
    kind: Any = None
    least: float | None = None
    most: float | None = None
    metavar: str | None = None
    required: bool = False
    argument: bool = False


@dataclass(frozen=True)
class OptionsOf:
    """A parameter whose value is made by a function or class: that one's parameters become options.

    `maker` is the function, or its address (`module:function`) where importing it is slow.
    """

    maker: Callable[..., Any] | str


NO_OPTION = Help("")  # a parameter for Python only
COMMON: Mapping[str, Help] = {
    "data": Help("A dataset folder or file."),
    "out": Help("The run's folder: new, or one to resume."),
    "split": Help("Only the videos of this split."),
    "videos": Help("Only this video (repeatable).", READING, name="--video"),
    "format": Help("The source format, if it cannot be detected from the files.", READING),
    "labels": Help("Label space: a packaged name (cholect50, …) or a JSON file.", READING, kind=str),
    "mapping": Help("TOML or JSON file that says what the columns of a table of boxes mean.", READING),
    "boxes": Help("A second dataset whose boxes the instruments take, by video, time and class.", READING),
    "sources": Help(
        "Which videos are of which source (hospital): 'esad*=ESAD' (repeatable, or with commas), or a .csv file "
        "with the columns video and source, or a .json file. ProstaTD's videos are known.",
        READING, metavar="PATTERN=NAME", kind=list[str],
    ),
    "name": Help("What to call the model. Default: the folder's name."),
    "pictures": Help("Cases the page keeps a picture of, the worst first.", least=0, most=20_000),
    "resamples": Help("Exchanges or resamples of videos to draw.", SCORING, metavar="N", least=1, most=1_000_000),
    "seed": Help("Seed of everything that is drawn.", SCORING, metavar="N", least=0),
    "processes": Help("Processes that share the work.", RUNNING, least=1),
    "batch": Help("Frames at a time.", RUNNING, least=1),
    "device": Help("cpu, cuda, cuda:1 …"),
    "retry": Help("Do again only what failed.", RUNNING),
    "overwrite": Help("Replace an existing output; input files are never replaced.", RUNNING),
    "tables": Help("Write the tables as latex or markdown too (repeatable).", metavar="FORMAT"),
    "json": Help("Print one JSON object and nothing else."),
}  # fmt: skip

_SIMPLE = (bool, int, float, str, Path, datetime)
_LISTS: tuple[Any, ...] = (list, tuple, Sequence, Iterable)
_MAPPINGS: tuple[Any, ...] = (dict, Mapping)


def common(name: str, text: str = "", panel: str | None = None) -> Help:
    """The shared help of a parameter, in other words or in another panel.

    >>> common("seed", panel="Sampling").panel
    'Sampling'
    """
    help = COMMON[name]
    return replace(help, text=text or help.text, panel=help.panel if panel is None else panel)


def load_function(address: str) -> Callable[..., Any]:
    """The function at an address, `module:function`.

    >>> load_function("math:gcd")(4, 6)
    2
    """
    module, colon, attribute = address.partition(":")
    if not (colon and module and attribute):
        raise BadInput(f"{address!r} is not the address of a function. Write it as module:function.")
    function = getattr(import_module(module), attribute)
    if not callable(function):
        raise BadInput(f"{address} is not a function but {function!r:.60}.")
    return function  # type: ignore[no-any-return]


def command_from(
    function: Callable[..., Any],
    run: Callable[[Callable[..., Any], dict[str, Any], bool], int],
    *,
    text: str = "",
    examples: Sequence[str] = (),
) -> Callable[..., int]:
    """The function as a Typer command: `run` is called with the function, its arguments, and whether JSON is wanted.

    The help is the first paragraph of the function's docstring, then `text` and `examples`.

    >>> def look(data: str | Path, *, every: int = 1, settings: object = None) -> None:
    ...     '''Look at the data.'''
    >>> def run(function, arguments, json):
    ...     print(function.__name__, arguments, json)
    ...     return 0
    >>> command = command_from(look, run, examples=["surgeval look --data D"])
    >>> list(inspect.signature(command).parameters)
    ['data', 'every', 'json']
    >>> command(data=Path("D"), every=2, json=False)
    look {'data': PosixPath('D'), 'every': 2} False
    0
    """
    taken = _Options(function)

    def command(**given: Any) -> int:
        wanted = bool(given.pop("json"))
        return run(function, taken.arguments(given), wanted)

    _set_signature(command, [*taken.parameters, _parameter("json", Annotated[bool, shared_option("json")], False)])
    about = (inspect.getdoc(function) or "").partition("\n\n")[0]
    shown = [escape(about), text, *(f"Example: [bold]{escape(example)}[/bold]" for example in examples)]
    command.__doc__ = "\n\n".join(part for part in shown if part)
    command.__name__ = getattr(function, "__name__", "command")
    return command


def with_options(maker: Callable[..., Made]) -> Callable[[Callable[[Made], Any]], Callable[..., Any]]:
    """A command that is given what a function or class makes, whose parameters are the options.

    >>> from dataclasses import make_dataclass
    >>> every = Annotated[int, Help("Look at every N-th frame.")]
    >>> Looking = make_dataclass("Looking", [("every", every, 1), ("seed", Annotated[int, NO_OPTION], 0)])
    >>> @with_options(Looking)
    ... def look(chosen):
    ...     return chosen
    >>> list(inspect.signature(look).parameters), look(every=5)
    (['every'], Looking(every=5, seed=0))
    """
    taken = _Options(maker)

    def spread(command: Callable[[Made], Any]) -> Callable[..., Any]:
        @wraps(command)
        def with_them(**given: Any) -> Any:
            return command(maker(**taken.arguments(given)))

        _set_signature(with_them, taken.parameters)
        return with_them

    return spread


def shared_option(name: str) -> Any:
    """A shared parameter as Typer's option, without its panel."""
    return _typer_option(COMMON[name], COMMON[name].name or f"--{name}")


def _typer_option(help: Help, names: str, panel: str = "", required: bool = False) -> Any:
    return typer.Option(
        *names.split(), help=help.text, min=help.least, max=help.most, metavar=help.metavar,
        rich_help_panel=panel or None, show_default=not required,
    )  # fmt: skip


def _set_signature(command: Any, parameters: Sequence[inspect.Parameter]) -> None:
    vars(command)["__signature__"] = inspect.Signature(parameters)
    command.__annotations__ = {one.name: one.annotation for one in parameters}


class _Options:
    """The options of a function, and its arguments made from them again."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.parameters: list[inspect.Parameter] = []
        self._mappings: dict[str, str] = {}  # parameters that take NAME=VALUE, and their options
        self._inner: dict[str, _Options] = {}
        for parameter in inspect.signature(function).parameters.values():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                continue
            hint = _hint(function, parameter)
            notes = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
            group = next((note for note in notes if isinstance(note, OptionsOf)), None)
            if group is not None:
                maker = load_function(group.maker) if isinstance(group.maker, str) else group.maker
                self._inner[parameter.name] = _Options(maker)
                self.parameters += self._inner[parameter.name].parameters
            else:
                self._add(parameter, hint, next((note for note in notes if isinstance(note, Help)), None))
        names = [one.name for one in self.parameters]
        if twice := {name for name in names if names.count(name) > 1}:
            raise TypeError(f"{function.__name__}: two parameters named {min(twice)!r} become options. Rename one.")

    def _add(self, parameter: inspect.Parameter, hint: Any, help: Help | None) -> None:
        help = help or COMMON.get(parameter.name) or Help("")
        kind, optional = help.kind or _kind(hint), _is_optional(hint)
        needed = parameter.default is parameter.empty
        if help is NO_OPTION or parameter.name == "progress" or kind is None:
            if needed:
                raise TypeError(f"{getattr(self.function, '__name__', self.function)}: the command line cannot give "
                               f"{parameter.name}. Give it a default.")  # fmt: skip
            return
        if kind is dict:
            kind = list[str]
            self._mappings[parameter.name] = (help.name or _name(parameter.name, kind, None)).split()[0]
            help = replace(help, metavar=help.metavar or "NAME=VALUE")
        many = get_origin(kind) is list
        default = None if needed or many else parameter.default
        required = help.required or (needed and not optional)
        if not required and (default is None or many):
            kind = kind | None if isinstance(kind, type) or many else Union[kind, None]  # noqa: UP007
        if help.argument:
            option = typer.Argument(help=help.text, show_default=False)
        else:
            names = help.name or _name(parameter.name, kind, default)
            option = _typer_option(help, names, help.panel, required)
        annotation: Any = Annotated[kind, option]
        shorten_option(annotation, option)
        self.parameters.append(_parameter(parameter.name, annotation, parameter.empty if required else default))

    def arguments(self, given: Values) -> dict[str, Any]:
        """The arguments of the function; a list that was not given is left out, so that its default holds."""
        own = [one.name for one in inspect.signature(self.function).parameters.values() if one.name in given]
        arguments = {name: given[name] for name in own if given[name] not in (None, [])}
        for name in self._mappings.keys() & arguments.keys():
            arguments[name] = dict(_setting(self._mappings[name], text) for text in arguments[name])
        for name, inner in self._inner.items():
            with phases() as shown:  # the maker may import much
                shown.phase("preparing")
                arguments[name] = inner.function(**inner.arguments(given))
        missing = {name for name in own if name not in arguments}
        unset = inspect.signature(self.function).parameters
        return {**arguments, **{name: None for name in missing if unset[name].default is unset[name].empty}}


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _hint(function: Callable[..., Any], parameter: inspect.Parameter) -> Any:
    """The type of a parameter; names that are imported for type checkers only stand for any type."""
    if parameter.annotation is parameter.empty:
        return str
    plain = inspect.unwrap(function)

    def holder() -> None: ...

    holder.__annotations__ = {parameter.name: parameter.annotation}
    names = vars(import_module(plain.__module__))
    return get_type_hints(holder, names, _AnyType(names), include_extras=True)[parameter.name]


class _AnyType(dict[str, Any]):
    """Local names for an annotation: `Any` for each name that is neither in the module nor built in."""

    def __init__(self, known: Values) -> None:
        super().__init__()
        self._known = known

    def __missing__(self, name: str) -> Any:
        if name in self._known or name in vars(builtins):
            raise KeyError(name)
        return Any


def _is_optional(hint: Any) -> bool:
    if get_origin(hint) is Annotated:
        return _is_optional(get_args(hint)[0])
    return get_origin(hint) in (Union, UnionType) and NoneType in get_args(hint)


def _kind(hint: Any) -> Any:
    """What Typer takes for a type: a simple type, a choice, a list of these, `dict` for settings; None for others."""
    origin, parts = get_origin(hint), get_args(hint)
    if hint in _SIMPLE or origin is Literal:
        return hint
    if origin is Annotated:
        return _kind(parts[0])
    if origin in (Union, UnionType):
        kinds = [kind for kind in map(_kind, parts) if kind is not None]
        return min(kinds, key=_rank, default=None)
    if origin in _LISTS or hint in _LISTS:
        inner = _kind(next((part for part in parts if part is not ...), str))
        return list[inner] if inner in _SIMPLE or get_origin(inner) is Literal else None  # type: ignore[valid-type]
    return dict if origin in _MAPPINGS or hint in _MAPPINGS else None


def _rank(kind: Any) -> int:
    """Of several types that a parameter may have the command line takes the first: lists, choices, paths, texts."""
    if get_origin(kind) in (list, Literal):
        return 0 if get_origin(kind) is list else 1
    return 9 if kind is dict else 2 if kind is Path else 3


def _name(name: str, kind: Any, default: Any) -> str:
    """The option's name; a switch that is on, or neither on nor off, by default has a second one to turn it off."""
    word = f"--{name.replace('_', '-')}"
    if kind is bool and default is False:
        return word
    switch = kind is bool or bool in get_args(kind)
    return f"{word}/--no{word[1:]}" if switch else word


def _setting(option: str, text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not (equals and name):
        raise BadInput(f"{option} {text[:60]!r}: write NAME=VALUE.")
    try:
        return name, parse_json(value, finite=True)
    except BrokenJson:  # a word
        return name, value
