"""A MkDocs hook: the page of commands, made from the commands themselves each time the site is built."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import typer.core
import typer.main

from surgeval.cli.app import app

_INTRODUCTION = """# Every command

`surgeval COMMAND --help` says the same in the terminal. Every command that prints a table also takes `--json`.

Exit codes: 0 done; 1 done, but something is left (answers without a verdict, failed questions); 2 the input cannot be
used, with one sentence that says why; 130 interrupted, and the same command goes on.
"""


def on_files(files: Any, config: Any) -> Any:
    """Add commands.md."""
    from mkdocs.structure.files import File  # only where the site is built

    files.append(File.generated(config, "commands.md", content=reference()))
    return files


def reference() -> str:
    """The page as Markdown."""
    return "\n".join([_INTRODUCTION, *_sections(typer.main.get_command(app), "surgeval")])


def _sections(command: Any, name: str) -> Iterator[str]:
    subcommands = getattr(command, "commands", {})
    if name != "surgeval":
        yield f"## {name}\n"
        yield _prose(command.help or "")
    if not subcommands:
        yield from _parameters(command)
    for word in sorted(subcommands) if name != "surgeval" else subcommands:
        yield from _sections(subcommands[word], f"{name} {word}")


def _parameters(command: Any) -> Iterator[str]:
    parameters = [parameter for parameter in command.params if not getattr(parameter, "hidden", False)]
    arguments = [parameter for parameter in parameters if parameter.param_type_name == "argument"]
    options = [
        parameter for parameter in parameters if parameter.param_type_name == "option" and parameter.name != "help"
    ]
    if arguments:
        yield "| argument | what |\n| --- | --- |"
        yield from (f"| `{_placeholder(argument)}` | {_cell(argument.help)} |" for argument in arguments)
        yield ""
    panels: dict[str, list[Any]] = {}
    for option in options:
        panels.setdefault(option.rich_help_panel or "", []).append(option)
    for panel, members in panels.items():
        if panel:
            yield f"*{panel}*\n"
        yield "| option | what |\n| --- | --- |"
        yield from (f"| {_names(option)} | {_cell(option.help)}{_default(option)} |" for option in members)
        yield ""


def _placeholder(argument: Any) -> str:
    word = (argument.metavar or argument.name).strip("{}").upper()
    return word if argument.required else f"[{word}]"


def _names(option: Any) -> str:
    names = " ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    if option.is_flag:
        return names
    return f"{names} {option.metavar or _kind(option.type_descriptor.annotation)}".replace("|", "\\|")


def _kind(annotation: Any) -> str:
    """What may stand after an option: its choices, or a word for the type."""
    known = {int: "NUMBER", float: "NUMBER", str: "TEXT", Path: "PATH"}
    words = [known.get(part) or " · ".join(f"`{choice}`" for choice in get_args(part)) for part in _leaves(annotation)]
    return words[0] if words else ""


def _leaves(annotation: Any) -> Iterator[Any]:
    """The types inside optional ones and lists."""
    if annotation in (int, float, str, Path) or get_origin(annotation) is Literal:
        yield annotation
    else:
        for part in get_args(annotation):
            yield from _leaves(part)


def _default(option: Any) -> str:
    if option.required:
        return " **Required.**"
    default = getattr(option.default, "value", option.default)
    if not option.show_default or option.is_flag or default in (None, (), [], "") or callable(default):
        return ""
    return f" Default: `{default}`."


def _prose(text: str) -> str:
    """Help text as Markdown: the terminal's markup goes, examples become code."""
    plain = re.sub(r"\[/?(?:bold|dim|italic|cyan|green)\]", "", text)
    plain = re.sub(r"^\s*Example: (.*(?:\n(?!\s*$|\s*Example:).*)*)", _example, plain, flags=re.MULTILINE)
    return re.sub(r"\n{3,}    ", "\n    ", f"{plain.strip()}\n")


def _example(match: re.Match[str]) -> str:
    return f"\n    {' '.join(match[1].split())}\n"


def _cell(text: str | None) -> str:
    return re.sub(r"\[/?(?:bold|dim|italic)\]", "", text or "").replace("|", "\\|").replace("\n", " ")
