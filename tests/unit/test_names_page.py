"""docs/api/names.md lists the public names: those of the stubs, no others."""

from __future__ import annotations

import inspect
import re
from importlib import import_module

import pytest
from tools.names_page import PAGE, packages, public_names, written

TEXT = PAGE.read_text(encoding="utf-8")


def test_the_lists_are_those_of_the_packages() -> None:
    assert written(TEXT) == TEXT, "run python tools/names_page.py"


def test_the_table_at_the_top_names_every_top_level_name_and_no_other() -> None:
    table = TEXT.split("## At the top")[1].split("## Order of arguments")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`(\w+)", row)}
    assert named == set(public_names("surgeval"))
    assert len(named) <= 22


def test_the_table_writes_the_first_arguments_as_they_are() -> None:
    for name, arguments in re.findall(r"`(\w+)\(([^)]+)\)`", TEXT.split("## Order of arguments")[0]):
        parameters = list(inspect.signature(getattr(import_module("surgeval"), name)).parameters)
        given = arguments.split(", ")
        assert name == "rank" or parameters[: len(given)] == given, name


@pytest.mark.parametrize("package", ["surgeval", *packages()])
def test_no_function_has_the_name_of_a_package(package: str) -> None:
    taken = {name.rpartition(".")[2] for name in packages()} | {"cli", "console"}
    assert taken.isdisjoint(public_names(package))
