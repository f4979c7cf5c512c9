"""One list of kinds: what readers report or raise, what `--allow` accepts, and what the documentation explains."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import surgeval
from surgeval.files import PROBLEM_KINDS

SOURCE = Path(surgeval.__file__).parent
REPORTS = {"error", "warn", "refuse", "Problem"}  # a kind is their first argument
OTHERS = ("studio/",)  # fields of payloads and of the label schema


def named(path: Path) -> Iterator[str]:
    """The kinds that the calls in a module name."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        function = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        values: list[ast.expr] = [*node.args[1 if function == "refuse" else 0 :][:1]] if function in REPORTS else []
        if function in ("DataError", "NotRegular"):
            values += [keyword.value for keyword in node.keywords if keyword.arg == "code"]
        for value in values:
            branches = (value.body, value.orelse) if isinstance(value, ast.IfExp) else (value,)
            yield from (one.value for one in branches if isinstance(one, ast.Constant) and isinstance(one.value, str))


def test_every_kind_that_a_reader_names_is_listed() -> None:
    modules = {path.relative_to(SOURCE).as_posix(): path for path in SOURCE.rglob("*.py")}
    unlisted = {
        name: kinds
        for name, path in modules.items()
        if not name.startswith(OTHERS) and (kinds := set(named(path)) - PROBLEM_KINDS.keys())
    }
    assert not unlisted


def test_every_listed_kind_is_named_by_a_reader() -> None:
    source = "".join(path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py") if path.stem != "problem_kinds")
    assert not [kind for kind in PROBLEM_KINDS if f'"{kind}"' not in source]


def test_the_documentation_explains_exactly_the_listed_kinds() -> None:
    text = (SOURCE.parents[1] / "docs" / "datasets.md").read_text(encoding="utf-8")
    table = text.partition("| kind | meaning |")[2].partition("\n\n")[0]
    assert dict(re.findall(r"^\| `([a-z-]+)` \| (.+) \|$", table, re.MULTILINE)) == PROBLEM_KINDS
