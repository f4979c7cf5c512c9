"""What functions import when they are called exists: lazily exported names are `Any` to the type checker."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("src", "benchmarks", "studies", "tools")


def imports_of(tree: ast.Module) -> Iterator[ast.ImportFrom]:
    """Imports of surgeval's own, but for those that only the type checker sees."""
    hidden = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("surgeval") and id(node) not in hidden:
            yield node


def missing(source: str) -> Iterator[str]:
    """The names that a program imports and that are not there."""
    for node in imports_of(ast.parse(source)):
        home = import_module(node.module or "")
        for name in (alias.name for alias in node.names):
            if name != "*" and not hasattr(home, name) and find_spec(f"{node.module}.{name}") is None:
                yield f"{node.module}.{name} in line {node.lineno}"


def test_every_name_that_is_imported_exists() -> None:
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py") if "node_modules" not in path.parts]
    assert len(files) > 500
    absent = {str(path.relative_to(ROOT)): list(missing(path.read_text("utf-8"))) for path in files}
    assert {path: names for path, names in absent.items() if names} == {}


def test_a_name_that_is_not_there_is_found() -> None:
    program = "def late():\n    from surgeval.stats import rank_outcomes, no_such_name\n"
    assert list(missing(program)) == ["surgeval.stats.no_such_name in line 2"]
