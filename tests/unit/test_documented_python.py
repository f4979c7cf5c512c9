"""The Python of README and docs is true: every block parses, what it imports exists, examples print what is shown."""

from __future__ import annotations

import ast
import doctest
import pkgutil
import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import surgeval

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(?:python|pycon)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
# Run by tests of their own, which hold more than their examples.
ELSEWHERE = ("grounding", "judges", "question-making", "ranking", "statistics", "which-map")

INSIDE = ("arrays", "cli", "console", "files", "processes", "progress", "registry")  # shared by the others


def blocks(page: Path) -> list[str]:
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def examples(page: Path) -> str:
    return "\n".join(block for block in blocks(page) if ">>>" in block)


WITH_EXAMPLES = [page for page in PAGES if examples(page) and page.stem not in ELSEWHERE]


def code(page: Path) -> list[ast.Module]:
    """The blocks that are programs, and the examples of the others."""
    shown = [block for block in blocks(page) if ">>>" not in block]
    shown += [one.source for one in doctest.DocTestParser().get_examples(examples(page))]
    return [ast.parse(text, page.name) for text in shown]


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.stem)
def test_what_a_page_imports_exists(page: Path) -> None:
    for tree in code(page):
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module and not node.module.startswith("toy"):
                home = import_module(node.module)
                for name in (alias.name for alias in node.names):
                    assert hasattr(home, name) or find_spec(f"{node.module}.{name}"), f"{node.module}.{name}"
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "surgeval":
                assert hasattr(surgeval, node.attr), node.attr


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda page: page.stem)
def test_examples_say_what_is_printed(page: Path) -> None:
    told: list[str] = []
    test = doctest.DocTestParser().get_doctest(examples(page), {}, page.stem, str(page), 0)
    done = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=told.append)
    assert done.attempted and not done.failed, "".join(told)


def test_the_lines_of_the_readme_give_a_number(capsys: pytest.CaptureFixture[str]) -> None:
    (lines,) = blocks(ROOT / "README.md")
    drawn = np.random.default_rng(0)
    given = {"targets": drawn.random((40, 6)) < 0.3, "predicted": drawn.random((40, 6)), "videos": [*"abcdefgh"] * 5}
    exec(compile(lines, "README.md", "exec"), given)
    assert re.match(r"0\.\d{3} \[0\.\d{3}, [01]\.\d{3}\]", capsys.readouterr().out)


def test_the_reference_names_every_part_that_others_may_import() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "api").glob("*.md"))
    shown = set(re.findall(r"^::: surgeval\.(\w+)", pages, re.MULTILINE))
    parts = {module.name for module in pkgutil.iter_modules(surgeval.__path__) if not module.name.startswith("_")}
    assert parts - shown == set(INSIDE)
